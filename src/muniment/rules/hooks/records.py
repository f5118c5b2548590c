"""Records that hooks write to standard output: one JSON object a line, read as it comes, whatever it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from muniment.model.hooks.runs import HookStatus
from muniment.model.url import normalise

__all__ = [
    "BadRecord",
    "BinaryRecord",
    "LineReader",
    "LinkRecord",
    "MachineRecord",
    "OtherRecord",
    "ProcessRecord",
    "ResultRecord",
    "TagRecord",
    "read_line",
]

MOST_LINE = 1 << 20
_DEEPEST = 64
_MOST_OUTPUT, _MOST_JSON = 4096, 64 << 10
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_STATUSES: dict[str, HookStatus] = {
    "succeeded": "succeeded",
    "noresults": "noresults",
    "noresult": "noresults",
    "skipped": "skipped",
    "failed": "failed",
}
_NEVER_SET = re.compile(r"PATH|HOME|LD_.*|PYTHON.*|NODE_.*|MUNIMENT_.*")
_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class BadRecord(Struct, frozen=True):
    """A line that looks like a record but is not one."""


class OtherRecord(Struct, frozen=True):
    """A record of a type that means nothing here."""

    type: str


class ResultRecord(Struct, frozen=True):
    """The result of a hook, by itself."""

    status: HookStatus
    output_str: str
    output_json: str
    error: str


class LinkRecord(Struct, frozen=True):
    """A URL that a hook found."""

    url: str
    title: str
    tags: tuple[str, ...]


class TagRecord(Struct, frozen=True):
    """A tag of the page."""

    name: str


class BinaryRecord(Struct, frozen=True):
    """A program that a hook found."""

    name: str
    abspath: str
    version: str
    sha256: str
    binprovider: str


class ProcessRecord(Struct, frozen=True):
    """A program that a hook ran."""

    cmd: tuple[str, ...]
    pwd: str
    pid: int | None
    exit_code: int | None
    started_at: float | None
    """Unix s."""
    ended_at: float | None


class MachineRecord(Struct, frozen=True):
    """Settings for later hooks."""

    config: dict[str, str]


Record = ResultRecord | LinkRecord | TagRecord | BinaryRecord | ProcessRecord | MachineRecord | OtherRecord


class LineReader:
    """Cuts output into lines as it comes; of a line over 1 MiB only that it was is kept."""

    def __init__(self) -> None:
        self._held = b""
        self._too_long = False

    def feed(self, data: bytes) -> Iterator[bytes | None]:
        """The lines that these bytes complete, without their end; None for one that is too long and a record."""
        lines = (self._held + data).split(b"\n")
        self._held = lines.pop()
        for line in lines:
            if self._too_long:
                self._too_long = False
                continue
            if len(line) > MOST_LINE:
                if line.startswith(b"{"):
                    yield None
                continue
            yield line
        if len(self._held) > MOST_LINE:
            if not self._too_long and self._held.startswith(b"{"):
                yield None
            self._too_long, self._held = True, b""

    def end(self) -> bytes:
        """What came after the last line end."""
        held, self._held = self._held, b""
        return b"" if self._too_long else held


def read_line(line: bytes) -> Record | BadRecord | None:
    """The record of a line; None for a line that is passed over."""
    if not line.startswith(b"{"):
        return None
    if len(line) > MOST_LINE or _is_too_deep(line):
        return BadRecord()
    try:
        return _record(msgspec.json.decode(line))
    except (msgspec.DecodeError, RecursionError, KeyError, TypeError, ValueError):
        return BadRecord()


def _record(given: dict[str, Any]) -> Record:
    kind = _text(given, "type", needed=True)
    reader = _READERS.get(kind)
    if reader is None:
        return OtherRecord(kind[:100])
    found: Record = reader(given)
    return found


def _is_too_deep(line: bytes) -> bool:
    if line.count(b"{") + line.count(b"[") <= _DEEPEST:
        return False
    depth = deepest = 0
    for match in _BRACKETS.finditer(line):
        first = match[0][:1]
        depth += 1 if first in b"[{" else -1 if first in b"]}" else 0
        deepest = max(deepest, depth)
    return deepest > _DEEPEST


def _text(given: dict[str, Any], name: str, *, needed: bool = False) -> str:
    value = given[name] if needed else given.get(name)
    if value is None and not needed:
        return ""
    if not isinstance(value, str) or (needed and not value):
        raise TypeError(name)
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _cut(text: str, most: int) -> str:
    data = text.encode("utf-8", "replace")
    return text if len(data) <= most else data[:most].decode("utf-8", "ignore")


def _result(given: dict[str, Any]) -> ResultRecord:
    status = _STATUSES[_text(given, "status", needed=True)]
    output = given.get("output_json")
    if output is not None and not isinstance(output, dict):
        raise TypeError("output_json")
    packed = "" if output is None else msgspec.json.encode(output).decode()
    if len(packed.encode()) > _MOST_JSON:
        packed = ""  # the status counts all the same
    error = _cut(_text(given, "error"), _MOST_OUTPUT)
    return ResultRecord(status, _cut(_text(given, "output_str"), _MOST_OUTPUT), packed, error)


def _link(given: dict[str, Any]) -> LinkRecord:
    url = normalise(_text(given, "url", needed=True))
    if url is None or not url.startswith(("http://", "https://")):
        raise ValueError("url")
    tags = given.get("tags")
    if tags is None:
        names: list[str] = []
    elif isinstance(tags, str):
        names = tags.split(",")
    elif isinstance(tags, list) and all(isinstance(tag, str) for tag in tags):
        names = tags
    else:
        raise TypeError("tags")
    kept = tuple(_cut(name.strip(), 200) for name in names if name.strip())[:100]
    return LinkRecord(url, _cut(_text(given, "title"), _MOST_OUTPUT), kept)


def _tag(given: dict[str, Any]) -> TagRecord:
    return TagRecord(_cut(_text(given, "name", needed=True).strip(), 200))


def _binary(given: dict[str, Any]) -> BinaryRecord:
    name = _text(given, "name", needed=True)
    others = (_text(given, other)[:200] for other in ("version", "sha256", "binprovider"))
    return BinaryRecord(name[:200], _cut(_text(given, "abspath"), _MOST_OUTPUT), *others)


def _process(given: dict[str, Any]) -> ProcessRecord:
    cmd = given["cmd"]
    if not isinstance(cmd, list) or not cmd or not all(isinstance(word, str) for word in cmd):
        raise TypeError("cmd")
    for name in ("stdout", "stderr"):
        _text(given, name)
    words = tuple(_cut(word, _MOST_OUTPUT) for word in cmd[:1000])
    times = (_time(given, "started_at"), _time(given, "ended_at"))
    return ProcessRecord(words, _text(given, "pwd"), _number(given, "pid"), _number(given, "exit_code"), *times)


def _number(given: dict[str, Any], name: str) -> int | None:
    value = given.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or abs(value) > 1 << 31):
        raise TypeError(name)
    return value


def _time(given: dict[str, Any], name: str) -> float | None:
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, str):
        return datetime.fromisoformat(value).timestamp()
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1 << 40:
        raise TypeError(name)
    return float(value)


def _machine(given: dict[str, Any]) -> MachineRecord:
    config = given.get("config")
    if config is None:
        key = _text(given, "key", needed=True)
        if not key.startswith("config/"):
            return MachineRecord({})
        config = {key.removeprefix("config/"): given["value"]}
    if not isinstance(config, dict):
        raise TypeError("config")
    return MachineRecord({name: _plain(value) for name, value in config.items() if _may_set(name)})


def _may_set(name: str) -> bool:
    return _SETTING.fullmatch(name) is not None and _NEVER_SET.fullmatch(name) is None


def _plain(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if len(text) > _MOST_JSON or "\0" in text:
        raise ValueError("value")
    return text


_READERS: dict[str, Any] = {
    "ArchiveResult": _result,
    "Snapshot": _link,
    "Tag": _tag,
    "Binary": _binary,
    "Process": _process,
    "Machine": _machine,
}
