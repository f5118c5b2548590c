"""What feeds refer to."""

from __future__ import annotations

import pytest

from muniment.extract.links import extract
from muniment.model.link import FoundAs as F

URL = "http://site.example/feeds/all.xml"

CASES = [
    ("<rss version='2.0'><channel><link>http://s/</link><image><url>l.png</url><link>http://s/</link></image>"
     "<item><title>t</title><link>/1?a&amp;b</link><guid>http://s/g</guid><comments>c</comments>"
     "<enclosure url='e.mp3' length='1'/></item></channel></rss>",
     ["http://s/", "l.png", "/1?a&b", "http://s/g", "c", "e.mp3"]),
    ("<rss><item><guid isPermaLink='false'>tag:x</guid><link><![CDATA[/1]]></link>"
     "<description><![CDATA[<link>no</link>]]></description></item></rss>", ["/1"]),
    ("<rss><item><media:content url='m.mp4'/><media:thumbnail url=\"t.png\"/><itunes:image href='i.png'/>"
     "<feedburner:origLink>o</feedburner:origLink><wfw:commentRss>r</wfw:commentRss></item></rss>",
     ["m.mp4", "t.png", "i.png", "o", "r"]),
    ("<rdf:RDF><channel rdf:about='x'><link>a</link></channel><item><link>b</link></item></rdf:RDF>", ["a", "b"]),
    ("<feed xmlns='http://www.w3.org/2005/Atom'><link rel='self' href='me'/>"
     "<link href=\"alt\"/><icon>i</icon><logo>l</logo>"
     "<author><uri>u</uri></author><entry><link href='e1'/><content src='c'/><content type='html'>&lt;a></content>"
     "</entry></feed>", ["me", "alt", "i", "l", "u", "e1", "c"]),
    ("<rss><item><link/><link></link><enclosure/></item>", []),
    ("<svg><link>x</link></svg>", []),
]  # fmt: skip


TEXTS = [
    "<rss><item><description>&lt;p&gt;&lt;a href=&quot;/a?x=1&amp;amp;y&quot;&gt;t&lt;/a&gt;&lt;img src='i.png'&gt;"
    "</description></item></rss>",
    "<rss xmlns:content='c'><item><content:encoded><![CDATA[<a href='/a?x=1&amp;y'>t</a><img src=i.png>]]>"
    "</content:encoded></item></rss>",
    "<feed><entry><summary type='xhtml'><div xmlns='h'><a href='/a?x=1&amp;y'>t</a><img src='i.png'/></div>"
    "</summary></entry></feed>",
    "<feed><entry><content type='html'>&lt;a href='/a?x=1&amp;amp;y'&gt;&lt;img src='i.png'&gt;</content></entry>"
    "</feed>",
]


@pytest.mark.parametrize("text", TEXTS)
def test_html_within(text):
    found = extract(text.encode(), "application/rss+xml", URL)
    assert (found.links, found.anchors) == ([("i.png", F.IMG)], ["/a?x=1&y"])
    assert extract(text.encode(), "application/xml", URL, F.SITEMAP).anchors == []


@pytest.mark.parametrize("content_type", ["application/rss+xml", "application/atom+xml;charset=utf-8", "text/xml"])
def test_finds(content_type):
    found = {text: extract(text.encode(), content_type, URL).links for text, _ in CASES}
    assert found == {text: [(href, F.FEED) for href in links] for text, links in CASES}


def test_xml_base_of_a_feed():
    text = b"<feed xml:base='http://o.example/b/'><link href='x'/></feed>"
    assert extract(text, "application/atom+xml", URL).base == "http://o.example/b/"
