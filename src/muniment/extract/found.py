"""Where the readers put what they find: cleaned, without what nobody fetches, and each reference once."""

from __future__ import annotations

import re

from muniment.model.link import FoundAs

__all__ = ["Found"]

# The URL standard strips C0 controls and the space from both ends, and tabs and newlines from anywhere.
_EDGES = "".join(map(chr, range(0x21)))
_BREAKS = dict.fromkeys(map(ord, "\t\n\r"))
_UNFETCHED = re.compile(r"(?:javascript|mailto|data|tel|about|blob):", re.IGNORECASE).match
# What begins so and holds nothing unprintable is a reference as it stands, and no scheme above: most are.
_ORDINARY = frozenset("/.?_%-+0123456789cefghiklnopqrsuvwxyzCEFGHIKLNOPQRSUVWXYZ")


class Found:
    """The references of one document in document order, each pair of href and way once."""

    __slots__ = ("_first", "_others", "base", "links")

    def __init__(self) -> None:
        self.links: list[tuple[str, FoundAs]] = []
        self.base: str | None = None
        # Hashing a pair would hash the enumeration's member, which Python does slowly: so the first way of an href
        # is looked up by the href alone, and only an href found in several ways pays for pairs.
        self._first: dict[str, FoundAs] = {}
        self._others: set[tuple[str, FoundAs]] = set()

    def add(self, raw: str, found_as: FoundAs) -> None:
        """Keep a reference as written, unless it is empty, a bare fragment, of an unfetched scheme, or known."""
        href = raw if raw[:1] in _ORDINARY and raw[-1] != " " and raw.isprintable() else _cleaned(raw)
        if href in self._first:
            self._add_again(href, found_as)
        elif href:
            self._first[href] = found_as
            self.links.append((href, found_as))

    def _add_again(self, href: str, found_as: FoundAs) -> None:
        if self._first[href] is not found_as and (href, found_as) not in self._others:
            self._others.add((href, found_as))
            self.links.append((href, found_as))


def _cleaned(raw: str) -> str:
    """Return the href without edges and breaks, or nothing when it is one that nobody fetches."""
    href = raw.strip(_EDGES).translate(_BREAKS)
    return "" if href.startswith("#") or _UNFETCHED(href) else href
