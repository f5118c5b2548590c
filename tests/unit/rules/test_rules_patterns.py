"""Patterns: RE2 and the fallback find what Python's `re` finds, or the pattern is refused when it is given."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from muniment.errors import UsageError
from muniment.rules.patterns import Patterns, expand

URL = "https://www.a.example/path/2024/01/a_b-c.html?q=1&r=%C3%BC&x={1},[2]"
URLS = [
    URL,
    "https://a.example/",
    "http://a.example:8080//x/x/x/",
    "https://a.example/AbC.JPG?b=2&a=1",
    "https://a.example/{,3}",
]


def found(pattern: str, url: str) -> bool:
    return Patterns([pattern]).match(url) == pattern


PATTERNS = [
    "example", "^https://", "html$", r"\.html\?", r"/\d{4}/\d{2}/", r"[?&]q=\d+", "(?i)PATH", "(?i:jpg)", "a|b",
    r"(?P<year>\d{4})", r"/(x/){2,}", "x{2}", "a{0,2}b", "[^/]+$", r"\w+-\w", r"\bpath\b", r"\Bath", r"[\w.-]+@",
    "()",
    r"\Ahttps", "(?:a|b)+", "a*?b", ".+", "(?s).", "(?m)^h", r"%C3%BC", r"\x41", r"\.(?:jpe?g|png)$", "[]x]",
    "[^]x]", r"/(x)/\1/",
    r"(?=.*html)https", r"html(?!x)", r"(?<=www\.)a", r"(?<!www\.)a\.ex", r"(\w)\1", r"(?P<d>x)/(?P=d)",
    r"html.*\Z", r"(x/)(?(1)x|y)", "x++", "(?>a+)b", r"a{1001}", "(?x) a b", "(?a)\\w",
    "a{,3}b", "/{,3}", "x{,}", "a{,b", "[a&&b]", "[[/]", r"\{,3\}", "[:a:]",
]  # fmt: skip


def test_patterns_mean_what_they_mean_in_python():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        pairs = [(pattern, url) for pattern in PATTERNS for url in URLS]
        assert [pair for pair in pairs if found(*pair) != bool(re.search(*pair))] == []


atoms = st.sampled_from(
    ["a", "b", "/", ".", "x", r"\d", r"\w", r"\.", "[ab]", "[^a]", "^", "$", r"\b", "%", "-", "_", "?"]
)
counts = st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,}", "{,2}", "{0,3}", "*?", "+?", "++"])
pieces = st.lists(st.tuples(atoms, counts).map("".join), max_size=5).map("".join)
simple = st.lists(pieces, min_size=1, max_size=3).map("|".join) | pieces.map("({})?x".format)
simple = simple.filter(bool)


@settings(deadline=None, max_examples=300)
@given(simple, st.text("abx/.019%-_{},2", max_size=12))
def test_simple_patterns_mean_what_they_mean_in_python(pattern, text):
    try:
        expected = re.search(pattern, text)
    except re.error:
        assume(False)
    assert found(pattern, text) == bool(expected)


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=12))
def test_any_text_compiles_or_is_refused_in_one_line(pattern):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            Patterns([pattern]).match(URL)
        except UsageError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "[",
        "a**",
        "(?P<n>a)(?P<n>b)",
        r"\pN",
        r"\Q",
        "(?<=a+)b",
        "x{2,1}",
        "(?P>n)",
        "[[:alpha:]]x",
        "[^x[:^digit:]]",
    ],
)  # fmt: skip
def test_what_is_no_regular_expression_is_refused(pattern):
    with pytest.raises(UsageError) as caught:
        Patterns(["fine", pattern])
    assert repr(pattern) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_many_large_patterns_are_used_or_refused_in_one_line():
    many = [f"x{n}.{{0,900}}y" for n in range(100)]
    try:
        patterns = Patterns(many)
    except UsageError:
        return
    assert patterns.match("x5zzzy") in {"x5.{0,900}y"}


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a+)+$", "a" * 5_000 + "!"),
        (r"(a+)+(?=b)c", "a" * 200),
        (r"^(\w+\s?)*\1$", "a" * 60 + "!"),
        ("(a|aa)+$", "a" * 5_000 + "!"),
    ],
)
def test_a_catastrophic_pattern_finds_nothing_instead_of_hanging(pattern, text):
    assert Patterns([pattern]).match(text) is None


def test_a_pattern_that_takes_too_long_does_not_hide_the_others():
    patterns = Patterns([r"^(\w+\s?)*\1$", "(?=!)!"])
    assert patterns.match("a" * 60 + "!") == "(?=!)!"


def test_one_of_many_is_named():
    patterns = Patterns([*(f"/p{n}$" for n in range(300)), r"(?=/q)/q$"])
    assert patterns.match("https://a.example/p217") == "/p217$"
    assert patterns.match("https://a.example/q") == r"(?=/q)/q$"
    assert patterns.match("https://a.example/p300") is None


def test_none_is_false():
    assert not Patterns([])
    assert Patterns([]).match(URL) is None
    assert Patterns(["(?=x)"])


STARTS = ("https://a.example/x?a=1", "https://b.example:8080/")


def test_start_urls_are_put_in_literally():
    assert expand("/plain{2}", STARTS) == ["/plain{2}"]
    made = expand("^{primary_url}", STARTS)
    assert [Patterns([one]).match(url) == one for one, url in zip(made, STARTS, strict=True)] == [True, True]
    assert Patterns(made).match("https://a.exampleXx?a=1") is None


def test_hosts_of_start_urls_each_once():
    assert expand("//{primary_netloc}/", ["https://a.example/", "https://a.example/b"]) == [r"//a\.example/"]


def test_an_empty_pattern_is_refused():
    with pytest.raises(UsageError, match="a pattern is empty"):
        Patterns(["x", ""])
