"""The package that users install holds what it needs and brings the command."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    # hatchling is in the environment (requirements-build.lock): nothing is fetched.
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", out, ROOT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    [built] = out.glob("muniment-*.whl")
    return built


def test_wheel_holds_every_module(wheel: Path) -> None:
    sources = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "muniment").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert sources <= set(zipfile.ZipFile(wheel).namelist())


def test_installed_command_runs_without_the_checkout(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "an environment"
    venv.create(home, with_pip=False)
    target = next((home / "lib").glob("python*/site-packages"))
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", home / "bin" / "python", "install", "--quiet", "--no-deps", wheel],
        check=True,
        timeout=120,
    )
    # The dependencies come from the environment of the tests; the project must not.
    (target / "dependencies.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    bin_ = home / "bin"
    for command in (
        [bin_ / "muniment", "--version"],
        [bin_ / "python", "-c", "import muniment as m; print(m.__file__)"],
    ):
        done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert str(home) in done.stdout
