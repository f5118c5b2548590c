"""Extraction of links: never raises, whatever the bytes, and takes time in proportion to their number."""

from __future__ import annotations

import time

from muniment.extract.link_collector import cleaned
from muniment.extract.links import extract
from muniment.model.link import FoundAs
from muniment.model.url import resolve

_URL = "http://a.example/b/"
_KINDS = (
    ("text/html", FoundAs.A),
    ("text/html; charset=utf-16", FoundAs.A),
    ("text/css", FoundAs.STYLESHEET),
    ("application/xml", FoundAs.SITEMAP),
    ("application/rss+xml", FoundAs.A),
    ("image/svg+xml", FoundAs.IMG),
    ("application/manifest+json", FoundAs.MANIFEST),
    ("text/plain", FoundAs.ROBOTS),
    ("", FoundAs.A),
)
_LONG = 1 << 16
_MOST_S = 5.0
"""For `_LONG` bytes, which take milliseconds."""
SEEDS = [
    bytes([kind]) + text
    for kind in range(len(_KINDS))
    for text in (
        b"<!doctype html><base href=/x><a href='y?z&amp;1'>a</a><img srcset='a 1x, b 2x'><style>@import 'c';</style>",
        b"a { background: url( 'd\\65' ) } /* */ @import url(e);",
        b"<urlset><url><loc>http://a.example/f</loc></url></urlset><!-- <![CDATA[ ]]>",
        b'{"icons": [{"src": "g.png"}], "start_url": "/"}',
        b"Sitemap: http://a.example/h",
    )
]


def check(data: bytes) -> None:
    """The first byte says what the document is; the rest is read once, and again as often as makes it long."""
    if len(data) < 2:
        return
    content_type, found_as = _KINDS[data[0] % len(_KINDS)]
    found = extract(data[1:], content_type, _URL, found_as)
    for href in [href for href, _ in found.links] + [cleaned(raw) for raw in found.anchors]:
        resolve(found.base, href)
    long = data[1:] * (_LONG // len(data))
    began = time.process_time()
    extract(long, content_type, _URL, found_as)
    took = time.process_time() - began
    assert took < _MOST_S, f"{took:.1f} s for {len(long)} bytes"
