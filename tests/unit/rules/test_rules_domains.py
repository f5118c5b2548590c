"""Registered domains: what a host name belongs to."""

from __future__ import annotations

import pytest

from muniment.rules.domains import registered_domain


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
