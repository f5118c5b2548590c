"""Which reader a payload gets."""

from __future__ import annotations

import pytest

from muniment.extract.links import extract
from muniment.model.link import FoundAs as F

HTML = b"<a href=x>"

READ = [
    (HTML, "text/html"),
    (HTML, " Text/HTML ;charset=x"),
    (HTML, "application/xhtml+xml"),
    (HTML, ""),
    (HTML, "application/octet-stream"),
    (HTML, "*/*"),
    (b"\xef\xbb\xbf \n<!DOCTYPE HTML><a href=x>", ""),
    (b"<?xml version='1.0'?>\n<html><a href=x>", ""),
    (b"<!-- c --><a href=x>", ""),
    (b"a{b:url(x)}", "text/css; charset=utf-8"),
    (b"a{b:url(x)}", "TEXT/CSS"),
    # several fields are one list: the last valid type counts
    (HTML, "text/plain, text/html"),
    (HTML, "text/html, nonsense, */*"),
    (HTML, 'text/plain;x="a, text/css", text/html;charset=utf-8, text/html'),
    # none is valid: the first bytes say it
    (HTML, "html"),
    (HTML, "text/html charset=utf-8"),
    (HTML, "text/, ;charset=utf-8"),
    (b"<?xml version='1.0'?><rss><item><link>x</link></item></rss>", ""),
]
UNREAD = [
    (HTML, "text/plain"),
    (HTML, "image/png"),
    (HTML, "application/json"),
    (b"", ""),
    (b"plain words <a href=x>", ""),
    (b"<abbr><a href=x>", ""),
    (b"\x89PNG<html><a href=x>", ""),
    (b"a{b:url(x)}", ""),
    (HTML, "text/html, text/plain"),
    (HTML, "text/html, image/png"),
    (HTML.rjust(1460), ""),
]


@pytest.mark.parametrize(("payload", "content_type"), READ)
def test_read(payload: bytes, content_type: str) -> None:
    found = extract(payload, content_type, "http://a.example/")
    assert [href for href, _ in found.links] + found.anchors == ["x"]
    assert found.base == "http://a.example/"


@pytest.mark.parametrize(("payload", "content_type"), UNREAD)
def test_unread(payload: bytes, content_type: str) -> None:
    found = extract(payload, content_type, "http://a.example/")
    assert (found.links, found.anchors) == ([], [])


def test_a_style_sheet_and_a_robots_txt_are_what_they_were_asked_for() -> None:
    for kind in ("", "css", "text/plain", "application/octet-stream"):
        assert extract(b"<!-- a{b:url(x)} -->", kind, "http://a.example/", F.STYLESHEET).links == [("x", F.CSS_URL)]
    assert extract(b"<p>a{b:url(x)}", "text/html", "http://a.example/", F.CSS_IMPORT).links == []
    robots = b"User-agent: *\nSitemap: /s.xml\n"
    assert extract(robots, "text/html, text/plain", "http://a.example/", F.ROBOTS).links == [("/s.xml", F.SITEMAP)]
    assert extract(robots, "text/html", "http://a.example/", F.ROBOTS).links == [("/s.xml", F.SITEMAP)]


def test_the_charset_stays_with_its_type() -> None:
    payload = "<a href=é>".encode("latin-1") + "<!-- é -->".encode()
    for fields in (
        "text/html;charset=utf-8, text/html",
        'text/html; charset="utf-8"',
        "text/plain, text/html;charset=UTF-8",
    ):
        assert extract(payload, fields, "http://a.example/").anchors == ["\ufffd"]
    for fields in (
        "text/html;charset=utf-8, text/plain, text/html;charset=latin1",
        "text/html;charset =utf-8;charset=latin1",
    ):
        assert extract(payload, fields, "http://a.example/").anchors == ["é"]
