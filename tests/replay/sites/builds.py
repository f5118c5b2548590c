"""Static builds of the sites in this folder: each is installed by locked names, built once, and kept in `.sites`."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

__all__ = ["build", "debian_folder"]

_SOURCES = Path(__file__).resolve().parent
_BUILDS = _SOURCES.parents[2] / ".sites"
_ENVIRON = {
    "CI": "1",
    "DO_NOT_TRACK": "1",
    "NEXT_TELEMETRY_DISABLED": "1",
    "STORYBOOK_DISABLE_TELEMETRY": "1",
    "npm_config_update_notifier": "false",
}
_INSTALL = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
_COMMANDS = {
    "jupyterlite": ("-m", "jupyterlite_core.app", "build", "--contents", "files", "--output-dir", "out"),
    "mkdocs-material": ("-m", "mkdocs", "build", "--quiet", "--site-dir", "out"),
}
"""How tools of PyPI are run, by the name of the site."""


def debian_folder(package: str, folder: str) -> Path:
    """The folder that a package of Debian has installed."""
    path = Path("/usr/share/doc") / folder
    assert (path / "index.html").is_file(), f"{package} is missing; install it with: apt-get install {package}"
    return path


def build(name: str) -> Path:
    """The folder of a site to be served; it is built unless its sources are those of the last build."""
    _BUILDS.mkdir(exist_ok=True)
    built, stamp = _BUILDS / name, _BUILDS / f"{name}.stamp"
    with _locked(_BUILDS / f"{name}.lock"):
        wanted = _fingerprint(_SOURCES / name)
        if not (stamp.exists() and stamp.read_text() == wanted):
            stamp.unlink(missing_ok=True)
            shutil.rmtree(built, ignore_errors=True)
            _build(name, built)
            stamp.write_text(wanted)
    return built


def _build(name: str, built: Path) -> None:
    work = _BUILDS / f"{name}.work"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(_SOURCES / name, work)
    if name in _COMMANDS:
        _build_by_python(work, _COMMANDS[name])
    else:
        _build_by_npm(work)
    out = work / "out"
    (out if out.is_dir() else work).rename(built)
    shutil.rmtree(work, ignore_errors=True)


def _build_by_npm(work: Path) -> None:
    _run(work, *_INSTALL)
    if "build" in json.loads((work / "package.json").read_text()).get("scripts", {}):
        _run(work, "npm", "run", "build")


def _build_by_python(work: Path, command: Sequence[str]) -> None:
    python = str(work / "venv" / "bin" / "python")
    _run(work, sys.executable, "-m", "venv", "venv")
    _run(work, python, "-m", "pip", "install", "--quiet", "--no-compile", "--require-hashes", "-r", "requirements.lock")
    _run(work, python, *command)


def _run(work: Path, *command: str) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | _ENVIRON
    done = subprocess.run(command, cwd=work, env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    said = (done.stdout + done.stderr).decode(errors="replace")
    assert done.returncode == 0, f"{' '.join(command)} in {work}: {said[-4000:]}"


def _fingerprint(source: Path) -> str:
    """A digest of all that a build depends on: the files of the site and this module."""
    digest = hashlib.sha256()
    for path in (Path(__file__), *sorted(source.rglob("*"))):
        if path.is_file():
            digest.update(f"{path.name}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
