"""Feeds: RSS 0.9 to 2.0, RDF and Atom, with the media elements that podcasts and galleries use."""

from __future__ import annotations

import re
from itertools import islice

from muniment.extract.html import markup_links
from muniment.extract.link_collector import LinkCollector
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
_TEXTS = scanner("description", "summary", "content", "encoded")
_XHTML = re.compile(
    r"<((?:[\w.-]{1,40}:)?(?:content|summary))\s[^<>]{0,500}?\btype\s*+=\s*+[\"']xhtml[\"'][^<>]{0,500}>"
)
_MOST_TEXTS = 10_000
"""Texts of a feed that are read as HTML."""
_WEB = ("http://", "https://")


def feed_links(text: str, found: LinkCollector, found_as: FoundAs = FoundAs.FEED) -> None:
    """Collect each address of a feed: pages, enclosures, images; unless it is a sitemap, links of its texts, too."""
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
        found.add(address, found_as)
    if found_as is FoundAs.FEED:
        _read_texts(text, found)


def _read_texts(text: str, found: LinkCollector) -> None:
    """Read the HTML that stands in texts, quoted or, in Atom, as it is."""
    for _, _, content in islice((one for one in _TEXTS(text) if "<" in one[2]), _MOST_TEXTS):
        markup_links(content, found)
    at = 0
    for _ in range(_MOST_TEXTS):
        begins = _XHTML.search(text, at)
        ends = text.find(f"</{begins[1]}", begins.end()) if begins else -1
        if begins is None or ends < 0:
            break
        markup_links(text[begins.end() : ends], found)
        at = ends
