"""Nothing raises, and time follows the input's length, whatever the bytes."""

from __future__ import annotations

import subprocess
import sys
import time
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.extract import html as html_module
from muniment.extract import link_collector as found_module
from muniment.extract.link_collector import MOST_LINKS, cleaned
from muniment.extract.links import extract
from muniment.model.link import FoundAs as F

URL = "http://a.example/"
_PIECES = st.sampled_from(
    b"<a |<img |<style>|</style>|<noframes>|</noframes>|<noscript>|<template>|</template>|<base |<meta |<svg>|<table>"
    b"|href=|src=|style=|srcset=|http-equiv=refresh |content=|>|/>|'|\"|url(|@import |/*|*/|\\|<!--|-->|&amp;|&#x|x|;"
    b"| |\0|\xff|\xef\xbb\xbf|\xff\xfe|http://[|javascript:|]]>|<![CDATA[|</|<b id=1>|<p>".split(b"|")
)
_SOUP = st.lists(_PIECES, max_size=40).map(b"".join)
_TYPES = st.sampled_from(
    ["text/html", "text/html; charset=utf-16", "text/html; charset=shift_jis", "text/html;charset=replacement",
     "text/css", "text/css; charset=utf-16", "application/xhtml+xml", "", ";", "charset=", "text/html; charset=\0"]
)  # fmt: skip


@given(st.one_of(st.binary(max_size=400), _SOUP), st.one_of(_TYPES, st.text(max_size=30)))
def test_never_raises(payload: bytes, content_type: str) -> None:
    found = extract(payload, content_type, URL)
    assert len(set(found.links)) == len(found.links)
    assert len(set(found.anchors)) == len(found.anchors)
    for raw in found.anchors:
        cleaned(raw).encode()
    for href, found_as in found.links:
        assert href
        assert isinstance(found_as, F)
        href.encode()


@given(_SOUP, st.text(max_size=20))
def test_never_raises_on_any_url(payload: bytes, url: str) -> None:
    extract(payload, "text/html", url)


_MEGABYTE = 1_000_000
_CSS = [
    "url(", "@import", "@import ", "/*", "*/", "\\", '"', 'url("', "url('x' ", "@import url(", "@import/*", "u", "@",
    "url(\\", "@import '", "/* */@import", "url( ", "@import  ", "\\75", "@namespace", "'\n", "url('\n",
    "image-set(", "image-set('", "image-set()", "-webkit-image-set('a'", "i",
]  # fmt: skip


@pytest.mark.parametrize("piece", _CSS)
def test_css_time_is_linear(piece: str) -> None:
    payload = (piece * (_MEGABYTE // len(piece))).encode()
    started = time.process_time()
    extract(payload, "text/css", URL)
    assert time.process_time() - started < 2


_TAGS = [
    "div", "b", "a", "table", "svg", "template", "noscript", "p", "table><tr><td", "i><p", "form", "button", "math><mi",
    "noframes", "object", "select><option", "ul><li",
]  # fmt: skip


@pytest.mark.parametrize("tag", _TAGS)
def test_deep_nesting(tag: str) -> None:
    payload = f"<{tag}>".encode() * 20_000 + b"<a href=x>"
    started = time.process_time()
    assert extract(payload, "text/html", URL).anchors in (["x"], [])
    assert time.process_time() - started < 3


_XML = [
    "<", "<loc", "<loc>", "<!--", "<![CDATA[", "]]>", '<loc a="', "<loc a='", "<a:", "a:", "<loc><![CDATA[", "&", "&#",
    "<?", "<!DOCTYPE [", "<link href='x'", "<?xml-stylesheet ", "http://", "http://a\n", "\n ", "<loc> ", "Sitemap: ",
    "Sitemap:a\n",
]  # fmt: skip


@pytest.mark.parametrize("found_as", [F.SITEMAP, F.ROBOTS, F.A])
@pytest.mark.parametrize("piece", _XML)
def test_xml_time_is_linear(piece: str, found_as: F) -> None:
    body = piece * (_MEGABYTE // len(piece))
    started = time.process_time()
    for head in ("", "<urlset>", "<rss>"):
        extract((head + body).encode(), "application/xml", URL, found_as)
    assert time.process_time() - started < 2


_OTHER_SOUP = st.lists(
    st.sampled_from(
        ["<urlset>", "<sitemapindex>", "<loc>", "</loc>", "<rss>", "<feed xml:base='http://[' >", "<link href='x'/>",
         "<![CDATA[", "]]>", "<!--", "-->", "&#x", "&amp;", "http://a/\n", "Sitemap: x\n", "{", "}", "[", "]", ",",
         "<?xml version='1.0' encoding='utf-7'?>", '"icons":', '"src":"x"', "\x1f\x8b", "\ufeff", "\0"]
    ),
    max_size=30,
).map("".join)  # fmt: skip


@given(
    _OTHER_SOUP,
    st.sampled_from(["application/xml", "text/plain", "application/manifest+json", "", "text/xml; charset=base64"]),
    st.sampled_from([F.SITEMAP, F.ROBOTS, F.MANIFEST, F.A]),
)
def test_never_raises_on_what_is_for_machines(text: str, content_type: str, found_as: F) -> None:
    for href, _ in extract(text.encode(), content_type, URL, found_as).links:
        assert href


_ATTRIBUTES = [
    b"<img srcset='" + b"a (," * 200_000 + b"'>",
    b"<img srcset='" + b"," * 1_000_000 + b"'>",
    b"<img srcset='a " + b"(" * 1_000_000 + b"'>",
    b"<meta http-equiv=refresh content='" + b" " * 1_000_000 + b"x'>",
    b"<meta http-equiv=refresh content='" + b"1." * 500_000 + b"x'>",
    b"<p style='" + b"url(" * 500_000 + b"'>",
    b"<a " + b"href=x " * 200_000 + b">",
    b"<noframes><noscript>" * 50_000,
    b"<script src=x " * 100_000 + b"/>",
]


@pytest.mark.parametrize("payload", _ATTRIBUTES, ids=range(len(_ATTRIBUTES)))
@pytest.mark.parametrize("content_type", ["text/html", "application/xhtml+xml"])
def test_attribute_time_is_linear(payload: bytes, content_type: str) -> None:
    started = time.process_time()
    extract(payload, content_type, URL)
    assert time.process_time() - started < 5


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_open_formatting_elements_do_not_multiply(encoding: str) -> None:
    markup = "".join(f"<b id={n}><p>" for n in range(60_000)) + "<a href=x><noframes><a href=y></noframes>"
    started = time.process_time()
    assert extract(markup.encode(encoding), "text/html", URL).anchors == ["x", "y"]
    assert time.process_time() - started < 3


_BOTH = ["<a href=x>", "<style>b{c:url(u)}</style>", "<p style='c:url(v)'>", "<noscript><img src=n></noscript>",
         "<noframes><a href=m></noframes>", "<svg><feImage href=f /></svg>", "<template><img src=t></template>",
         "<base href=b>", "<link rel=icon href=i>", "<video src=w poster=q></video>",
         "<img data-lazy-src=l>", "<p data-bg=g>", "<p onclick=\"location='k'\">", "<i data-src=/d>",
         "<script type=module>import './s.js'</script>", "<svg><g fill='url(z.svg)'/></svg>", "<amp-img src=a1>",
         "<a href=\"javascript:open('a2')\">", "<script type=application/ld+json>{\"url\":\"j\"}</script>",
         "<meta property=og:url content=o><meta name=robots content=none>"]  # fmt: skip


def test_tokens_and_tree_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    payloads = [f"<body>{first}<a href=between>{second}".encode() for first, second in product(_BOTH, repeat=2)]
    by_tree = {payload: extract(payload, "text/html", URL) for payload in payloads}
    monkeypatch.setattr(html_module, "_may_explode", lambda _: True)
    assert {payload for payload in payloads if extract(payload, "text/html", URL) != by_tree[payload]} == set()


@pytest.mark.parametrize("tag", ["b", "div", "b id=1", "p"])
def test_a_body_of_nothing_but_tags_takes_seconds_and_not_a_minute(tag: str) -> None:
    payload = f"<{tag}>".encode() * ((16 << 20) // (len(tag) + 2))
    started = time.process_time()
    extract(payload, "text/html", URL)
    assert time.process_time() - started < 10


def test_a_document_that_is_parsed_in_slices_has_the_same_links() -> None:
    words = b"<p>" + b"word " * 200 + b"</p>"
    pages = [words * 40 + b'<a href="/%d">' % n for n in range(300)]
    found = extract(b"<base href=/b/>" + b"".join(pages) + b"<p>\0</p>", "text/html", URL)
    assert found.anchors == [f"/{n}" for n in range(300)]
    assert found.base.endswith("/b/")


def test_nuls_do_not_take_fifty_times_their_memory() -> None:
    measure = (
        "import resource; from muniment.extract.links import extract; used = lambda: resource.getrusage(0).ru_maxrss;"
        "data = b'<p>' + bytes((4 << 20) - 20) + b'<a href=x>'; before = used();"
        "assert extract(data, 'text/html', '').anchors == ['x']; print(used() - before)"
    )
    done = subprocess.run([sys.executable, "-c", measure], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 60_000, "in KB"


def _numbered(count: int, markup: str, first: int = 0) -> bytes:
    return "".join(markup.format(n) for n in range(first, first + count)).encode()


@pytest.mark.parametrize(
    ("content_type", "markup"),
    [("text/html", "<a href={}>"), ("text/html", "<img src={}>"), ("text/css", "a{{b:url({})}}")],
)
def test_a_document_leads_to_so_many_others_and_no_more(content_type: str, markup: str) -> None:
    found = extract(_numbered(MOST_LINKS + 10, markup), content_type, URL)
    hrefs = [*found.anchors, *[href for href, _ in found.links]]
    assert hrefs == [str(n) for n in range(MOST_LINKS)]
    assert found.dropped == 10


def test_what_is_dropped_is_counted_once_for_what_it_leads_to() -> None:
    """Parts of a page that is followed are nothing that is lost; nor is what nobody fetches."""
    more = b"".join(b"<a href=%s>" % href for href in (b"7#a", b"lost#a", b"lost#b", b"#a", b"mailto:a@b", b"other"))
    images = b"<img src=x><img src=y>"
    found = extract(images + _numbered(MOST_LINKS - 2, "<a href={}>") + more, "text/html", URL)
    assert (len(found.links), len(found.anchors), found.dropped) == (2, MOST_LINKS - 2, 2)
    assert extract(images + _numbered(MOST_LINKS - 2, "<a href={}>"), "text/html", URL).dropped == 0


def test_no_more_of_them_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found_module, "MOST_LINKS", 3)
    found = found_module.LinkCollector()
    for n in range(9):
        found.add(str(n), F.IMG)
    assert [href for href, _ in found.links] == ["0", "1", "2"]


def test_references_that_are_not_links_count_too() -> None:
    found = extract(b"<img src=x>" + _numbered(MOST_LINKS, "<a href={}>"), "text/html", URL)
    assert (len(found.links), len(found.anchors)) == (1, MOST_LINKS - 1)


def test_a_document_with_more_links_than_enough_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_module, "_MOST_AT_ONCE", 1000)
    monkeypatch.setattr(html_module, "_ENOUGH", 200)
    found = extract(b"<a href=same>" * 1000 + b"<a href=other>", "text/html", URL)
    assert found.anchors == ["same"]


def test_a_long_base_bounds_the_number_of_links_that_are_seen_from_it() -> None:
    base = "http://a.example/" + "x" * 7000 + "/"
    found = extract(f"<base href={base}>".encode() + _numbered(5_000, "<a href={}>"), "text/html", URL)
    assert found.base == base
    assert 2_000 < len(found.anchors) < 2_500
    assert found.dropped == 5_000 - len(found.anchors)


def test_a_line_without_a_tag_is_passed_over() -> None:
    assert extract(b"<p>" + b"a" * (9 << 20) + b"<a href=x>", "text/html", URL).anchors == ["x"]


def test_a_srcdoc_may_not_explode_either() -> None:
    inner = "".join(f"&lt;b id={n}>&lt;p>" for n in range(60_000))
    started = time.process_time()
    found = extract(f'<iframe srcdoc="{inner}&lt;img src=x.png>"></iframe>'.encode(), "text/html", URL)
    assert found.links == [("x.png", F.IMG)]
    assert time.process_time() - started < 3
