"""Rulesets: where a pattern comes from, adding and removing, and what stays of that when a crawl is resumed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.errors import UsageError
from muniment.rules.job_rules import (
    IgnoreSet,
    Rules,
    add_ignore,
    add_set,
    compile_ignores,
    keep_changes,
    remove_ignore,
    remove_set,
)

GIVEN = Rules(("i",), ("a", "b"), (IgnoreSet("s", ("c", "d")), IgnoreSet("t", ("d",))))


def test_a_match_is_told_with_its_set():
    patterns = compile_ignores(Rules((), ("/x",), (IgnoreSet("s", ("^{primary_url}y", "(?=/z)/z")),)), ["https://a/"])
    assert patterns.match("https://a/x") == "/x"
    assert patterns.match("https://a/y") == "^{primary_url}y (set s)"
    assert patterns.match("https://b/z") == "(?=/z)/z (set s)"
    assert patterns.match("https://b/y") is None


def test_a_pattern_of_two_sets_is_told_once():
    assert list(compile_ignores(GIVEN, []).matches("d")) == ["d (set s)"]


def test_a_pattern_is_added_once():
    assert add_ignore(GIVEN, "e").ignore == ("a", "b", "e")
    for known in "abcd":
        with pytest.raises(UsageError, match="in force already"):
            add_ignore(GIVEN, known)
    with pytest.raises(UsageError, match="not a regular expression"):
        add_ignore(GIVEN, "(")


def test_a_pattern_is_removed_wherever_it_is():
    assert remove_ignore(GIVEN, "a").ignore == ("b",)
    assert remove_ignore(GIVEN, "d").sets == (IgnoreSet("s", ("c",)), IgnoreSet("t", ()))
    with pytest.raises(UsageError, match="'e' is in force"):
        remove_ignore(GIVEN, "e")


def test_a_set_is_added_whole():
    new = IgnoreSet("u", ("e", "f"))
    assert add_set(GIVEN, new).sets == (*GIVEN.sets, new)
    with pytest.raises(UsageError, match="the set t is in force already"):
        add_set(GIVEN, GIVEN.sets[1])
    # what was taken out of it comes back
    assert add_set(remove_ignore(GIVEN, "d"), GIVEN.sets[1]).sets == (IgnoreSet("s", ("c",)), IgnoreSet("t", ("d",)))


def test_a_set_is_removed_whole():
    left = remove_set(GIVEN, "s")
    assert [pattern for _, pattern in left.all_ignores()] == ["a", "b", "d"]
    for gone in ("s", "u"):
        with pytest.raises(UsageError, match=f"the set '{gone}' is not in force; these are: t"):
            remove_set(left, gone)
    assert add_set(left, GIVEN.sets[0]).sets == (GIVEN.sets[1], GIVEN.sets[0])


def test_the_same_command_keeps_the_sets_that_came_and_went():
    new = IgnoreSet("u", ("e", "f"))
    changed = remove_set(add_set(GIVEN, new), "s")
    assert [*keep_changes(changed, GIVEN, GIVEN).all_ignores()] == [*changed.all_ignores()]
    # a command line that gives it, and then does not, takes it away
    given = Rules(GIVEN.include, GIVEN.ignore, (*GIVEN.sets, new))
    assert [*keep_changes(given, given, GIVEN).all_ignores()] == [*GIVEN.all_ignores()]


def test_the_same_command_keeps_what_was_changed():
    changed = remove_ignore(remove_ignore(add_ignore(GIVEN, "e"), "a"), "d")
    assert keep_changes(changed, GIVEN, GIVEN) == changed


def test_another_command_line_adds_and_takes_away_beside_what_was_changed():
    changed = remove_ignore(remove_ignore(add_ignore(GIVEN, "e"), "a"), "d")
    now = Rules(("i",), ("a", "f"), (IgnoreSet("s", ("c", "d", "g")), IgnoreSet("u", ("h",))))
    assert keep_changes(changed, GIVEN, now) == Rules(
        ("i",), ("f", "e"), (IgnoreSet("s", ("c", "g")), IgnoreSet("u", ("h",)))
    )


patterns = st.lists(st.sampled_from("abcdef"), unique=True, max_size=5).map(tuple)


@given(patterns, patterns, patterns)
def test_without_changes_the_command_line_is_all_that_counts(before, now, other):
    assert keep_changes(Rules((), before), Rules((), before), Rules((), now)).ignore == now
    assert set(keep_changes(Rules((), other), Rules((), before), Rules((), before)).ignore) == set(other)
