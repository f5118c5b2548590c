"""Registered domains: what a host name belongs to."""

from __future__ import annotations

import pytest

from muniment.model.failure import Trouble
from muniment.rules.domains import registered_domain, troubles_of


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("example.com", "example.com"),
        ("a.b.example.com", "example.com"),
        ("www.shop.example.co.uk", "example.co.uk"),
        ("someone.github.io", "someone.github.io"),
        ("deep.someone.github.io", "someone.github.io"),
        ("github.io", "github.io"),
        ("co.uk", "co.uk"),
        ("xn--fiqs8s", "xn--fiqs8s"),
        ("www.xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("localhost", "localhost"),
        ("127.0.3.1", "127.0.3.1"),
        ("[2001:db8::1]", "[2001:db8::1]"),
        ("", ""),
    ],
)
def test_the_registered_domain_of_a_host(host, domain):
    assert registered_domain(host) == domain


def test_hosts_that_never_answered_are_put_together_by_domain():
    failed = [
        ("a.one.example", "refused", 2),
        ("a.one.example", "dead-host", 3),
        ("b.one.example", "tls", 1),
        ("127.0.0.9", "timeout-header", 9),
    ]
    assert troubles_of(failed) == (
        Trouble(
            "one.example", 2, 1, 6, (("dead-host", 3), ("refused", 2), ("tls", 1)), ("a.one.example", "b.one.example")
        ),
        Trouble("127.0.0.9", 1, 0, 9, (("timeout-header", 9),), ("127.0.0.9",)),
    )
    assert troubles_of([]) == ()
    # no host is asked for such a URL
    assert troubles_of([("", "scheme", 1)]) == ()
