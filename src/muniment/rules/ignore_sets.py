"""Ignore sets: those that Muniment brings, and those that it reads from ArchiveBot's and grab-site's files.

A built-in set is a file of `rules/sets/`: patterns, each with its reason and with URLs that it stops and lets through.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import msgspec
from msgspec import Struct

from muniment.errors import UsageError
from muniment.rules.job_rules import IgnoreSet
from muniment.rules.patterns import Patterns

__all__ = ["GLOBAL", "BuiltInSet", "SetPattern", "built_in", "built_in_names", "chosen", "parse_import", "set_of"]

GLOBAL = "global"
"""The set that is on unless `--no-global-ignores` is given."""


class SetPattern(Struct, frozen=True, forbid_unknown_fields=True):
    """One pattern of a built-in set."""

    re: str
    reason: str
    stops: tuple[str, ...]
    """URLs that it matches."""
    passes: tuple[str, ...]
    """URLs that look alike and that it must not match."""
    slow: bool = False
    """Needs more than RE2 can do."""


class BuiltInSet(Struct, frozen=True, forbid_unknown_fields=True):
    """A built-in set."""

    about: str
    pattern: tuple[SetPattern, ...]
    name: str = ""


@cache
def built_in_names() -> tuple[str, ...]:
    """The names of the built-in sets, the global one first."""
    found = [entry.name.removesuffix(".toml") for entry in _SETS.iterdir() if entry.name.endswith(".toml")]
    return tuple(sorted(found, key=lambda name: (name != GLOBAL, name)))


@cache
def built_in(name: str) -> BuiltInSet:
    """A built-in set by its name; raises UsageError for one that is not there."""
    if name not in built_in_names():
        raise UsageError(f"there is no ignore set {name!r}; the sets are {', '.join(built_in_names())}")
    return msgspec.convert({"name": name} | tomllib.loads((_SETS / f"{name}.toml").read_text("utf-8")), BuiltInSet)


_SETS = files("muniment.rules") / "sets"


def chosen(names: Sequence[str], *, with_global: bool) -> tuple[IgnoreSet, ...]:
    """The built-in sets of these names, which may be lists with commas, each once; the global one comes first."""
    for text in names:
        if not text.strip(" ,"):
            raise UsageError(f"--ignore-sets {text!r} names no set; the sets are {', '.join(built_in_names())}")
    wanted = [name.strip() for text in names for name in text.split(",") if name.strip()]
    every = dict.fromkeys([*([GLOBAL] if with_global else []), *wanted])
    return tuple(map(set_of, every))


def set_of(name: str) -> IgnoreSet:
    """The patterns of a built-in set; raises UsageError for one that is not there."""
    return IgnoreSet(name, tuple(pattern.re for pattern in built_in(name).pattern))


class _ArchiveBot(Struct):
    """A file of ArchiveBot's `db/ignore_patterns`."""

    patterns: tuple[str, ...]


def parse_import(text: str, file: str) -> IgnoreSet:
    """A set `import:FILE` with the patterns of ArchiveBot's JSON or of grab-site's text.

    In the text there is one a line, and `#` begins a comment line. Raises UsageError for JSON of another form, for a
    file without patterns, and with its place for an invalid pattern.
    """
    if re.match(r'\s*\{\s*["}]', text):
        try:
            place, found = "pattern", list(enumerate(msgspec.json.decode(text, type=_ArchiveBot).patterns, 1))
        except (msgspec.DecodeError, RecursionError) as error:
            raise UsageError(f"{file} is JSON, but not a set of ArchiveBot: {error}") from None
    else:
        lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
        place, found = "line", [(number, line) for number, line in lines if line and line[0] != "#"]
    if not found:
        raise UsageError(f"{file} has no patterns")
    for number, pattern in found:
        try:
            Patterns([pattern])
        except UsageError as error:
            raise UsageError(f"{place} {number} of {file}: {error}") from None
    return IgnoreSet(f"import:{file}", tuple(dict.fromkeys(_our_netloc(pattern) for _, pattern in found)))


def _our_netloc(pattern: str) -> str:
    """Both programs put the host with its port, if it has one, where we put the host alone."""
    return re.sub(r"\{(?:primary|any_start)_netloc\}", lambda _: r"{primary_netloc}(?::\d+)?", pattern)
