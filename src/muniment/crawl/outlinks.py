"""Outlinks: references of a document become normalised URLs and the packed entries of a finish.

Pages of one site repeat their references, so what a reference means is remembered per origin (design 4.7), under its
path from the root: a relative one is first joined as text, which is enough to find what is known already. References of
plain characters alone, which are nearly all, are joined as text for good: the parser would give the same (a test holds
the two together) at five times the cost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from muniment.model.link import FoundAs, Kind
from muniment.model.url import directory_of, origin_of, resolve, url_key

__all__ = ["Outlinks", "Resolved", "join_plain"]

_MOST_REMEMBERED = 150_000
_BYTE = tuple(bytes([found_as]) for found_as in FoundAs)
_LABEL = tuple(found_as.label for found_as in FoundAs)
_A = FoundAs.A
_IS_LINK = frozenset(found_as for found_as in map(int, FoundAs) if FoundAs(found_as).kind is Kind.LINK)

# Segments that do not begin with a dot, and characters that the URL Standard leaves as they are in a path and a query.
_PLAIN = re.compile(
    r"((?:\.\./)*)([A-Za-z0-9_~][A-Za-z0-9_.~-]*(?:/[A-Za-z0-9_~][A-Za-z0-9_.~-]*)*/?)(\?[A-Za-z0-9_.~=&%+,;:@/-]*)?"
).fullmatch


class _Target:
    """What a reference means; `told` once the tracker got the URL's text from this worker."""

    __slots__ = ("anchor", "key", "pair", "told", "url")

    def __init__(self, url: str) -> None:
        self.url, self.key, self.told = url, url_key(url), False
        # as most references are: found as <a href>
        self.anchor, self.pair = self.key + _BYTE[_A], (url, _LABEL[_A])


class Resolved(Struct, frozen=True):
    """The outlinks of one page."""

    entries: bytes
    """For the tracker: key and FoundAs of each, once (`model.page.LINK_ENTRY` bytes each)."""
    listed: tuple[tuple[str, str], ...]
    """For the metadata record: URL and label of each, once."""
    news: tuple[tuple[bytes, str], ...]
    """Key and text of the URLs that this worker tells the tracker for the first time."""


_NOWHERE = _Target("")
"""What a reference that is no http or https URL means."""


class Outlinks:
    """Resolves references; the pages must be finished in the order in which they are resolved here.

    A URL's text goes along once, with the first page that leads to it; later pages send its key alone.
    """

    def __init__(self) -> None:
        self._by_origin: dict[str, dict[str, _Target]] = {}
        self._by_url: dict[str, _Target] = {}
        self._remembered = 0

    def resolve(self, base: str, links: Iterable[tuple[str, FoundAs]], *, follow: bool) -> Resolved:
        """The outlinks of a page whose references are seen from `base`; without `follow`, the tracker gets no links."""
        here, origin = directory_of(base), origin_of(base)
        known = self._known_of(origin)
        path = here[len(origin) :]
        found: dict[bytes, tuple[str, str]] = {}
        news: list[tuple[bytes, str]] = []
        for href, found_as in links:
            target = known.get(href) or self._relative(known, base, path, href)
            if target is _NOWHERE:
                continue
            if found_as is _A:
                found[target.anchor] = target.pair
            else:
                found[target.key + _BYTE[found_as]] = (target.url, _LABEL[found_as])
            if not target.told and (follow or found_as not in _IS_LINK):
                target.told = True
                news.append((target.key, target.url))
        told = found if follow else [entry for entry in found if entry[16] not in _IS_LINK]
        return Resolved(b"".join(told), tuple(found.values()), tuple(news))

    def _relative(self, known: dict[str, _Target], base: str, path: str, href: str) -> _Target:
        """What a reference means that is not known as it stands."""
        rooted = _rooted(path, href)
        target = known.get(rooted) if rooted else None
        if target is None:
            target = self._learn(base, href)
            if rooted:
                known[rooted] = target
                self._remembered += 1
        return target

    def _learn(self, base: str, href: str) -> _Target:
        url = join_plain(directory_of(base), href) or resolve(base, href)
        if url is None:
            return _NOWHERE
        target = self._by_url.get(url)
        if target is None:
            target = self._by_url[url] = _Target(url)
            self._remembered += 1
        return target

    def _known_of(self, origin: str) -> dict[str, _Target]:
        if self._remembered > _MOST_REMEMBERED:
            self._by_origin.clear()
            self._by_url.clear()
            self._remembered = 0
        return self._by_origin.setdefault(origin, {})


def _rooted(path: str, href: str) -> str | None:
    """A reference as it would be written from the root, joined as text; None when that may mean something else.

    Both forms mean the same unless the parser would strip or turn something (white space, backslashes), the joined one
    is a `//host`, or the relative one has a scheme.
    """
    if _ODD(href):
        return None
    first = href[:1]
    if first == "/" or href.startswith(("http://", "https://")):
        return href
    if first == ".":
        while href[:3] == "../":
            href = href[3:]
            path = path[: path.rfind("/", 0, -1) + 1] or "/"
    elif ":" in href:
        return None
    return None if href[:1] in _NOT_A_SEGMENT or path[:2] == "//" else path + href


_ODD = re.compile(r"[\x00-\x20\\]").search
_NOT_A_SEGMENT = frozenset(("", "/", "?", "#", "."))


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
