"""Keys and lines of CDXJ, without files."""

from __future__ import annotations

import random
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.archive.export import cdxj
from muniment.archive.export.surt import surt

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from surt import surt as reference

URLS = (
    "http://example.com", "http://example.com/", "https://example.com:443/x", "https://example.com:8080/x",
    "http://www.Example.com/A/b/../C/./d//e/", "http://www2.example.com/?b=2&a=1", "http://example.com/?",
    "http://example.com/?a&b=&c=1&a=0", "http://example.com/%7Efoo%2541/%2e%2e/bar", "http://example.com/a%20b c",
    "http://example.com/ä/ö?ü=ß", "http://bücher.example/", "http://user:pw@example.com/x#frag",
    "http://127.0.0.1:8000/p?q=1", "http://[::1]:80/x", "http://example.com?x=1",
    "http://example.com/a?jsessionid=0123456789abcdef0123456789abcdef&x=1",
    "http://example.com/a?x=1&PHPSESSID=0123456789abcdef0123456789abcdef",
    "http://example.com/a?x=1&sid=0123456789abcdef0123456789abcdef&y=2",
    "http://example.com/a?ASPSESSIONIDABCDEFGH=abcdefghabcdefghabcdefgh&y=2",
    "http://example.com/a?cfid=1&cftoken=2&z=1", "http://example.com/(S(0123456789abcdefghijklmn))/a.aspx",
    "http://example.com/(0123456789abcdefghijklmn)/a.aspx?x=1", "http://example.com/%zz%25zz",
    "http://example.com/%00%01%7f%80%ff", "http://example..com./x", "http://www.www.example.com/",
    "http://example.com/..//../a", "http://example.com/?q=%26%3D+", "http://example.com/a\\b", "http://a_b.example/",
    "http://example.com/?url=http://other.example/?x=1", "http://example.com/%2F%2f/a", "http://example.com:0080/x",
)  # fmt: skip
PIECES = ["a", "B", "%", "2", "5", "/", ".", "..", "&", "=", "?", ";", "ä", "%20", "%2e", "%252e", "+", "(", ")", "//"]


def test_keys_are_those_of_the_reference() -> None:
    assert [(url, surt(url)) for url in URLS] == [(url, reference(url)) for url in URLS]


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_keys_of_odd_paths_and_queries_are_those_of_the_reference(pieces: list[str]) -> None:
    url = "http://example.org/" + "".join(pieces)
    assert surt(url) == reference(url)


@pytest.mark.parametrize(("at_once", "merged"), [(1000, 64), (7, 64), (7, 2)])
def test_lines_are_sorted_whatever_fits_into_memory(monkeypatch: pytest.MonkeyPatch, at_once: int, merged: int) -> None:
    monkeypatch.setattr(cdxj, "_AT_ONCE", at_once)
    monkeypatch.setattr(cdxj, "_MERGED", merged)
    lines = [f"{random.Random(number).random()} {number}\n" for number in range(200)]
    assert list(cdxj.sorted_lines(iter(lines))) == sorted(lines)
    assert list(cdxj.sorted_lines(iter(()))) == []
