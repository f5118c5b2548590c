"""Idents: those that ArchiveBot's programs compute; the values come from its libraries for Ruby."""

from __future__ import annotations

from itertools import islice

import pytest

from muniment.live.ident import LEAST_LENGTH, candidates, ident_of, normal_form


@pytest.mark.parametrize(
    ("url", "normal", "ident"),
    [
        ("http://example.com./a%7Eb?x=%2F&y=%2B#", "http://example.com/a~b?x=/&y=%2B", "85h4ot88ryxcd9uwbvo49vus1"),
        ("http://bücher.de/u%CC%88", "http://xn--bcher-kva.de/%C3%BC", "d4kpana9knzbmb5hfz4we5l4h"),
        ("http://example.com/x?q=%23%26#a%20b", "http://example.com/x?q=%23%26#a%20b", "3wg210kh141olyy2ee05vuq0l"),
        ("http://example.com:0443/", "http://example.com:443/", "79kvv2tl2nwwray70z6lyt9ih"),
        ("http://Example.com//../", "http://example.com/", "9tfs9o6557kgozy0wlqrzal3o"),
    ],
)
def test_an_ident_is_that_of_archivebot(url: str, normal: str, ident: str) -> None:
    assert (normal_form(url), ident_of(url)) == (normal, ident)


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("http://example.com/?", "http://example.com/"),
        ("http://example.com", "http://example.com/"),
        ("HTTP://example.com:80/a/./b/../c", "http://example.com/a/c"),
        ("http://example.com/%2e%2e/a", "http://example.com/a"),
        ("http://example.com/a%2Fb%3fc", "http://example.com/a%2Fb%3Fc"),
        ("http://example.com/?[x]={y}|z", "http://example.com/?%5Bx%5D=%7By%7D%7Cz"),
        ("http://example.com/x?q=a+b%20c%2b", "http://example.com/x?q=a+b%20c%2B"),
        ("http://[::1]:8080/x", "http://[::1]:8080/x"),
    ],
)
def test_the_normal_form(url: str, normal: str) -> None:
    assert normal_form(url) == normal


def test_a_short_or_taken_ident_gets_a_fragment() -> None:
    for number in range(200):
        url = f"http://example.com/{number}"
        found = list(islice(candidates(url), 3))
        assert all(len(ident) >= LEAST_LENGTH and ident == ident_of(told) for ident, told in found)
        assert all(told == url or told.startswith(f"{url}#") for _, told in found)
        assert len({ident for ident, _ in found}) == 3
