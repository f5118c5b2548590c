"""Outlinks: references of a document become normalised URLs and the packed entries of a finish.

Pages of one site repeat their references, so what a reference means is remembered: per origin for those that begin
with a slash, per directory for relative ones (design 4.7).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from muniment.model.link import FoundAs, Kind
from muniment.model.url import directory_of, origin_of, resolve, url_key

__all__ = ["Outlinks", "Resolved"]

_MOST_REMEMBERED = 150_000
_BYTE = tuple(bytes([found_as]) for found_as in FoundAs)
_LABEL = tuple(found_as.label for found_as in FoundAs)
_IS_LINK = tuple(found_as.kind is Kind.LINK for found_as in FoundAs)


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


class Outlinks:
    """Resolves references; the pages must be finished in the order in which they are resolved here.

    A URL's text goes along once, with the first page that leads to it; later pages send its key alone.
    """

    def __init__(self) -> None:
        self._meaning: dict[str, dict[str, _Target | None]] = {}
        self._remembered = 0

    def resolve(self, base: str, links: Iterable[tuple[str, FoundAs]], *, follow: bool) -> Resolved:
        """The outlinks of a page whose references are seen from `base`; without `follow`, the tracker gets no links."""
        by_directory, by_origin = self._memory(directory_of(base)), self._memory(origin_of(base))
        entries: dict[bytes, None] = {}
        listed: dict[tuple[str, str], None] = {}
        news: list[tuple[bytes, str]] = []
        for href, found_as in links:
            first = href[:1]
            if first in "?#":
                target = _target(base, href)
            else:
                memory = by_origin if first == "/" else by_directory
                if href in memory:
                    target = memory[href]
                else:
                    target = memory[href] = _target(base, href)
                    self._remembered += 1
            if target is None:
                continue
            listed[target.url, _LABEL[found_as]] = None
            if follow or not _IS_LINK[found_as]:
                entries[target.key + _BYTE[found_as]] = None
                if not target.told:
                    target.told = True
                    news.append((target.key, target.url))
        return Resolved(b"".join(entries), tuple(listed), tuple(news))

    def _memory(self, base: str) -> dict[str, _Target | None]:
        if self._remembered > _MOST_REMEMBERED:
            self._meaning.clear()
            self._remembered = 0
        return self._meaning.setdefault(base, {})


def _target(base: str, href: str) -> _Target | None:
    url = resolve(base, href)
    return None if url is None else _Target(url)
