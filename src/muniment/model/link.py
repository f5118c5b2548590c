"""A link as a document states it, and the words for how it was found."""

from __future__ import annotations

from enum import IntEnum, unique

from msgspec import Struct

__all__ = ["FoundAs", "Kind", "Link"]


@unique
class Kind(IntEnum):
    """The meaning of a relation for scope."""

    LINK = 0
    """One hop away: followed where it leads to the site."""
    REQUISITE = 1
    """Needed to show the parent: taken from any host, up to five requisite hops."""
    FRAME = 2
    """A requisite that is also followed as a page (one link hop) when it is on the site."""
    REDIRECT = 3
    """Costs no hop and keeps its parent's kind."""
    LISTED = 4
    """One hop from the start, wherever the sitemap that lists it stands."""


@unique
class FoundAs(IntEnum):
    """The way in which a URL was found; the lower-case name with hyphens is what users see in `found_as`."""

    START = 0
    REDIRECT = 1
    A = 2
    AREA = 3
    FORM = 4
    LINK = 5
    META_REFRESH = 6
    IMG = 7
    SRCSET = 8
    SCRIPT = 9
    IFRAME = 10
    FRAME = 11
    OBJECT = 12
    EMBED = 13
    VIDEO = 14
    AUDIO = 15
    SOURCE = 16
    TRACK = 17
    STYLESHEET = 18
    ICON = 19
    PRELOAD = 20
    MANIFEST = 21
    CSS_URL = 22
    CSS_IMPORT = 23
    DATA_SRC = 24
    BACKGROUND = 25
    ROBOTS = 26
    SITEMAP = 27
    """A sitemap: named by robots.txt, by another one, or at its usual place."""
    SITEMAP_URL = 28
    FEED = 29
    LINK_HEADER = 30
    REFRESH_HEADER = 31
    JSON_LD = 32
    OPEN_GRAPH = 33
    MANIFEST_URL = 34
    CITE = 35
    LONGDESC = 36
    HOOK = 37
    """Found by a hook."""
    START_LIST = 38
    """A list of start URLs."""
    START_LINE = 39
    """A line of it: a start URL, too."""
    FOLLOWED = 40
    """A document that a script or a meta refresh of a rendered page led to, captured with it."""
    REQUISITE = 41
    """Asked for by the browser of a rendered page, and captured with it."""
    SUBDOCUMENT = 42
    """The same, of what may be a page of its own, too: the document of a frame."""
    IMPORT = 43
    """Imported by a module, or exported on."""
    IMPORT_MAP = 44
    PLAYLIST = 45
    """Of HLS, named by another one."""
    SEGMENT = 46
    """A piece of a film, or what such pieces need: keys, beginnings."""
    ONCLICK = 47
    """Where a script in an attribute goes, also that of a `javascript:` address."""
    DATA_HREF = 48
    FRAGMENT_ROUTE = 49
    """A page that scripts show by the fragment of its URL."""
    AMP = 50
    SRCSET_LIKE = 51
    """An attribute that scripts copy to `srcset`."""

    @property
    def label(self) -> str:
        """The word that the index and the reports show."""
        return "requisite" if self is FoundAs.SUBDOCUMENT else self.name.lower().replace("_", "-")

    @property
    def kind(self) -> Kind:
        """The meaning for scope of a relation found this way."""
        return _KINDS[self]


_LINKS = {
    FoundAs.START, FoundAs.A, FoundAs.AREA, FoundAs.FORM, FoundAs.LINK, FoundAs.META_REFRESH, FoundAs.FEED,
    FoundAs.LINK_HEADER, FoundAs.REFRESH_HEADER, FoundAs.JSON_LD, FoundAs.OPEN_GRAPH, FoundAs.MANIFEST_URL,
    FoundAs.CITE, FoundAs.LONGDESC, FoundAs.HOOK, FoundAs.ONCLICK, FoundAs.DATA_HREF, FoundAs.FRAGMENT_ROUTE,
}  # fmt: skip
_FRAMES = {FoundAs.IFRAME, FoundAs.FRAME}


def _kind(found_as: FoundAs) -> Kind:
    if found_as in {FoundAs.REDIRECT, FoundAs.START_LIST, FoundAs.FOLLOWED}:
        return Kind.REDIRECT
    if found_as in {FoundAs.SITEMAP_URL, FoundAs.START_LINE}:
        return Kind.LISTED
    if found_as in _LINKS:
        return Kind.LINK
    return Kind.FRAME if found_as in _FRAMES else Kind.REQUISITE


_KINDS = tuple(_kind(f) for f in FoundAs)


class Link(Struct, frozen=True):
    """One reference of a document, not yet resolved: `href` is as written, entities decoded."""

    href: str
    found_as: FoundAs
