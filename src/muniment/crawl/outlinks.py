"""Outlinks: references of a document become normalised URLs and the packed entries of a finish.

Pages of one site repeat their references, so what a reference means is remembered (design 4.7): per origin for those
that begin with a slash or a scheme, per directory for the rest. References made of plain characters alone, which are
nearly all, are joined as text: the parser would give the same (a test holds the two together) at five times the cost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from muniment.model.link import FoundAs, Kind
from muniment.model.url import directory_of, origin_of, resolve, url_key

__all__ = ["Outlinks", "Resolved", "join_plain"]

_MOST_REMEMBERED = 200_000
_MOST_OF_DIRECTORY = 300
"""References remembered per directory: what its pages share comes first, the rest would not be met again."""
_BYTE = tuple(bytes([found_as]) for found_as in FoundAs)
_LABEL = tuple(found_as.label for found_as in FoundAs)
_IS_LINK = frozenset(found_as for found_as in map(int, FoundAs) if FoundAs(found_as).kind is Kind.LINK)

# Segments that do not begin with a dot, and characters that the URL Standard leaves as they are in a path and a query.
_PLAIN = re.compile(
    r"((?:\.\./)*)([A-Za-z0-9_~][A-Za-z0-9_.~-]*(?:/[A-Za-z0-9_~][A-Za-z0-9_.~-]*)*/?)(\?[A-Za-z0-9_.~=&%+,;:@/-]*)?"
).fullmatch


class _Target:
    """What a reference means; `told` once the tracker got the URL's text from this worker."""

    __slots__ = ("key", "told", "url")

    def __init__(self, url: str) -> None:
        self.url, self.key, self.told = url, url_key(url), False


class Resolved(Struct, frozen=True):
    """The outlinks of one page."""

    entries: bytes
    """For the tracker: key and FoundAs of each, once (`model.page.LINK_ENTRY` bytes each)."""
    listed: tuple[tuple[str, str], ...]
    """For the metadata record: URL and label of each, once."""
    news: tuple[tuple[bytes, str], ...]
    """Key and text of the URLs that this worker tells the tracker for the first time."""


_Memory = dict[str, _Target | None]
_UNKNOWN = _Target("")


class Outlinks:
    """Resolves references; the pages must be finished in the order in which they are resolved here.

    A URL's text goes along once, with the first page that leads to it; later pages send its key alone.
    """

    def __init__(self) -> None:
        self._by_base: dict[str, _Memory] = {}
        self._by_url: _Memory = {}
        self._remembered = 0

    def resolve(self, base: str, links: Iterable[tuple[str, FoundAs]], *, follow: bool) -> Resolved:
        """The outlinks of a page whose references are seen from `base`; without `follow`, the tracker gets no links."""
        here, origin = directory_of(base), origin_of(base)
        from_here, from_origin = self._memory(here), self._memory(origin)
        found: dict[bytes, tuple[str, str]] = {}
        news: list[tuple[bytes, str]] = []
        for href, found_as in links:
            memory = from_origin if href[:1] == "/" or href[:4] == "http" else from_here
            target = memory.get(href, _UNKNOWN)
            if target is _UNKNOWN:
                room = memory is from_origin or len(from_here) < _MOST_OF_DIRECTORY
                target = self._learn(base, here, href, memory if room else None)
            if target is None:
                continue
            found[target.key + _BYTE[found_as]] = (target.url, _LABEL[found_as])
            if not target.told and (follow or found_as not in _IS_LINK):
                target.told = True
                news.append((target.key, target.url))
        told = found if follow else [entry for entry in found if entry[16] not in _IS_LINK]
        return Resolved(b"".join(told), tuple(found.values()), tuple(news))

    def _learn(self, base: str, here: str, href: str, memory: _Memory | None) -> _Target | None:
        url = join_plain(here, href) or resolve(base, href)
        if url is None:
            target = None
        elif (target := self._by_url.get(url)) is None:
            target = self._by_url[url] = _Target(url)
            self._remembered += 1
        # a query or a fragment alone means something else on every page of a directory
        if memory is not None and href[:1] not in "?#":
            memory[href] = target
            self._remembered += 1
        return target

    def _memory(self, base: str) -> _Memory:
        if self._remembered > _MOST_REMEMBERED:
            self._by_base.clear()
            self._by_url.clear()
            self._remembered = 0
        return self._by_base.setdefault(base, {})


def join_plain(here: str, href: str) -> str | None:
    """A relative or root-relative reference of plain characters as seen from the directory `here`; None for others."""
    rooted = href[:1] == "/"
    plain = _PLAIN(href, 1 if rooted else 0)
    if plain is None:
        return None
    up = len(plain[1]) // 3
    if rooted:
        return None if up else origin_of(here) + href
    if up:
        steps = here.split("/")
        # scheme, nothing, host, …, nothing: a step above the root stays there
        here = "/".join(steps[: max(3, len(steps) - 1 - up)]) + "/"
        href = href[3 * up :]
    return here + href
