"""Guards: shapes of URLs and their patterns, loops, and the book-keeping of families."""

from __future__ import annotations

import pytest

from muniment.model.link import FoundAs
from muniment.rules.guards.family import BARREN, BARREN_LOOPS, LOOPS, Family, sample_due
from muniment.rules.guards.loops import is_loop
from muniment.rules.guards.novelty import is_novel
from muniment.rules.guards.shape import pattern_of, shape_of
from muniment.rules.patterns import Patterns

SHAPES = {
    "https://a.example/": "a.example/",
    "https://a.example:8443/news": "a.example/news",
    "https://a.example/calendar?month=2024-05": "a.example/calendar?month",
    "https://a.example/index.php/Page_12": "a.example/index.php/Page_N",
    "https://a.example/repo/tree/src/x.c?id=3f2a9bc&h=v1": "a.example/repo/tree/…?h&id",
    "https://a.example/repo/tree/?h=v1": "a.example/repo/tree/?h",
    "https://a.example/rev/3f2a9bc0d": "a.example/rev/H",
    "https://a.example/defaced": "a.example/defaced",
    "https://a.example/?p=x.git;a=commitdiff;h=0123456789abcdef": "a.example/?a=commitdiff&h&p",
    "https://a.example/doku.php?id=start&do=edit&rev=1": "a.example/doku.php?do=edit&id&rev",
    "https://a.example/x?do=2": "a.example/x?do",
    "https://a.example/x?b&a[10]=1&a[11]=2": "a.example/x?a[N]&b",
    "https://a.example/a/b/c/d/e/": "a.example/a/b/…",
    "https://a.example/app#/route/1": "a.example/app",
}


@pytest.mark.parametrize(("url", "shape"), SHAPES.items())
def test_shape(url: str, shape: str) -> None:
    assert shape_of(url) == shape


def test_the_pattern_of_a_shape_finds_its_urls_and_no_other_shape():
    for url, shape in SHAPES.items():
        if "#" not in url:
            found = {one for one in SHAPES if "#" not in one and Patterns([pattern_of(url)]).match(one) is not None}
            assert {shape_of(one) for one in found} == {shape}, pattern_of(url)


def test_a_pattern_finds_parameters_in_any_order_and_runs_in_re2():
    found = Patterns([pattern_of("https://a.example/x?b=1&a=2&do=show")])
    assert not found.slow
    assert found.match("https://a.example/x?do=show&a=&b=9") is not None
    assert found.match("https://a.example/x?do=edit&a=1&b=9") is None


def test_a_shape_is_short_however_long_the_url():
    url = (
        "https://a.example/"
        + "x" * 8000
        + "/y?"
        + "&".join(f"{'n' * 50}{chr(97 + at % 26)}{at}=1" for at in range(400))
    )
    assert len(shape_of(url)) < 1000
    assert Patterns([pattern_of(url)]).match(url) is not None


@pytest.mark.parametrize(
    ("url", "loops"),
    [
        ("https://a.example/a/b/c", False),
        ("https://a.example/a/b/a/b/c", False),
        ("https://a.example/a/b/a/b/a/b", True),
        ("https://a.example/a/a/a", True),
        ("https://a.example/a/x/a/y/a/z/a/", True),
        ("https://a.example/a/x/a/y/a/z", False),
        ("https://a.example/" + "/".join(f"s{at}" for at in range(20)), False),
        ("https://a.example/" + "/".join(f"s{at}" for at in range(21)), True),
        ("https://a.example/x?a=1&a=1&a=1", False),
        ("https://a.example/x?a=1&a=1&a=1&a=1", True),
        ("https://a.example/x?a=1&a=2&a=3&a=4", False),
    ],
)
def test_loop(url: str, loops: bool) -> None:
    assert is_loop(url) == loops


@pytest.mark.parametrize(
    ("url", "found_as", "novel"),
    [
        ("https://a.example/7.jpg", FoundAs.IMG, True),
        ("https://a.example/run.php?id=x&1732793000", FoundAs.IMG, False),
        ("https://a.example/report.pdf", FoundAs.A, True),
        ("https://a.example/get?file=report.pdf", FoundAs.A, False),
        ("https://a.example/page", FoundAs.A, False),
    ],
)
def test_what_a_page_may_be_the_first_to_name(url: str, found_as: FoundAs, novel: bool) -> None:
    assert is_novel(url, found_as) == novel


def test_a_family_is_spent_after_barren_pages_in_a_row():
    family = Family("a.example/x", BARREN)
    for page in range(19):
        family.add(page, barren=True)
    assert not family.is_spent(20)
    family.add(19, barren=True)
    assert family.is_spent(20)
    assert family.recent == (17, 18, 19)
    family.add(20, barren=False)
    assert not family.is_spent(20)


def test_a_family_of_loops_has_five():
    family = Family("a.example/x", LOOPS)
    for page in range(BARREN_LOOPS):
        assert not family.is_spent(20)
        family.add(page, barren=True)
    assert family.is_spent(20)


def test_one_in_fifty_is_still_asked_for_and_after_ten_fewer():
    family = Family("a.example/x", BARREN)
    family.set_aside(1, 0)
    asked = [at for at in range(1, 5000) if family.skip()]
    assert asked[:3] == [50, 101, 152]
    assert len(asked) < 20
    assert family.skipped + len(asked) == 4999
    assert [sample_due(number) for number in (10, 11, 12)] == [500, 600, 800]


def test_what_was_let_go_on_may_be_set_aside_again_unless_for_good():
    family = Family("a.example/x", BARREN, barren=20)
    family.set_aside(1, 0)
    family.release(leads=True)
    for page in range(39):
        family.add(page, barren=True)
    assert not family.is_spent(20)
    family.add(39, barren=True)
    assert family.is_spent(20)
    family.release(for_good=True)
    family.barren = 1000
    assert not family.is_spent(20)
