"""Challenges, redirect loops, proxies by host and agents by name."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.http.auth import Account, authorization, challenge_of
from muniment.http.redirects import RedirectTurn, fetch_again
from muniment.http.user_agent import AGENTS, agent_text, robots_agent
from muniment.rules.proxies import proxy_for, proxy_rules
from muniment.settings.option_table import DEFAULT_USER_AGENT

MUFASA = Account("Mufasa", "Circle of Life")
RFC7616 = (
    'Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm={}, '
    'nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"'
)


@pytest.mark.parametrize(
    ("algorithm", "response"),
    [("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
     ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1")],
)  # fmt: skip
def test_the_examples_of_rfc_7616(algorithm, response):
    challenge = challenge_of([RFC7616.format(algorithm)])
    field = authorization(challenge, MUFASA, "/dir/index.html", 1, "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ")
    assert f'response="{response}"' in field
    assert "nc=00000001" in field


def test_the_example_of_rfc_7617():
    challenge = challenge_of(['Basic realm="WallyWorld"'])
    assert (
        authorization(challenge, Account("Aladdin", "open sesame"), "/", 1, "") == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
    )


@pytest.mark.parametrize(
    ("fields", "scheme", "algorithm"),
    [(["Basic"], "basic", ""), (["basic realm=x"], "basic", ""), (['NTLM, Basic realm="a, b=c"'], "basic", ""),
     (['Negotiate abc=, Digest nonce="n", realm="r"', "Basic realm=r"], "digest", "MD5"),
     (['Digest nonce="n", algorithm=MD5', 'Digest nonce="n", algorithm=SHA-256'], "digest", "SHA-256"),
     (['Digest nonce="n", algorithm=SHA-512-256, Basic realm="x"'], "basic", ""),
     (['Digest nonce="n", qop="auth-int"'], None, None), (["Bearer"], None, None),
     ([""], None, None), (["=,;"], None, None)],
)  # fmt: skip
def test_the_strongest_offer_is_chosen(fields, scheme, algorithm):
    found = challenge_of(fields)
    assert (found and found.scheme, found and found.algorithm) == (scheme, algorithm)


@given(st.lists(st.text(), max_size=3))
def test_any_field_is_a_challenge_or_none(fields):
    found = challenge_of(fields)
    assert found is None or found.scheme in {"basic", "digest"}


def test_old_digests_and_sessions():
    old = challenge_of(['Digest nonce="n", realm="a\\"b"'])
    assert "qop" not in authorization(old, MUFASA, "/", 1, "c")
    assert 'realm="a\\"b"' in authorization(old, MUFASA, "/", 1, "c")
    assert challenge_of(['Digest nonce="n", stale=TRUE']).stale
    assert 'cnonce="c"' in authorization(challenge_of(['Digest nonce="n", algorithm=MD5-sess']), MUFASA, "/", 1, "c")


@pytest.mark.parametrize(
    ("turn", "steps", "cookies", "again"),
    [
        (RedirectTurn(302, 1, 0, b""), 1, b"c", True), (RedirectTurn(302, 1, 0, b"c"), 1, b"c", False),
        (RedirectTurn(200, 1, 0, b""), 1, b"c", False), (RedirectTurn(303, 1, 0, b"c"), 2, b"", True),
        (RedirectTurn(302, 3, 0, b""), 1, b"c", True), (RedirectTurn(302, 4, 0, b""), 1, b"c", False),
        (RedirectTurn(302, 1, 0, b""), 4, b"c", False), (RedirectTurn(302, 1, 3, b""), 1, b"c", False),
    ],
)  # fmt: skip
def test_another_turn(turn, steps, cookies, again):
    assert fetch_again(turn, steps, cookies, 3) == again


def test_the_first_rule_that_matches_a_host_is_its_proxy():
    rules = proxy_rules(("http://all:1", "*.Onion=socks5h://tor:9050", "in.example=direct", "[::1]=http://six:1"))
    hosts = ("a.onion", "onion", "in.example", "b.in.example", "[::1]", "1")
    urls = [proxy_for(rules, host) for host in hosts]
    assert urls == ["socks5h://tor:9050", "http://all:1", "", "http://all:1", "http://six:1", "http://all:1"]
    assert proxy_for((), "a") == ""
    assert proxy_for(proxy_rules(("http://u:a=b@p:1",)), "a") == "http://u:a=b@p:1"


def test_agents_have_names_and_robots_still_know_us():
    assert agent_text("Firefox") == AGENTS["firefox"]
    assert agent_text("mine/1") == robots_agent("mine/1") == "mine/1"
    assert {robots_agent(name) for name in AGENTS} == {DEFAULT_USER_AGENT}
    assert all(text.startswith("Mozilla/5.0 (") for text in AGENTS.values())


def test_a_digest_is_of_the_method_of_its_request() -> None:
    challenge = challenge_of(['Digest realm="r", nonce="n", qop="auth", algorithm=MD5'])
    assert challenge is not None
    secret = hashlib.md5(b"Mufasa:r:Circle of Life").hexdigest()
    for method in ("GET", "POST", "PUT"):
        asked = hashlib.md5(f"{method}:/a?b".encode()).hexdigest()
        expected = hashlib.md5(f"{secret}:n:00000001:c:auth:{asked}".encode()).hexdigest()
        assert f'response="{expected}"' in authorization(challenge, MUFASA, "/a?b", 1, "c", method)
