"""Settings: sizes, delays, the table of options, and what is never printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.errors import UsageError
from muniment.settings import DelayRange, Settings, options, parse_delay, parse_size, redact


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


SECRET = "hush"


@pytest.mark.parametrize(
    "argument",
    [
        "http://user:hush@a.example/",
        "http://hush@a.example/",
        "socks5://user:hush@proxy.example:1080",
        "--proxy=http://user:hush@proxy.example:1",
        "http://user:p@hush@a.example/",
        "HTTPS://user:hush@a.example",
        "Authorization: Bearer hush",
        "authorization:hush",
        "Proxy-Authorization: Basic hush",
        "Cookie: a=hush; b=hush",
        "X-API-Key: hush",
        "X-Auth-Token: hush",
        "--header=Authorization: Bearer hush",
        "--header=Cookie: a=hush",
        "Authorization: Bearer\n hush",
    ],
)
def test_secrets_are_masked(argument):
    assert SECRET not in redact(argument)


@pytest.mark.parametrize(
    "argument",
    [
        "https://a.example/x@y?m=u:p@z", "-o", "example", "Accept-Language: de", "User-Agent: cookie", "a@b.example",
        "--header=Accept: text/html", "https://a.example/#u:p@b", "/cookie: x",
    ],
)  # fmt: skip
def test_all_else_is_left_as_it_is(argument):
    assert redact(argument) == argument


def test_masking_keeps_what_is_no_secret():
    assert redact("http://user:hush@a.example:8080/p?q") == "http://***@a.example:8080/p?q"
    assert redact("Cookie: hush") == "Cookie: ***"


@given(st.text(max_size=40))
def test_masking_twice_changes_nothing_more(argument):
    assert redact(redact(argument)) == redact(argument)


def test_flags_are_spelled_once_and_named_after_their_field():
    flags = [flag for _, _, _, option in options() for flag in (*option.flags, option.off) if flag]
    assert len(flags) == len(set(flags))
    for name, _, _, option in options():
        # --from is no name that Python allows
        assert option.flags[0] == "--" + name.replace("_", "-").replace("seed-format", "from")


def test_every_field_is_an_option_with_a_sentence():
    told = {name: option for name, _, _, option in options()}
    assert ["seed", *told] == list(Settings.__struct_fields__)
    assert all(option.help.endswith((".", ").")) for option in told.values())
