"""A collector of links: readers add what they find. Anchors stand as they are, all else is cleaned and kept once."""

from __future__ import annotations

import re

from muniment.model.link import FoundAs

__all__ = ["MOST_LINKS", "LinkCollector", "cleaned"]

MOST_LINKS = 100_000
"""References of one document that are followed: twice what a sitemap may list, and little enough to hold in memory."""

# The URL standard strips C0 controls and the space from both ends, and tabs and newlines from anywhere.
_EDGES = "".join(map(chr, range(0x21)))
_BREAKS = dict.fromkeys(map(ord, "\t\n\r"))
_UNFETCHED = re.compile(r"(?:javascript|mailto|data|tel|about|blob):", re.IGNORECASE).match


class LinkCollector:
    """The references of one document."""

    __slots__ = ("anchors", "base", "directives", "dropped", "links", "posting", "text")

    def __init__(self) -> None:
        # Nine references in ten are <a href>. Most of them were seen on an earlier page, so cleaning them is left to
        # whoever meets one for the first time.
        self.anchors: list[str] = []
        self.links: dict[tuple[str, FoundAs], None] = {}
        self.base: str | None = None
        self.dropped = 0
        """References beyond the limit, anchors apart."""
        self.posting = False
        """Whether the form that began last is sent as a POST."""
        self.directives: list[tuple[str, str]] = []
        self.text: list[str] | None = None
        """The text of each part of an HTML document; None where nobody asks for it."""

    def add(self, raw: str, found_as: FoundAs) -> None:
        """Keep a reference as written, unless it is empty, a bare fragment, of an unfetched scheme, or known."""
        if found_as is FoundAs.A:
            if raw:
                self.anchors.append(raw)
        elif href := cleaned(raw):
            if len(self.links) < MOST_LINKS:
                self.links[href, found_as] = None
            elif (href, found_as) not in self.links:
                self.dropped += 1


def cleaned(raw: str) -> str:
    """The href without edges and breaks, or nothing if it cannot be fetched."""
    href = raw if raw.isprintable() and " " not in (raw[:1], raw[-1:]) else raw.strip(_EDGES).translate(_BREAKS)
    return "" if href.startswith("#") or (":" in href and _UNFETCHED(href)) else href
