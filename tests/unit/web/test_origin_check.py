"""The guard of the pages: whose requests pass, by Host, Origin and Sec-Fetch-Site."""

from __future__ import annotations

import pytest

from muniment.web.pages.origin_check import refusal

OWN = "http://127.0.0.1:8000"
HOST = {"host": "127.0.0.1:8000"}


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {}, None),
        ("GET", {"host": "evil.example"}, 421),
        ("GET", {"host": "localhost:8000"}, 421),
        ("GET", {"origin": "http://evil.example"}, None),
        ("POST", {"origin": OWN}, None),
        ("POST", {"origin": OWN, "sec-fetch-site": "same-origin"}, None),
        ("POST", {"sec-fetch-site": "none"}, None),
        ("POST", {}, 403),
        ("POST", {"origin": "null"}, 403),
        ("POST", {"origin": "http://127.0.0.1:8001"}, 403),
        ("POST", {"origin": OWN, "sec-fetch-site": "cross-site"}, 403),
        ("PATCH", {"sec-fetch-site": "same-site"}, 403),
        ("DELETE", {"origin": "https://127.0.0.1:8000"}, 403),
    ],
)
def test_requests(method: str, headers: dict[str, str], status: int | None) -> None:
    found = refusal(method, {**HOST, **headers}, (OWN,))
    assert (found[0] if found else None) == status


def test_a_bearer_may_use_any_name() -> None:
    assert refusal("POST", {"host": "other"}, (OWN,), bearer=True) is None
