"""URLs: the one normal form and its parts."""

from __future__ import annotations

import ada_url
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.model import url as url_module
from muniment.model.url import (
    directory_of,
    host_of,
    normalise,
    normalise_any,
    normalise_page,
    origin_of,
    path_of,
    resolve,
    route_of,
    url_key,
    without_route,
)

NORMAL_FORMS = [
    ("HTTP://Example.COM:80/", "http://example.com/"),
    ("https://a.example:443/x", "https://a.example/x"),
    ("http://a.example:443/", "http://a.example:443/"),
    ("https://a.example:0/", "https://a.example:0/"),
    ("http://[2001:DB8:0::1]:80/", "http://[2001:db8::1]/"),
    ("http://[2001:db8::1]:8080/x", "http://[2001:db8::1]:8080/x"),
    ("http://bücher.example/ü?q=ü", "http://xn--bcher-kva.example/%C3%BC?q=%C3%BC"),
    ("http://EXAMPLE.example./", "http://example.example./"),
    ("http://127.1/", "http://127.0.0.1/"),
    ("http://0x7f.1/", "http://127.0.0.1/"),
    ("http://u:p@a.example/x@y", "http://a.example/x@y"),
    ("http://u:p%40q@a.example/", "http://a.example/"),
    ("http://u@v@a.example/", "http://a.example/"),
    ("http://:@a.example/", "http://a.example/"),
    ("http://a.example/a/../b/./c", "http://a.example/b/c"),
    ("http://a.example/../../b", "http://a.example/b"),
    ("http://a.example/%2e%2E/b", "http://a.example/b"),
    ("http://a.example//x//y", "http://a.example//x//y"),
    ("http://a.example?b=2&a=1&b=1", "http://a.example/?b=2&a=1&b=1"),
    ("http://a.example/?", "http://a.example/?"),
    ("http://a.example/x#part", "http://a.example/x"),
    ("http://a.example/?#", "http://a.example/?"),
    ("http://a.example/x?y#z?@#", "http://a.example/x?y"),
    ("http://a.example/%7e%41", "http://a.example/%7e%41"),
    ("  http://a.example/ \n", "http://a.example/"),
    ("http://a.exam\tple/\nx", "http://a.example/x"),
    ("http:\\\\a.example\\x", "http://a.example/x"),
    ("http:a.example", "http://a.example/"),
    ("http://a.example/a b", "http://a.example/a%20b"),
    ("http://a_b.example/", "http://a_b.example/"),
]


def test_normal_form():
    assert {text: normalise(text) for text, _ in NORMAL_FORMS} == dict(NORMAL_FORMS)
    assert [url for _, url in NORMAL_FORMS if normalise(url) != url] == []


NO_WEB_URLS = [
    "", "/x", "x", "a.example", "//a.example/", "mailto:x@a.example", "ftp://a.example/", "javascript:1", "data:,x",
    "file:///x", "ws://a.example/", "about:blank", "blob:http://a.example/x", "http://", "https:///", "http://?x",
    "http://a.example:99999/", "http://a.example:x/", "http://[::1", "http://[::1%25lo]/", "http://a b.example/",
    "http://256.0.0.1/", "\ud800", "http://a.example/\ud800", "httpx://a.example/", "view-source:http://a.example/",
]  # fmt: skip


def test_what_is_no_web_url():
    assert [text for text in NO_WEB_URLS if normalise(text) is not None] == []


@pytest.mark.parametrize(
    ("url", "host", "origin", "path", "directory"),
    [
        ("https://a.example/", "a.example", "https://a.example", "/", "https://a.example/"),
        (
            "https://a.example:8443/d/x?y=/z/",
            "a.example",
            "https://a.example:8443",
            "/d/x",
            "https://a.example:8443/d/",
        ),
        ("http://a.example/d/?q", "a.example", "http://a.example", "/d/", "http://a.example/d/"),
        ("http://a.example/?http://b.example/x", "a.example", "http://a.example", "/", "http://a.example/"),
        ("http://a.example/x:1@y", "a.example", "http://a.example", "/x:1@y", "http://a.example/"),
        ("http://[2001:db8::1]/x", "[2001:db8::1]", "http://[2001:db8::1]", "/x", "http://[2001:db8::1]/"),
        ("http://[::1]:81//x", "[::1]", "http://[::1]:81", "//x", "http://[::1]:81//"),
    ],
)
def test_parts(url, host, origin, path, directory):
    assert normalise(url) == url
    assert (host_of(url), origin_of(url), path_of(url), directory_of(url)) == (host, origin, path, directory)


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("", "https://a.example/d/x?q"),
        ("#part", "https://a.example/d/x?q"),
        ("?r", "https://a.example/d/x?r"),
        ("y", "https://a.example/d/y"),
        ("./y/../z", "https://a.example/d/z"),
        ("../../../y", "https://a.example/y"),
        ("/y", "https://a.example/y"),
        ("//b.example", "https://b.example/"),
        ("http://b.example/#x", "http://b.example/"),
        ("https:y", "https://a.example/d/y"),
        (" y\n", "https://a.example/d/y"),
        ("mailto:x", None),
        ("javascript:void(0)", None),
        ("http://[", None),
        ("//u:p@b.example/", "https://b.example/"),
    ],
)
def test_resolve(href, url):
    assert resolve("https://a.example/d/x?q", href) == url


SPECIAL = st.text("ah:/?#@[]%.\\ \tü\ud800\x00\u202e0", max_size=20)


@settings(deadline=None, max_examples=500)
@given(st.text(max_size=30) | SPECIAL | SPECIAL.map("http://".__add__), st.text(max_size=30) | SPECIAL)
def test_resolve_never_raises_and_gives_the_normal_form(base, href):
    url = resolve(base, href)
    if url is not None:
        assert normalise(url) == url
        assert url.startswith(origin_of(url) + path_of(url))
        assert directory_of(url).startswith(origin_of(url) + "/")
        assert "#" not in url
        assert "@" not in origin_of(url)
        assert url.isascii()
        assert host_of(url)
        assert len(url_key(url)) == 16


def test_resolve_takes_a_base_that_is_none():
    assert resolve("junk", "x") is None
    assert resolve("junk", "https://a.example/") is None
    assert resolve("", "") is None


def test_different_urls_have_different_keys():
    urls = ["https://a.example/", "https://a.example/?", "http://a.example/", "https://a.example//"]
    assert len({url_key(url) for url in urls}) == len(urls)


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example/", "https://www.a.example/b/c-d_e~f.html?g=h&i=/j", "http://127.0.0.1:18480/5/5-3.html",
        "https://a.example:8443/b%20c/%C3%A9?%zz", "http://a/b//c/", "http://0.0.0.0/", "http://a-.b--c.example:59999/",
    ],
)  # fmt: skip
def test_what_is_in_normal_form_is_seen_at_once(url):
    assert url_module._NORMAL(url)
    assert normalise(url) == normalise_any(url) == url


PIECES = [
    "/", "//", ".", "..", "/.", "/..", "%2e", "%2E", "%41", "%zz", "%", "a", "A", "0", "255", "256", "01", "0x1",
    "xn--", "-", "_", "~", "'", "\\", "|", "^", "{", ":", ":80", ":443", ":8080", ":65536", ":99999", ":0", "@",
    "?", "#", "&", "=", ";", "+", " ", "\t", "\n", "é", "1.2.3.4", "a.example", "com", "127.1",
]  # fmt: skip


@settings(max_examples=3_000, deadline=None)
@given(
    st.sampled_from(["http://", "https://"]),
    st.lists(st.sampled_from(PIECES), max_size=5).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=8).map("".join),
)
def test_nothing_is_taken_for_normal_that_is_not(scheme, host, rest):
    for text in (f"{scheme}{host}/{rest}", f"{scheme}a.example{host}/{rest}", f"{scheme}1.2.3.4{host}/{rest}"):
        if url_module._NORMAL(text):
            assert url_module._web(ada_url.normalize_url(text)) == text


@pytest.mark.parametrize(
    ("text", "document", "route"),
    [
        ("http://A.example/#/about", "http://a.example/", "#/about"),
        ("http://a.example/p?q=1#!/team/é x", "http://a.example/p?q=1", "#!/team/%C3%A9%20x"),
        ("http://me:secret@a.example#/x", "http://a.example/", "#/x"),
        *((f"http://a.example/b{odd}", "http://a.example/b", "") for odd in ("", "#", "#/", "#!/", "#part", "#!x")),
    ],
)
def test_a_route_is_a_page_and_other_fragments_are_not(text, document, route):
    page = normalise_page(text)
    assert (normalise(text), route_of(text), page) == (document, route, document + route)
    assert without_route(page) == document
    assert (host_of(page), path_of(page)) == (host_of(document), path_of(document))


def test_what_is_no_url_is_no_page():
    assert (normalise_page("#/x"), normalise_page("ftp://a/#/x"), route_of("/#/x")) == (None, None, "")
