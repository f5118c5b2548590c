"""Changes of settings: how they are written, which are possible, and which stay when a crawl is resumed."""

from __future__ import annotations

import pytest

from muniment.errors import UsageError
from muniment.model.change import ChangeMade
from muniment.rules.changes import as_assignment, change_settings, changeable, kept_settings, parse_assignments
from muniment.settings.option_table import DelayRange, Settings


def test_names_are_those_of_the_options():
    assert changeable() == [
        "min-free", "per-host", "inflight", "delay", "workers", "tries", "give-up-after", "connect-timeout", "timeout",
        "max-fetch-time", "max-pages", "max-bytes", "max-time", "ignore-reports", "tabs", "page-time", "behavior-time",
        "guards", "barren",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("delay", "250-375", "delay", DelayRange(250, 375)),
        ("--delay", "0", "delay", DelayRange()),
        ("per-host", "3", "per_host", 3),
        ("per_host", "3", "per_host", 3),
        ("concurrency", "3", "per_host", 3),
        ("inflight", "12", "inflight", 12),
        ("max-pages", "7", "max_pages", 7),
        ("max-pages", "none", "max_pages", None),
        ("max-bytes", "2KB", "max_bytes", 2000),
        ("max-time", "1.5", "max_time", 1.5),
        ("min-free", "1MiB", "min_free", 1 << 20),
        ("workers", "3", "workers", 3),
        ("tries", "1", "tries", 1),
        ("timeout", "2.5", "timeout", 2.5),
        ("connect-timeout", "1", "connect_timeout", 1.0),
    ],
)
def test_a_value_is_read_as_its_option_reads_it(name, text, field, value):
    after, _ = change_settings(Settings(user_agent="me"), [(name, text)])
    assert getattr(after, field) == value
    assert after.user_agent == "me"


def test_what_changed_is_told_and_nothing_else():
    before = Settings(delay=DelayRange(1, 2), max_pages=9)
    _, changes = change_settings(before, [("delay", "1-2"), ("max-pages", "none"), ("per-host", "2")])
    assert changes == (ChangeMade("max-pages", "9", "none"), ChangeMade("per-host", "6", "2"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("per-host", "²"),
        ("per-host", ""),
        ("per-host", "-1"),
        ("delay", "none"),
        ("out", "x"),
        ("", "1"),
        ("max-time", "inf"),
    ],
)
def test_nonsense_is_refused(name, text):
    with pytest.raises(UsageError) as caught:
        change_settings(Settings(), [(name, text)])
    assert "\n" not in str(caught.value)


def test_assignments():
    assert parse_assignments(["a=b", "c = d=e "]) == (("a", "b"), ("c", "d=e"))
    for text in ("a", "=b", ""):
        with pytest.raises(UsageError, match="NAME=VALUE"):
            parse_assignments([text])


@pytest.mark.parametrize(
    ("option", "rest", "meant"),
    [
        ("--delay", ["5"], "delay=5"),
        ("--delay=5", ["x"], "delay=5"),
        ("--delay", [], "delay=VALUE"),
        ("--delay", ["--quiet"], "delay=VALUE"),
        ("--delay", ["tries=2"], "delay=VALUE"),
        ("--level", ["5"], None),
    ],
)
def test_an_option_is_written_as_an_assignment(option, rest, meant):
    assert as_assignment(option, rest) == meant


def test_a_changed_value_stays_while_the_command_line_says_the_same():
    given = Settings(per_host=4, max_pages=10)
    in_force, _ = change_settings(given, [("per-host", "2"), ("max-pages", "20"), ("delay", "5")])
    assert kept_settings(in_force, given, given) == in_force
    now = Settings(per_host=8, max_pages=10, timeout=3)
    kept = kept_settings(in_force, given, now)
    assert (kept.per_host, kept.max_pages, kept.delay, kept.timeout) == (8, 20, DelayRange(5, 5), 3)
