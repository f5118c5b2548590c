"""Numbers of options: what makes no sense is refused, what may make some is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.errors import UsageError
from muniment.settings.option_table import DelayRange, Option, options
from muniment.settings.values import is_number, parse_delay, parse_number, parse_size

NUMBERS = {option.flags[0]: (kind, option) for _, kind, _, option in options() if is_number(option)}

ODD = ["+5", "1e3", "1_000", "\u0665\u0660", "0x10", "5.", "5,5", "5 5", "\u00b2"]
"""What Python reads as a number, or a person may, and the documentation does not name."""


def parsed(flag: str, text: str) -> object:
    return parse_number(*NUMBERS[flag], text)


def test_every_option_with_a_number_has_bounds() -> None:
    metavars = {"N", "I", "I|auto", "S", "BYTES", "MS|MIN-MAX"}
    assert {option.flags[0] for *_, option in options() if option.metavar in metavars} == set(NUMBERS)


def complaint(flag: str, text: str) -> str:
    """What is said of a text that is refused; empty when it is taken."""
    try:
        parsed(flag, text)
    except UsageError as refused:
        return str(refused)
    return ""


def test_what_is_no_number_or_none_that_makes_sense_is_refused() -> None:
    texts = ["-1", "much", "", "9" * 29, "9" * 40, "1e400", "nan", *ODD]
    said = {(flag, text): complaint(flag, text) for flag in NUMBERS for text in texts}
    assert {given: words for given, words in said.items() if "\n" in words or not 0 < len(words) < 160} == {}


def test_nothing_is_refused_where_it_would_do_nothing() -> None:
    taken = {flag: parsed(flag, "0") for flag in NUMBERS if not complaint(flag, "0")}
    assert taken == {"--min-free": 0, "--shard": 0, "--level": 0, "--rounds": 0, "--delay": DelayRange(0, 0)}


def test_defaults_and_small_numbers_are_taken() -> None:
    ones = {flag: parsed(flag, "1") for flag in NUMBERS if flag != "--barren"}
    assert {flag: one for flag, one in ones.items() if one not in {1, DelayRange(1, 1)}} == {}
    for flag, (kind, option) in NUMBERS.items():
        assert isinstance(option, Option)
        for *_, default, one in (*options("crawl"), *options("fetch")):
            if one.flags[0] == flag and default is not None and not isinstance(default, DelayRange):
                assert parse_number(kind, option, str(default)) == default, flag


@pytest.mark.parametrize(
    ("flag", "text", "says"),
    [
        ("--warc-size", "0", "'0' is too small: the minimum is 1"),
        ("--warc-size", "1 TiB", ""),
        ("--per-host", "10001", "'10001' is too large: the maximum is 10,000"),
        ("--delay", "1-99999999999", "is too large: the maximum is 86,400,000"),
        ("--timeout", "0.000000001", "is too small: the minimum is 0.001"),
        ("--timeout", ".5", "'.5' is not a number of seconds above 0; write it as 60 or 0.5"),
        ("--warc-size", "500\u00a0MB", ""),
        ("--tries", "2.5", "'2.5' is not a whole number"),
    ],
)
def test_the_complaint_says_what_makes_sense(flag: str, text: str, says: str) -> None:
    if not says:
        parsed(flag, text)
        return
    with pytest.raises(UsageError) as refused:
        parsed(flag, text)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0), ("1073741824", 1 << 30), ("1GiB", 1 << 30), ("1gib", 1 << 30), ("500MB", 500_000_000),
        ("64k", 64_000), ("64K", 64_000), ("64KiB", 65_536), ("64Ki", 65_536), ("1.5k", 1_500), ("2T", 2 * 10**12),
        ("1 GB", 10**9),
        (" 7b ", 7),
    ],
)  # fmt: skip
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "x", "-1", "1.", ".5", "1e9", "1 G i B", "10 20", "1XB", "GiB", "1GiBs", "0x10"])
def test_what_is_no_size(text):
    with pytest.raises(UsageError) as caught:
        parse_size(text)
    assert repr(text) in str(caught.value)


@given(st.integers(0, 1 << 62))
def test_a_plain_number_is_itself(size):
    assert parse_size(str(size)) == size


@pytest.mark.parametrize("text", ["9" * 400, "9" * 400 + "GiB"])
def test_an_absurd_size_is_a_number_or_refused(text):
    try:
        assert parse_size(text) > 0
    except UsageError:
        return


@pytest.mark.parametrize(
    ("text", "delay"), [("0", DelayRange(0, 0)), ("250", DelayRange(250, 250)), (" 250-375 ", DelayRange(250, 375))]
)
def test_delays(text, delay):
    assert parse_delay(text) == delay


@pytest.mark.parametrize("text", ["", "x", "-5", "1-", "1-2-3", "1.5", "1 - 2", "375-250"])
def test_what_is_no_delay(text):
    with pytest.raises(UsageError):
        parse_delay(text)
