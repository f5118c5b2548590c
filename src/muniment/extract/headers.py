"""What response headers say of a page: `Link` (RFC 8288), `Refresh`, `Location`, the directives of `X-Robots-Tag`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from muniment.extract.attributes import refresh_target, rel_found_as, srcset_urls
from muniment.extract.link_collector import cleaned
from muniment.model.link import FoundAs

__all__ = ["header_directives", "header_links", "redirect_reference"]

_MOST_BYTES = 64 << 10
# A quoted value that is never closed runs to the end, so that nothing is read twice.
_QUOTED = r'[^"\\]*+(?:\\.[^"\\]*+)*'
_VALUE = re.compile(rf"""<([^<>]*+)>([^,"<]*+(?:"{_QUOTED}"?+[^,"<]*+)*)""").finditer
_PARAMETER = re.compile(rf""";\s*+([\w!#$%&'*+.^`|~-]++)\s*+(?:=\s*+(?:"({_QUOTED})"?+|([^\s;,"]*+)))?""").finditer
_AGENT = re.compile(r"\s*+([A-Za-z][\w-]*+)\s*+:(.*)", re.DOTALL).match
_WORDS_WITH_VALUE = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})


def header_links(headers: Iterable[tuple[str, str]], add: Callable[[str, FoundAs], None]) -> None:
    """Hand the references of `Link`, `Refresh` and `Location` headers (names in lower case) to `add`, unresolved.

    A `Location` is a link: who redirects there gives none.
    """
    for name, value in headers:
        if name == "link":
            _add_links(_as_utf8(value[:_MOST_BYTES]), add)
        elif name == "refresh":
            add(refresh_target(_as_utf8(value[:_MOST_BYTES])), FoundAs.REFRESH_HEADER)
        elif name == "location":
            add(redirect_reference(value), FoundAs.LINK_HEADER)


def _add_links(value: str, add: Callable[[str, FoundAs], None]) -> None:
    for match in _VALUE(value):
        said: dict[str, str] = {}
        for name, quoted, plain in (parameter.groups() for parameter in _PARAMETER(match[2])):
            said.setdefault(name.lower(), quoted if quoted is not None else plain or "")
        if "anchor" in said:  # says something of another page
            continue
        found_as = rel_found_as(said.get("rel", ""), FoundAs.LINK_HEADER)
        if found_as is not None:
            add(match[1], found_as)
            for url in srcset_urls(said.get("imagesrcset", "")):
                add(url, FoundAs.SRCSET)


def header_directives(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Agent and words of each `X-Robots-Tag`; one that names no agent is for `robots`, as in a meta element."""
    directives = []
    for name, value in headers:
        if name == "x-robots-tag":
            named = _AGENT(value)
            for_one = named is not None and named[1].lower() not in _WORDS_WITH_VALUE
            directives.append((named[1].lower(), named[2]) if named and for_one else ("robots", value))
    return directives


def redirect_reference(location: str) -> str:
    """The reference of a `Location` header, unresolved; empty if it cannot be fetched."""
    return cleaned(_as_utf8(location))


def _as_utf8(value: str) -> str:
    """Servers send UTF-8 where the grammar wants ASCII; headers come decoded as Latin-1."""
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value
