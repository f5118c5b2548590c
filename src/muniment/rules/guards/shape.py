"""Shapes: what addresses of one kind have in common, as `HOST/path?names`, and the pattern that finds them.

A run of digits is `N`, hex of 7 and more is `H`, what follows the second segment `…`; parameters are sorted, and a
value stays only where it is a word of an action.
"""

from __future__ import annotations

import re

from msgspec import Struct

from muniment.model.url import host_of

__all__ = ["pattern_of", "shape_of"]

_NUMBERS = re.compile(r"(?<![0-9A-Za-z])(?=[A-Fa-f]*[0-9])(?=[0-9]*[A-Fa-f])[0-9A-Fa-f]{7,}(?![0-9A-Za-z])|[0-9]+|…$")
_HAS_NUMBER = re.compile(r"[0-9]").search
_PARTS = re.compile(r"[&;]")
_WORD = re.compile(r"[A-Za-z][A-Za-z_-]{0,23}").fullmatch
_ACTIONS = frozenset(["a", "act", "action", "cmd", "do", "feed", "format", "func", "mode", "op", "task", "view"])
"""Names of parameters whose value says what a page shows."""
_MOST_OF_A_PART, _MOST_NAMES, _MOST_PARAMETERS = 60, 12, 200
_MORE = "…"


class _Address(Struct, frozen=True):
    """The parts of a URL that make its shape; each is short, and ends in `…` where it was longer."""

    host: str
    segments: list[str]
    """Two at most, then an empty one for a slash at the end, or `…` for more."""
    names: dict[str, str]
    """Sorted; with a value where that is a word of an action."""
    more: bool
    """There are more names."""


def shape_of(url: str) -> str:
    """The shape of a normalised URL; it is bounded, however long the URL."""
    found = _address(url)
    place = "/".join([found.host, *[_shown(part) for part in found.segments]])
    if not found.names:
        return place
    names = sorted({f"{_shown(name)}={value}" if value else _shown(name) for name, value in found.names.items()})
    return f"{place}?{'&'.join([*names, _MORE] if found.more else names)}"


def pattern_of(url: str) -> str:
    """The ignore pattern that finds the URLs that have the shape of this one, in Python syntax."""
    found = _address(url)
    *before, last = found.segments
    path = "".join(f"/{_matched(part, '[^/?#]*')}" for part in before)
    path += "/[^?#]+" if last == _MORE else f"/{_matched(last, '[^/?#]*')}"
    place = rf"^https?://{re.escape(found.host)}(?::\d+)?{path}"
    if found.more:
        return rf"{place}\?.+$"
    if not found.names:
        return f"{place}$"
    kinds = sorted({_parameter(name, value) for name, value in found.names.items()})
    return rf"{place}\?(?:(?:{'|'.join(kinds)})(?:[&;]+|$)){{{len(kinds)},}}$"


def _parameter(name: str, value: str) -> str:
    matched = _matched(name, "[^=&;#]*")
    return f"{matched}={re.escape(value)}" if value else f"{matched}(?:=[^&;#]*)?"


def _address(url: str) -> _Address:
    start = url.index("://") + 3
    cut = url.find("#", start)
    path, _, query = (url if cut < 0 else url[:cut]).partition("?")
    slash = path.find("/", start)
    segments = path[slash + 1 :].split("/", 2) if slash > 0 else [""]
    if len(segments) > 2 and segments[2]:
        segments[2] = _MORE
    names = _names(query) if query else {}
    kept = dict(sorted(names.items())[:_MOST_NAMES])
    return _Address(host_of(url), [_cut(part) for part in segments], kept, len(names) > len(kept))


def _names(query: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for parameter in _PARTS.split(query, _MOST_PARAMETERS)[:_MOST_PARAMETERS]:
        name, _, value = parameter.partition("=")
        if name:
            found[_cut(name)] = value if name.lower() in _ACTIONS and _WORD(value) else ""
    return found


def _cut(part: str) -> str:
    return part if len(part) <= _MOST_OF_A_PART else part[:_MOST_OF_A_PART] + _MORE


def _shown(part: str) -> str:
    return _NUMBERS.sub(_letter, part) if _HAS_NUMBER(part) else part


def _letter(found: re.Match[str]) -> str:
    return _MORE if found[0] == _MORE else "N" if found[0].isdigit() else "H"


def _matched(part: str, rest: str) -> str:
    """A part as a pattern; `rest` stands for what was cut off."""
    kinds = {"…": rest, "N": "[0-9]+", "H": "[0-9A-Fa-f]{7,}"}
    made, at = "", 0
    for found in _NUMBERS.finditer(part):
        made += re.escape(part[at : found.start()]) + kinds[_letter(found)]
        at = found.end()
    return made + re.escape(part[at:])
