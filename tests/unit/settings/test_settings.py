"""Settings: sizes, delays, the table of options, and what is never printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.model.mask import redact
from muniment.settings.guards import GuardSettings
from muniment.settings.option_table import Settings, options

SECRET = "hush"


WITH_SECRETS = [
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
    "--header=X-Plain: hush",
    "--header=*=X-Plain: hush",
    "--header=hush",
    "a.example=X-Auth-Token: hush",
    "https:user:hush@a.example/",
    "user:hush@a.example/",
    "user:my/hush@a.example/",
    "https://user:my hush@a.example/",
    "https://user:my/hush@a.example/",
    "*.onion=http://user:hush@proxy.example:1",
    "--proxy=*.onion=http://user:my hush@proxy.example:1",
    "Authorization: Bearer\n hush",
]


def test_secrets_are_masked():
    assert [argument for argument in WITH_SECRETS if SECRET in redact(argument)] == []


@pytest.mark.parametrize(
    "argument",
    [
        "https://a.example/x@y?m=u:p@z", "-o", "example", "Accept-Language: de", "User-Agent: cookie", "a@b.example",
        "h:80/@x", "mailto:a@b.example", "git@h:x/y", "https://h:80/@x", "https://[::1]/a@b",
        "https://a.example/#u:p@b", "/cookie: x",
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
    of_browsers = GuardSettings.__struct_fields__
    own = [name for name in Settings.__struct_fields__ if name not in of_browsers]
    assert ["seed", "start_list", *told] == [*own, *of_browsers]
    assert all(option.help.endswith((".", ").")) for option in told.values())
