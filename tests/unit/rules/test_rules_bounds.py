"""Numbers of options: what makes no sense is refused, what may make some is not."""

from __future__ import annotations

import pytest

from muniment.errors import UsageError
from muniment.rules.bounds import is_number, parse_number
from muniment.settings import DelayRange, Option, options

NUMBERS = {option.flags[0]: (kind, option) for _, kind, _, option in options() if is_number(option)}


def parsed(flag: str, text: str) -> object:
    return parse_number(*NUMBERS[flag], text)


def test_every_option_with_a_number_has_bounds() -> None:
    metavars = {"N", "I", "S", "BYTES", "MS|MIN-MAX"}
    assert {option.flags[0] for *_, option in options() if option.metavar in metavars} == set(NUMBERS)


@pytest.mark.parametrize("flag", NUMBERS)
@pytest.mark.parametrize("text", ["-1", "much", "", "9" * 29, "9" * 40, "1e400", "nan"])
def test_what_is_no_number_or_none_that_makes_sense_is_refused(flag: str, text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parsed(flag, text)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 160


@pytest.mark.parametrize("flag", NUMBERS)
def test_nothing_is_refused_where_it_would_do_nothing(flag: str) -> None:
    if flag in {"--min-free", "--shard", "--level"}:
        assert parsed(flag, "0") == 0
    elif flag == "--delay":
        assert parsed(flag, "0") == DelayRange(0, 0)
    else:
        with pytest.raises(UsageError):
            parsed(flag, "0")


@pytest.mark.parametrize("flag", NUMBERS)
def test_defaults_and_small_numbers_are_taken(flag: str) -> None:
    assert parsed(flag, "1") in {1, DelayRange(1, 1)}
    kind, option = NUMBERS[flag]
    assert isinstance(option, Option)
    for *_, default, one in (*options("crawl"), *options("fetch")):
        if one.flags[0] == flag and default is not None and not isinstance(default, DelayRange):
            assert parse_number(kind, option, str(default)) == default


@pytest.mark.parametrize(
    ("flag", "text", "says"),
    [
        ("--warc-size", "0", "'0' is too small: at least 1 makes sense"),
        ("--warc-size", "1 TiB", ""),
        ("--per-host", "10001", "'10001' is too large: at most 10,000 makes sense"),
        ("--delay", "1-99999999999", "is too large: at most 86,400,000 makes sense"),
        ("--timeout", "1e-9", "is too small: at least 0.001 makes sense"),
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
