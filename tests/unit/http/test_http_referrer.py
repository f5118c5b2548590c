"""Referer as browsers send it, cut by strict-origin-when-cross-origin."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.http.referrer import comes_from_nowhere, referer
from muniment.model.link import FoundAs
from muniment.model.url import origin_of

PAGE = "https://a.example/dir/page?x=1"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://a.example/image.png", PAGE),
        ("https://a.example/", PAGE),
        ("https://a.example:8443/image.png", "https://a.example/"),
        ("https://www.a.example/image.png", "https://a.example/"),
        ("https://a.example.evil.example/", "https://a.example/"),
        ("https://b.example/image.png", "https://a.example/"),
        ("http://a.example/image.png", ""),
        ("http://b.example/image.png", ""),
    ],
)
def test_from_https(url: str, said: str) -> None:
    assert referer(url, PAGE) == said


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://a.example:81/image.png", "http://a.example:81/page"),
        ("https://a.example:81/image.png", "http://a.example:81/"),
        ("http://a.example:8/image.png", "http://a.example:81/"),
        ("http://a.example/image.png", "http://a.example:81/"),
        ("https://b.example/", "http://a.example:81/"),
    ],
)
def test_from_http_another_port_or_scheme_is_another_origin(url: str, said: str) -> None:
    assert referer(url, "http://a.example:81/page") == said


@pytest.mark.parametrize("url", ["http://a.example/image.png", "http://b.example/"])
def test_neither_fragment_nor_account_is_told(url: str) -> None:
    said = referer(url, "http://me:hush@a.example/page?q=@#part")
    assert said == ("http://a.example/page?q=@" if "//a." in url else "http://a.example/")


def test_a_url_of_more_than_4096_characters_is_cut_to_its_origin() -> None:
    base = "http://a.example/"
    longest = base + "x" * (4096 - len(base))
    assert referer(base, longest) == longest
    assert referer(base, longest + "#fragment") == longest
    assert referer(base, longest + "x") == base


@pytest.mark.parametrize("referrer", ["", "ftp://a.example/", "mailto:me@a.example", "about:blank"])
def test_what_is_no_page_of_the_web_is_not_named(referrer: str) -> None:
    assert referer("http://a.example/", referrer) == ""


def test_who_is_led_by_nobody() -> None:
    nowhere = {found_as for found_as in FoundAs if comes_from_nowhere(found_as.value)}
    assert nowhere == {FoundAs.START, FoundAs.ROBOTS, FoundAs.SITEMAP, FoundAs.SITEMAP_URL}


_URLS = st.builds(
    "{}://{}{}/{}".format,
    st.sampled_from(["http", "https"]),
    st.sampled_from(["a.example", "b.example", "[::1]", "10.0.0.1"]),
    st.sampled_from(["", ":81", ":8081"]),
    st.text("ab/?@:", max_size=8),
)


@given(_URLS, _URLS)
def test_other_origins_never_see_more_than_an_origin(url: str, referrer: str) -> None:
    said = referer(url, referrer)
    if origin_of(url) == origin_of(referrer):
        assert said == referrer
    elif referrer.startswith("https:") and url.startswith("http:"):
        assert said == ""
    else:
        assert said == f"{origin_of(referrer)}/"
