"""The Containerfile, carried out without an engine: its steps in a directory that stands for the image.

What `scripts/build` makes is installed there, too: in an environment that holds the locked packages and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.gated_site import GatedSite

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
STEPS = [line.split(maxsplit=1) for line in (ROOT / "Containerfile").read_text().splitlines() if line[:1].isupper()]
PAGE = (ROOT / "docs" / "container.md").read_text()
ENGINE = b"is part of Webrecorder project"
"""Of the notice that wabac.js begins with."""
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


class Image:
    """What the steps made: a root directory, the environment variables and the command."""

    def __init__(self, root: Path) -> None:
        self.root, self.cwd, self.env, self.command = root, root, dict[str, str](), list[str]()

    def inside(self, path: str) -> Path:
        """A path of the image, below the directory that stands for it."""
        return self.root / path.lstrip("/") if path.startswith("/") else self.cwd / path

    def carry_out(self, step: str, given: str) -> None:
        if step == "WORKDIR":
            self.cwd = self.inside(given)
            self.cwd.mkdir(parents=True, exist_ok=True)
        elif step == "COPY" and not given.startswith("--from"):
            *sources, target = given.split()
            for source in sources:
                self.copy(source, self.inside(target))
        elif step == "RUN":
            line = given.replace("/opt/muniment", str(self.inside("/opt/muniment")))
            line = line.replace("python -m venv", f"{sys.executable} -m venv").replace("--no-cache-dir ", "")
            # all that is installed need not be compiled for this; pip takes 0 as yes here
            env = {**os.environ, "PIP_NO_COMPILE": "0"}
            done = subprocess.run(line, shell=True, cwd=self.cwd, env=env, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{given}\n{done.stdout}{done.stderr}"
        elif step == "ENV":
            name, value = given.split("=", 1)
            self.env[name] = re.sub(r"/(opt|data)\b", lambda found: str(self.inside(found[0])), value)
        elif step == "ENTRYPOINT":
            self.command = json.loads(given)

    def copy(self, source: str, target: Path) -> None:
        assert f"!{source}" in (ROOT / ".containerignore").read_text().split(), f"{source} is left out of the context"
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, target)

    def arguments(self, line: str) -> tuple[list[str], dict[str, str]]:
        env = {"HOME": str(self.root), **self.env, "PATH": self.env["PATH"].replace("$PATH", os.environ["PATH"])}
        return [*self.command, *shlex.split(line)], env

    def run(self, line: str) -> str:
        command, env = self.arguments(line)
        done = subprocess.run(command, cwd=self.cwd, env=env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def complaint(self, line: str) -> str:
        """What a command says that is used wrongly."""
        command, env = self.arguments(line)
        done = subprocess.run(command, cwd=self.cwd, env=env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 2, f"{line}\n{done.stdout}{done.stderr}"
        return done.stderr

    def start(self, line: str, **more: str) -> subprocess.Popen[str]:
        command, env = self.arguments(line)
        return subprocess.Popen(command, cwd=self.cwd, env={**env, **more}, stdout=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    made = Image(tmp_path_factory.mktemp("image"))
    for step, given in STEPS:
        made.carry_out(step, given)
    return made


@pytest.fixture
def site() -> Iterator[GatedSite]:
    with GatedSite({"/": "<a href=/a>a</a>", "/a": "a"}) as running:
        yield running


def example(command: str) -> str:
    """The example of the page that runs a command, without the engine."""
    [line] = re.findall(rf"`podman run [^`]* muniment ({command} [^`]*)`", PAGE)
    return str(line)


def test_an_empty_environment_runs_crawl_serve_and_pipeline(image: Image, site: GatedSite) -> None:
    assert "2 pages" in image.run(example("crawl").replace("https://example.com/", site.url))
    assert image.run(example("inspect"))
    image.run("check example")
    assert "wabac.js, which rewrites pages, is missing" in image.complaint("replay example --no-open")
    token = image.run("pipelines add one --state tracker --quiet").strip()
    serve = image.start(example("serve").replace("0.0.0.0:8600", "127.0.0.1:0") + " --allow-private")
    try:
        assert serve.stdout is not None
        server = serve.stdout.readline().split()[1]
        work = example("pipeline").replace("https://tracker.example.org", server)
        pipeline = image.start(f"{work} --allow-private --exit-when-idle 1", MUNIMENT_TOKEN=token)
        pipeline.communicate(timeout=60)
        assert pipeline.returncode == 0
    finally:
        serve.send_signal(signal.SIGTERM)
        serve.communicate(timeout=30)
    assert serve.returncode == 0
    assert (image.cwd / "archive" / "pipeline.jsonl").exists()


def test_wheel_and_archive_are_whole_and_install_beside_locked_packages(image: Image, tmp_path: Path) -> None:
    done = subprocess.run([ROOT / "scripts" / "build", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [wheel], [archive] = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        held = {name.partition("/")[2] for name in packed.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", *(f"src/{name}" for name in sources())} <= held
    assert sources() <= set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(archive) as packed, zipfile.ZipFile(wheel) as zipped:
        texts = [file.read() for member in packed if (file := packed.extractfile(member))]
        texts += map(zipped.read, zipped.namelist())
    assert [text[:80] for text in texts if ENGINE in text] == [], "the engine of replay is AGPL: we hand it to nobody"
    pip = [image.inside("/opt/muniment/bin/python"), "-m", "pip", "--quiet"]
    for made in (wheel, archive):
        subprocess.run([*pip, "uninstall", "--yes", "muniment"], check=True, timeout=60)
        assert not image.inside("/opt/muniment/bin/muniment").exists()
        subprocess.run([*pip, "install", "--no-deps", "--no-build-isolation", made], check=True, timeout=120)
        assert said(image, "muniment", "--version") == f"muniment {VERSION}\n"
        assert said(image, "python", "-c", "import muniment; print(muniment.__file__)").startswith(str(image.root))


def sources() -> set[str]:
    """Every file of the package."""
    found = (path for path in (ROOT / "src" / "muniment").rglob("*") if path.is_file())
    return {path.relative_to(ROOT / "src").as_posix() for path in found if "__pycache__" not in path.parts}


def said(image: Image, name: str, *arguments: str) -> str:
    """What a program of the image prints, where no checkout is."""
    command = [image.inside(f"/opt/muniment/bin/{name}"), *arguments]
    done = subprocess.run(
        command, cwd=image.root, env={"HOME": str(image.root)}, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_image_has_no_engine_of_replay(image: Image) -> None:
    scripts = [path for path in image.root.rglob("*.js") if path.is_file()]
    assert image.inside("/opt/muniment/lib").exists()
    assert [path for path in scripts if ENGINE in path.read_bytes()] == []


def test_the_image_begins_from_one_base_and_runs_as_a_user() -> None:
    assert len({given.split()[0] for step, given in STEPS if step == "FROM"}) == 1
    assert [given for step, given in STEPS if step in {"USER", "STOPSIGNAL"}] == ["1000:1000", "SIGTERM"]
