"""Ignore sets: every built-in pattern stops and lets through what it says; other programs' files are read."""

from __future__ import annotations

import pytest

from muniment.errors import UsageError
from muniment.model.url import normalise
from muniment.rules.ignore_sets import GLOBAL, built_in, built_in_names, chosen, parse_import
from muniment.rules.job_rules import IgnoreSet, Rules, compile_ignores
from muniment.rules.patterns import Patterns

EVERY = [(name, one) for name in built_in_names() for one in built_in(name).pattern]
ISSUE = {GLOBAL, "mediawiki", "phpbb", "wordpress", "woocommerce", "github"}
"""What must be there: the global set, MediaWiki, and engines of forums, blogs, shops and code hosting."""


def test_a_pattern_says_why_with_examples():
    assert [(name, one.re) for name, one in EVERY if not (one.reason and one.stops and one.passes)] == []


def test_a_pattern_stops_and_lets_through_what_it_says():
    wrong = []
    for name, one in EVERY:
        patterns = Patterns([one.re])
        wrong += [(name, one.re, "passes", url) for url in one.stops if not patterns.match(url)]
        wrong += [(name, one.re, "stops", url) for url in one.passes if patterns.match(url)]
    assert wrong == []


def test_examples_are_urls_as_they_are_matched():
    examples = [(name, url) for name, one in EVERY for url in (*one.stops, *one.passes)]
    assert [(name, url) for name, url in examples if normalise(url) != url.partition("#")[0]] == []


def test_a_pattern_runs_in_re2_unless_it_says_otherwise():
    assert [(name, one.re) for name, one in EVERY if bool(Patterns([one.re]).slow) != one.slow] == []


def test_the_sets_of_the_issue_are_there():
    assert set(built_in_names()) >= ISSUE
    assert built_in_names()[0] == GLOBAL


def test_a_set_says_what_it_is_and_has_each_pattern_once():
    for name in built_in_names():
        found = built_in(name)
        patterns = [one.re for one in found.pattern]
        assert found.about, name
        assert len(set(patterns)) == len(patterns) >= 1, name


def test_what_a_set_lets_through_it_lets_through_as_a_whole():
    """An example that another pattern of the set stops would promise what does not happen."""
    stopped = {}
    for name in set(built_in_names()) - {GLOBAL}:
        found = built_in(name)
        patterns = Patterns([one.re for one in found.pattern])
        stopped |= {(name, url): patterns.match(url) for one in found.pattern for url in one.passes}
    assert {example: pattern for example, pattern in stopped.items() if pattern} == {}


def test_all_sets_together_still_find_everything():
    """RE2 gives a set a budget of memory; beyond it, it would find nothing and not say so."""
    rules = Rules(sets=chosen(built_in_names(), with_global=True))
    together = compile_ignores(rules, ["https://a.example/"])
    for name, one in EVERY:
        for url in one.stops:
            assert together.match(url) is not None, (name, url)
            assert f"{one.re} (set {name})" in list(together.matches(url))


ORDINARY = """
    https://www.iana.org/help/example-domains
    https://docs.python.org/3/library/functools.html
    https://docs.python.org/3/_static/pygments.css
    https://en.wikipedia.org/wiki/Web_archiving
    https://www.example.com/blog/2010/05/a-post/?page=2
    https://www.example.com/search?q=share&lang=en
    http://127.0.0.1:8080/p1.html
    http://[::1]/a/b/c
    https://example.com/images/logo.png
    https://example.com/a/undefined.html
    https://example.com/%C3%BC/stra%C3%9Fe?x=%20
    https://www.facebook.com/example/posts/1
    https://web.archive.org/web/20100101000000/http://example.com/
"""


def test_the_global_set_leaves_ordinary_pages_alone():
    rules = Rules(sets=chosen((), with_global=True))
    assert [url for url in ORDINARY.split() if compile_ignores(rules, [url]).match(url) is not None] == []


# -- choosing


def test_sets_are_chosen_with_commas_and_repeats_each_once():
    assert [one.name for one in chosen(("phpbb, smf", "phpbb"), with_global=True)] == [GLOBAL, "phpbb", "smf"]
    assert [one.name for one in chosen((), with_global=False)] == []
    assert [one.name for one in chosen((GLOBAL,), with_global=False)] == [GLOBAL]


def test_a_set_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(UsageError, match=r"there is no ignore set 'nonsense'; the sets are global, .*wordpress"):
        chosen(("nonsense",), with_global=True)


@pytest.mark.parametrize("text", ["", ",", " , "])
def test_a_list_of_sets_names_some(text):
    with pytest.raises(UsageError, match="names no set; the sets are global"):
        chosen((text,), with_global=True)


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", '{"type": "x", "patterns": []}'])
def test_a_file_without_patterns_is_refused(text):
    with pytest.raises(UsageError, match="f has no patterns"):
        parse_import(text, "f")


@pytest.mark.parametrize(
    ("text", "place"),
    [("# forums\n\n/a\n  /b(\n/c(\n", "line 4 of f: "), ('{"patterns": ["/a", "/b("]}', "pattern 2 of f: ")],
)
def test_a_pattern_that_is_none_is_told_with_its_place(text, place):
    with pytest.raises(UsageError, match=f"^{place}the pattern '/b\\('"):
        parse_import(text, "f")


# -- files of other programs

ARCHIVEBOT = (
    '{"name": "forums", "type": "ignore_patterns", "patterns": ["/a\\\\.php", "^{primary_url}x", "/a\\\\.php"]}'
)
GRAB_SITE = """# a comment

/a\\.php
  ^https?://{any_start_netloc}/b
#/c
/d#e
"""


def test_archivebots_json_is_read():
    assert parse_import(ARCHIVEBOT, "f.json") == IgnoreSet("import:f.json", (r"/a\.php", "^{primary_url}x"))


def test_grab_sites_text_is_read():
    read = parse_import(GRAB_SITE, "dir/forums")
    assert read == IgnoreSet("import:dir/forums", (r"/a\.php", r"^https?://{primary_netloc}(?::\d+)?/b", "/d#e"))


def test_imported_patterns_are_told_with_their_file_and_filled_in():
    together = compile_ignores(Rules(sets=(parse_import(GRAB_SITE, "x"),)), ["http://a.example:8080/"])
    for url in ("http://a.example:8080/b", "http://a.example/b"):
        assert together.match(url) == r"^https?://{primary_netloc}(?::\d+)?/b (set import:x)"
    assert together.match("http://a.example.b/b") is None


DEEP = '{"patterns": ["x"], "y": ' + "[" * 100_000 + "]" * 100_000 + "}"


@pytest.mark.parametrize("text", ['{"patterns": "x"}', '{"name": "x"}', '{"patterns": [1]}', '{"a', "{}", DEEP])
def test_json_of_another_form_is_refused_in_one_line(text):
    with pytest.raises(UsageError, match=r"^f is JSON, but not a set of ArchiveBot: .+") as caught:
        parse_import(text, "f")
    assert "\n" not in str(caught.value)


def test_a_text_may_begin_with_a_brace():
    assert parse_import("{any_start_netloc}/x\n", "f").patterns == (r"{primary_netloc}(?::\d+)?/x",)
