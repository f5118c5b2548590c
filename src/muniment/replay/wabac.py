"""wabac.js, the engine that rewrites pages in the reader's browser: a file of this machine, found and checked.

Muniment does not contain it (AGPL-3.0-or-later): it is taken from the wheel of pywb, of which nothing else is used.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from muniment.errors import UsageError
from muniment.settings.environment import wabac_given

__all__ = ["LICENCE", "NAME", "SOURCE", "Wabac", "find_wabac"]

NAME = "wabac.js"
LICENCE = "AGPL-3.0-or-later"
SOURCE = "https://github.com/webrecorder/wabac.js"

_OLDEST = (2, 27)
_WHEEL = "pywb==2.10.0"
_IN_PACKAGES = Path("pywb", "static", "wabacSW.js")
_PACKAGES = ("lib/python3*/site-packages", "lib/python3*/dist-packages")
_NOTICE = re.compile(rb"\s*/\*(?:(?!\*/).){0,200}?\bwabac\.js (\d+)\.(\d+)\.(\d+)", re.DOTALL)
_START = re.compile(rb"self\.registration\?.+:.+\);?\s*\Z", re.DOTALL)
_HEAD, _TAIL = 500, 1000
"""Bytes in which the notice stands, and the statement that starts it."""


class Wabac(Struct, frozen=True):
    """The file, as it was when the replay began."""

    path: Path
    version: str
    script: bytes


def find_wabac(given: str = "") -> Wabac:
    """The file that is given, or by MUNIMENT_WABAC, else the first that is found.

    Raises UsageError when there is none, and when it is not wabac.js, cut, too old or unreadable.
    """
    named = given or wabac_given()
    if named:
        return _read(Path(named))
    for path in _places():
        if path.is_file():
            return _read(path)
    raise UsageError(f"{NAME}, which rewrites pages, is missing; get it with: {_command()}")


def _places() -> Iterator[Path]:
    """Beside our environment, where scripts/run puts it; in our environment; in that of a pywb on the path."""
    yield from _in_environment(Path(sys.prefix).parent / ".venv-pywb")
    try:
        yield Path(str(distribution("pywb").locate_file(_IN_PACKAGES)))
    except PackageNotFoundError:
        pass
    if program := shutil.which("wayback"):
        script = Path(program).resolve()
        yield from _in_environment(script.parent.parent)
        if interpreter := _interpreter(script):
            yield from _in_environment(interpreter.parent.parent)


def _in_environment(prefix: Path) -> list[Path]:
    return [packages / _IN_PACKAGES for pattern in _PACKAGES for packages in sorted(prefix.glob(pattern))]


def _interpreter(script: Path) -> Path | None:
    """The Python of a program, by its first line; not followed further, as that of an environment leads out of it."""
    try:
        with script.open("rb") as opened:
            line = opened.readline(1000)
    except OSError:
        return None
    words = line[2:].split() if line.startswith(b"#!/") else []
    return Path(words[0].decode(errors="surrogateescape")) if words else None


def _read(path: Path) -> Wabac:
    other = "name another file with --wabac"
    try:
        script = _content(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read ({getattr(error, 'strerror', error)}); {other}") from None
    notice = _NOTICE.match(script)
    if notice is None:
        raise UsageError(f"{path} is not {NAME}; --wabac takes the file {_IN_PACKAGES} of {_WHEEL}")
    version = tuple(map(int, notice.groups()))
    said = ".".join(map(str, version))
    if version < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise UsageError(f"{path} is {NAME} {said}, and {oldest} is needed; install {_WHEEL} there, or {other}")
    if not _is_whole(script):
        raise UsageError(f"{path} is cut: the end of {NAME} is missing; install {_WHEEL} there again, or {other}")
    return Wabac(path, said, script)


def _content(path: Path) -> bytes:
    """All of a file that begins as wabac.js does; of others, which may be endless, the beginning."""
    if path.exists() and not path.is_file():
        return b""
    with path.open("rb") as opened:
        head = opened.read(_HEAD)
        return head + opened.read() if _NOTICE.match(head) else head


def _is_whole(script: bytes) -> bool:
    start = _START.search(script[-_TAIL:])
    return start is not None and start[0].count(b"(") == start[0].count(b")")


def _command() -> str:
    """What puts it into our environment; the environments that uv makes have no pip."""
    python = shlex.quote(sys.executable)
    if find_spec("pip"):
        return f"{python} -m pip install --no-deps {_WHEEL}"
    return f"uv pip install --python {python} --no-deps {_WHEEL}"
