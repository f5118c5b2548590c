"""The web site of the documents builds without a warning, and what `scripts/build` makes installs where nothing is."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.long

UNCOMPILED = {**os.environ, "PIP_NO_COMPILE": "0"}
"""To compile whole environments of which a few modules run takes longer than all else. Pip takes 0 as yes here."""


def script(name: str, out: Path) -> None:
    done = subprocess.run(
        [ROOT / "scripts" / name, out], env=UNCOMPILED, capture_output=True, text=True, timeout=580, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_site_has_every_page_and_no_warning(tmp_path: Path) -> None:
    script("site", tmp_path / "site")
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    built = [tmp_path / "site" / path.relative_to(ROOT).with_suffix(".html") for path in pages]
    assert [str(page) for page in built if not page.exists()] == []
    assert "docs/index.html" in (tmp_path / "site" / "index.html").read_text()
    assert 'id="muniment-crawl"' in (tmp_path / "site" / "docs" / "options.html").read_text()


def test_wheel_and_archive_install_into_an_empty_environment(tmp_path: Path) -> None:
    script("build", tmp_path)
    [wheel], [archive] = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        held = {name.partition("/")[2] for name in packed.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/muniment/cli/crawl.py"} <= held
    home = tmp_path / "empty"
    venv.create(home, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "--quiet"]
    lock = ["--no-build-isolation", "--require-hashes", "-r", str(ROOT / "requirements.lock")]
    build = ["--require-hashes", "-r", str(ROOT / "requirements-build.lock")]
    for arguments in (build, lock, ["--no-deps", str(wheel)]):
        subprocess.run([*pip, "install", *arguments], env=UNCOMPILED, check=True, timeout=580)
    assert version(home) == version(ROOT / ".venv")
    subprocess.run([*pip, "uninstall", "--yes", "muniment"], check=True, timeout=60)
    subprocess.run([*pip, "install", "--no-deps", "--no-build-isolation", str(archive)], check=True, timeout=120)
    assert version(home) == version(ROOT / ".venv")


def version(home: Path) -> str:
    done = subprocess.run([home / "bin" / "muniment", "--version"], capture_output=True, text=True, check=True)
    return done.stdout
