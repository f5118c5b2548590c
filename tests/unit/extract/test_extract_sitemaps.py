"""What sitemaps list, in every form that they come in, and which documents are taken for one."""

from __future__ import annotations

import gzip

import pytest

from muniment.extract.links import extract
from muniment.extract.sitemap import robots_sitemaps
from muniment.model.link import FoundAs as F

URL = "http://site.example/sitemap.xml"
XML = "application/xml"
NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def read(text, content_type=XML, found_as=F.SITEMAP):
    payload = text.encode() if isinstance(text, str) else text
    return extract(payload, content_type, URL, found_as).links


def listed(*urls):
    return [(url, F.SITEMAP_URL) for url in urls]


LISTS = [
    (f"<urlset {NS}><url><loc>http://a/1</loc></url><url><loc> \n http://a/2\t</loc></url></urlset>", ["http://a/1", "http://a/2"]),
    ("<?xml version='1.0'?><!-- <loc>no</loc> --><urlset><LOC>x</LOC></urlset>", ["x"]),
    ("<?xml version='1.0'?>\n<!DOCTYPE urlset [<!ENTITY e 'x'>]><urlset><loc>a&e;</loc></urlset>", ["a&e;"]),
    ("<s:urlset xmlns:s='y'><s:url><s:loc>x</s:loc></s:url></s:urlset>", ["x"]),
    ("<urlset><loc>a?x=1&amp;y=2&#38;z&#x26;w</loc></urlset>", ["a?x=1&y=2&z&w"]),
    ("<urlset><loc>a?b=1&copy=2</loc></urlset>", ["a?b=1&copy=2"]),
    ("<urlset><loc><![CDATA[http://a/?x&y]]></loc></urlset>", ["http://a/?x&y"]),
    ("<urlset><![CDATA[<loc>no</loc>]]><loc>x</loc></urlset>", ["x"]),
    ("<urlset><loc>x</loc><lastmod>2020</lastmod><location>no</location></urlset>", ["x"]),
    ("<urlset><loc/><loc></loc><loc>x<", ["x"]),
    ("<urlset><loc>x</loc><loc>x</loc></urlset>", ["x"]),
    ("<urlset><url><loc>x</loc><image:image><image:loc>i.png</image:loc></image:image><video:video>"
     "<video:content_loc>v.mp4</video:content_loc><video:thumbnail_loc>t.png</video:thumbnail_loc></video:video>"
     "<xhtml:link rel='alternate' hreflang='de' href='de?a&amp;b'/></url></urlset>",
     ["x", "i.png", "v.mp4", "t.png", "de?a&b"]),
    ("http://a/1\r\nhttps://a/2 \n\n# no\nno\nHTTP://a/3 x\n\ufeffhttp://a/4", ["http://a/1", "https://a/2", "http://a/4"]),
    ("\ufeffhttp://a/1", ["http://a/1"]),
    ("<rss><channel><link>x</link><item><link>y</link></item></channel></rss>", ["x", "y"]),
    ("<feed><entry><link href='x'/></entry></feed>", ["x"]),
    ("<other><loc>x</loc></other>", []),
    ("<!-- never closed <urlset><loc>x</loc>", []),
    ("", []),
]  # fmt: skip


@pytest.mark.parametrize("content_type", [XML, "text/xml; charset=utf-8", "text/plain", "", "application/rss+xml"])
def test_a_sitemap_lists(content_type):
    assert [text for text, urls in LISTS if read(text, content_type) != listed(*urls)] == []


@pytest.mark.parametrize(
    "content_type", ["application/gzip", "application/x-gzip", "application/octet-stream", "text/xml"]
)
def test_a_compressed_sitemap_lists(content_type):
    assert read(gzip.compress(b"<urlset><loc>x</loc></urlset>"), content_type) == listed("x")
    assert read(gzip.compress(b"http://a/1\n"), content_type) == listed("http://a/1")


def test_a_damaged_compressed_sitemap_lists_what_came_out():
    whole = gzip.compress("".join(f"<loc>http://a/{n}</loc>" for n in range(5000)).join(["<urlset>", ""]).encode())
    assert len(read(whole[: len(whole) // 2], "application/gzip")) > 100


NOTICE = "<br />\n<b>Notice</b>:  Undefined index: a in <b>/srv/s.php</b> on line <b>3</b><br />\n"


@pytest.mark.parametrize("content_type", [XML, "text/html; charset=UTF-8", "text/html", ""])
def test_a_notice_before_a_sitemap_is_passed_over(content_type):
    declared = "<?xml version='1.0' encoding='iso-8859-1'?>"
    for text in (
        f"{NOTICE}{declared}<urlset><loc>é</loc></urlset>",
        f"\ufeff\r\n{declared}<urlset><loc>é</loc></urlset>",
        f"{declared}{NOTICE}<s:urlset xmlns:s='y'><s:loc>é</s:loc></s:urlset>",
    ):
        payload = text.encode("utf-8" if text[0] == "\ufeff" else "latin-1", "replace")
        payload = payload.replace("é".encode(), b"\xe9")
        assert read(payload, content_type.partition(";")[0]) == listed("é")
    index = f"{NOTICE}<sitemapindex><sitemap><loc>a.xml</loc></sitemap></sitemapindex>"
    assert read(index, content_type) == [("a.xml", F.SITEMAP)]
    assert read(f"{NOTICE}<p>Nothing <img src=x>", "text/html") == [("x", F.IMG)]


HALVES = [
    "",
    "<url><loc>http://s/2",
    "<url><loc> ",
    "<url><loc",
    "<url><loc><![CDATA[http://s/2",
    "<url><loc><![CDATA[x]]",
]


@pytest.mark.parametrize("half", HALVES)
def test_half_an_address_at_the_end_is_none(half):
    assert read("<urlset><url><loc>http://s/1</loc></url>" + half) == listed("http://s/1")


def test_an_index_names_sitemaps():
    text = (
        f"<sitemapindex {NS}><sitemap><loc>a.xml.gz</loc></sitemap><sitemap><loc>b.xml</loc></sitemap></sitemapindex>"
    )
    assert read(text) == [("a.xml.gz", F.SITEMAP), ("b.xml", F.SITEMAP)]


def test_a_sitemap_that_a_page_links_to_is_a_page():
    assert read("<urlset><loc>x</loc></urlset>", found_as=F.A) == [("x", F.LINK)]
    assert read("<sitemapindex><loc>x</loc></sitemapindex>", found_as=F.LINK) == [("x", F.LINK)]


def test_a_page_of_words_in_place_of_a_sitemap_is_read_as_a_page():
    assert read("<!doctype html><img src=x>", "text/html") == [("x", F.IMG)]


def test_its_style_sheet_is_found():
    text = "<?xml version='1.0'?><?xml-stylesheet type='text/xsl' href='/s.xsl?a&amp;b'?><urlset><loc>x</loc></urlset>"
    assert read(text) == [("/s.xsl?a&b", F.STYLESHEET), ("x", F.SITEMAP_URL)]


@pytest.mark.parametrize("encoding", ["iso-8859-1", "windows-1251", "utf-16", "utf-8"])
def test_the_xml_declaration_names_the_charset(encoding):
    url = f"http://a/{'ж' if '125' in encoding else 'é'}"
    text = f"<?xml version='1.0' encoding='{encoding}'?><urlset><loc>{url}</loc></urlset>"
    assert read(text.encode(encoding)) == listed(url)


ROBOTS = [
    ("Sitemap: http://a/s.xml", ["http://a/s.xml"]),
    ("\ufeffUser-agent: *\r\nDisallow:\r\n  SITEMAP :  /s.xml  \r\nsitemap:two.xml # comment", ["/s.xml", "two.xml"]),
    ("# Sitemap: http://a/no\nSitemap:\nXsitemap: no\nSitemap: a\nSitemap: a", ["a"]),
    ("", []),
]


@pytest.mark.parametrize(("text", "names"), ROBOTS)
def test_robots_txt_names_sitemaps(text, names):
    assert list(robots_sitemaps(text)) == names
    assert read(text, "text/plain", F.ROBOTS) == [(name, F.SITEMAP) for name in names]


def test_one_robots_txt_names_a_thousand_at_most():
    assert len(robots_sitemaps("".join(f"Sitemap: /{n}\n" for n in range(5000)))) == 1000


@pytest.mark.parametrize("content_type", ["text/plain", "application/pdf", "application/json", "image/svg+xml; x"])
def test_text_and_pdf_are_left_alone(content_type):
    assert read("http://a/1\n", content_type, F.A) == []
