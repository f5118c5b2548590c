"""The file of wabac.js: where it is looked for, and which files are refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from muniment.errors import UsageError
from muniment.replay import wabac
from muniment.replay.wabac import find_wabac

ROOT = Path(__file__).resolve().parents[3]
[REAL] = (ROOT / ".venv-pywb" / "lib").glob("python3*/site-packages/pywb/static/wabacSW.js")
SCRIPT = REAL.read_bytes()
VERSION = re.compile(rb"(?<=\(wabac\.js )[0-9.]+(?=\))")
START = SCRIPT.rindex(b"self.registration?(")
"""The statement that starts it, and nothing after it."""
FIND = """
import os, sys
from pathlib import Path
from muniment.errors import UsageError
from muniment.replay.wabac import find_wabac
try:
    print(find_wabac(*sys.argv[2:3]).version)
    os.environ.pop("MUNIMENT_WABAC", None)
    for place in Path(sys.argv[1]).read_text().splitlines():
        print(find_wabac().version)
        Path(place).unlink()
    find_wabac()
except UsageError as error:
    print(error)
"""
"""Prints the version of what is found first, of what is found when that is gone, and so on."""


def versioned(text: str) -> bytes:
    return VERSION.sub(text.encode(), SCRIPT, count=1)


def put(path: Path, version: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(versioned(version))
    return path


def in_environment(prefix: Path) -> Path:
    return prefix / "lib" / f"python3.{sys.version_info.minor}" / "site-packages" / "pywb" / "static" / REAL.name


def linked(home: Path, bin_: Path) -> None:
    """As pipx and uv do."""
    (home / "bin").mkdir()
    (home / "bin" / "wayback").write_text("#!/usr/bin/env python3\n")
    (home / "bin" / "wayback").chmod(0o755)
    (bin_ / "wayback").symlink_to(home / "bin" / "wayback")


def copied(home: Path, bin_: Path) -> None:
    """A program apart from the environment that its first line names."""
    (bin_ / "wayback").write_text(f"#!{home}/bin/python -E\n")
    (bin_ / "wayback").chmod(0o755)


@pytest.mark.parametrize("on_path", [linked, copied])
def test_the_places_in_their_order(tmp_path: Path, on_path: Callable[[Path, Path], None]) -> None:
    ours, programs, home = tmp_path / "ours", tmp_path / "programs", tmp_path / "home"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", ours], check=True)
    programs.mkdir()
    given, by_variable = put(tmp_path / "given.js", "2.31.0"), put(tmp_path / "variable.js", "2.32.0")
    places = [put(in_environment(tmp_path / ".venv-pywb"), "2.33.0"), put(in_environment(ours), "2.34.0")]
    (places[1].parents[2] / "pywb-2.10.0.dist-info").mkdir()
    (places[1].parents[2] / "pywb-2.10.0.dist-info" / "METADATA").write_text("Name: pywb\nVersion: 2.10.0\n")
    places.append(put(in_environment(home), "3.0.1"))
    on_path(home, programs)
    (tmp_path / "places").write_text("\n".join(map(str, places)))
    environ = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [ours / "bin" / "python", "-c", FIND, tmp_path / "places"]

    def found(*more: object, **given: str) -> list[str]:
        run = [*command, *more]
        return subprocess.run(run, env={**environ, **given}, capture_output=True, text=True, check=True).stdout.split(
            "\n"
        )

    get = f"{ours}/bin/python -m pip install --no-deps {wabac._WHEEL}"
    versions = found(given, MUNIMENT_WABAC=str(by_variable))
    assert versions == [
        "2.31.0",
        "2.33.0",
        "2.34.0",
        "3.0.1",
        f"wabac.js, which rewrites pages, is missing; get it with: {get}",
        "",
    ]
    assert found(MUNIMENT_WABAC=str(by_variable))[0] == "2.32.0"


def test_what_is_found_is_read_to_the_byte() -> None:
    found = find_wabac(str(REAL))
    assert found.script == SCRIPT
    assert f"(wabac.js {found.version})".encode() in SCRIPT[:100]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        pytest.param(SCRIPT[:-12], "is cut", id="cut at the very end"),
        pytest.param(SCRIPT[: START + 60], "is cut", id="cut in its last statement"),
        pytest.param(SCRIPT[:600_000], "is cut", id="cut in the middle"),
        pytest.param(versioned("2.26.11"), "is wabac.js 2.26.11, and 2.27 is needed", id="older"),
        pytest.param(versioned("1.99.0"), "is wabac.js 1.99.0, and 2.27 is needed", id="much older"),
        pytest.param(b"/*! nothing of that kind */" + SCRIPT, "is not wabac.js", id="another notice first"),
        pytest.param(b"wabac.js 2.27.2", "is not wabac.js", id="text"),
        pytest.param(b"", "is not wabac.js", id="empty"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, script: bytes, said: str) -> None:
    path = tmp_path / "sw.js"
    path.write_bytes(script)
    with pytest.raises(UsageError) as caught:
        find_wabac(str(path))
    assert str(caught.value).startswith(f"{path} {said}")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/dev/zero", "is not wabac.js"),
        ("/proc/self", "is not wabac.js"),
        ("/nowhere/sw.js", "cannot be read (No such file or directory)"),
        ("/proc/self/mem", "cannot be read (Input/output error)"),
    ],
)
def test_what_cannot_be_read_is_refused(path: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_wabac(path)
    assert str(caught.value).startswith(f"{path} {said}; ")


def test_the_lock_has_the_one_wheel_that_is_named() -> None:
    lock = [line.strip(" \\") for line in (ROOT / "requirements-pywb.lock").read_text().splitlines()]
    name, digest = (line for line in lock if not line.startswith("#"))
    assert (name, digest.partition(":")[0]) == (wabac._WHEEL, "--hash=sha256")
