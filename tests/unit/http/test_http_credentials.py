"""Where added headers and accounts may go, by the start URLs of a job."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.errors import UsageError
from muniment.http.added_headers import given_header
from muniment.http.auth import Account
from muniment.http.credentials import CredentialReach, Credentials
from muniment.model.url import host_of

HTTP, HTTPS, OTHER = "http://site.example", "https://site.example", "https://site.example:8443"
AWAY, SAFE_AWAY = "http://away.example", "https://away.example"


def reach(*headers: str, starts: tuple[str, ...] = (HTTPS,)) -> CredentialReach:
    safe = all(origin.startswith("https:") for origin in starts)
    accounts = {host: Account("me", "hush") for host in ("site.example", "away.example")}
    return CredentialReach(Credentials(tuple(map(given_header, headers)), accounts, {}, starts, safe))


@pytest.mark.parametrize(
    ("header", "starts", "goes"),
    [
        ("X-Key: 1", (HTTPS,), {HTTPS}),
        ("X-Key: 1", (HTTP,), {HTTP, HTTPS, OTHER}),
        ("X-Key: 1", (HTTP, HTTPS), {HTTPS}),
        ("X-Key: 1", (HTTPS, OTHER), {HTTPS, OTHER}),
        ("X-Key: 1", (), set()),
        ("accept-LANGUAGE: 1", (HTTPS,), {HTTP, HTTPS, OTHER, AWAY, SAFE_AWAY}),
        ("*=X-Key: 1", (HTTPS,), {HTTP, HTTPS, OTHER, AWAY, SAFE_AWAY}),
        ("AWAY.example=X-Key: 1", (HTTPS,), {SAFE_AWAY}),
        ("away.example=X-Key: 1", (HTTP,), {AWAY, SAFE_AWAY}),
        ("away.example:80=X-Key: 1", (HTTP,), {AWAY}),
        ("away.example:80=X-Key: 1", (HTTPS,), set()),
        ("site.example=DNT: 1", (HTTPS,), {HTTPS}),
        ("site.example:8443=X-Key: 1", (HTTPS,), {OTHER}),
        ("site.example:80=X-Key: 1", (HTTPS,), set()),
    ],
)
def test_where_a_header_goes(header, starts, goes):
    asked = reach(header, starts=starts)
    assert {origin for origin in (HTTP, HTTPS, OTHER, AWAY, SAFE_AWAY) if asked.headers(origin)} == goes


@pytest.mark.parametrize(
    ("starts", "goes"),
    [
        ((HTTPS,), {HTTPS, SAFE_AWAY}),
        ((HTTP,), {HTTP, HTTPS, OTHER, AWAY, SAFE_AWAY}),
        ((HTTPS, AWAY), {HTTPS, AWAY, SAFE_AWAY}),
    ],
)
def test_where_an_account_goes(starts, goes):
    asked = reach(starts=starts)
    origins = (HTTP, HTTPS, OTHER, AWAY, SAFE_AWAY)
    assert {origin for origin in origins if asked.account(f"{origin}/x", host_of(origin))} == goes


def test_the_account_of_a_start_url_is_for_its_origin_and_counts_before_the_file():
    file, own = Account("file", "hush"), Account("own", "hush")
    asked = CredentialReach(Credentials((), {"site.example": file}, {HTTP: own}, (HTTP,)))
    assert asked.account(f"{HTTP}/x", "site.example") == own
    assert asked.account(f"{OTHER}/x", "site.example") == file
    alone = CredentialReach(Credentials((), {}, {HTTPS: own}, (HTTPS,), True))
    assert [alone.account(f"{origin}/", "site.example") for origin in (HTTP, HTTPS, OTHER)] == [None, own, None]


def test_of_one_name_the_closest_goes():
    asked = reach("*=X: all", "X: start", "site.example=X: host", "site.example=x: host too", "Y: 1")
    assert asked.headers(HTTPS) == (("X", "host"), ("x", "host too"), ("Y", "1"))
    assert asked.headers(AWAY) == (("X", "all"),)


@given(st.text(max_size=60))
def test_any_text_is_a_header_or_is_refused_without_its_value(text):
    try:
        made = given_header(f"{text}: hush")
    except UsageError as error:
        assert "hush" not in str(error)
    else:
        assert not set(made.name + made.value) & {"\r", "\n", "\0"}
        assert made.name
        (made.name + made.value).encode()
