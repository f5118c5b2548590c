"""Feeds: RSS 0.9 to 2.0, RDF and Atom, with the media elements that podcasts and galleries use."""

from __future__ import annotations

from collections.abc import Callable

from muniment.extract.xml import attribute, scanner
from muniment.model.link import FoundAs

__all__ = ["FEED_ROOTS", "feed_links"]

FEED_ROOTS = frozenset({"rss", "rdf", "feed"})
"""Names of the document's element, without prefix and in lower case."""
_ADDRESS = {
    "link": "href",
    "enclosure": "url",
    "content": "url",
    "thumbnail": "url",
    "player": "url",
    "image": "href",
}
"""Elements whose attribute is an address; a `link` may hold one as text instead."""
_ELEMENTS = scanner(*_ADDRESS, "guid", "comments", "commentrss", "origlink", "url", "icon", "logo", "uri")
_WEB = ("http://", "https://")


def feed_links(text: str, add: Callable[[str, FoundAs], None], found_as: FoundAs = FoundAs.FEED) -> None:
    """Hand each address of a feed to `add`: pages, enclosures, images; what its texts hold is left to its pages."""
    for name, attributes, content in _ELEMENTS(text):
        if name in _ADDRESS:
            address = attribute(attributes, _ADDRESS[name])
            if not address and name == "link":
                address = content
            if not address and name == "content":
                address = attribute(attributes, "src")
        elif name == "guid":
            address = content if content.startswith(_WEB) else ""
        else:
            address = content
        add(address, found_as)
