"""The other scheme: which failures make a start URL's port be asked in it, and what counts as its answer."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.exchanges import exchange

from muniment.crawl.worker.hosts.other_scheme import OtherScheme
from muniment.fetch.client import unreached
from muniment.model.failure import Failure

PLAIN, SECURE = "http://a.example:8000/page", "https://a.example:8000/page"
WRONG = Failure("tls", "WRONG_VERSION_NUMBER")


def explained(url: str, failure: Failure, answer) -> tuple[str, list[str]]:
    """What is said of a failure for the second time, and what was asked for."""
    asked: list[str] = []

    async def ask(other):
        asked.append(other)
        return answer(other)

    async def twice():
        scheme = OtherScheme(ask)
        await scheme.explained(url, failure)
        return (await scheme.explained(url, failure)).text

    return asyncio.run(twice()), asked


def answers(status=404):
    return lambda url: exchange(url, b"", status_line=f"HTTP/1.1 {status} x")


def fails(code, text):
    return lambda url: unreached(url, Failure(code, text))


@pytest.mark.parametrize(
    ("url", "failure", "answer", "other"),
    [
        (SECURE, WRONG, answers(), "http://a.example:8000"),
        (SECURE, Failure("timeout-connect", "no connection in time"), answers(200), "http://a.example:8000"),
        ("https://a.example/", WRONG, answers(), "http://a.example:443"),
        (PLAIN, Failure("reset", "why"), answers(), "https://a.example:8000"),
        (PLAIN, Failure("protocol", "not HTTP"), fails("tls", "certificate: self-signed"), "https://a.example:8000"),
        ("http://a.example/", Failure("cut", "why"), fails("tls", "TLSV1_ALERT_INTERNAL_ERROR"), "https://a.example:80"),
    ],
)  # fmt: skip
def test_what_answers_in_its_place_is_named(url, failure, answer, other):
    assert explained(url, failure, answer) == (f"{failure.text}; {other} answers", [f"{other}/robots.txt"])


@pytest.mark.parametrize(
    ("url", "failure", "answer"),
    [
        (SECURE, WRONG, answers(400)),
        (SECURE, WRONG, fails("reset", "why")),
        (PLAIN, Failure("reset", "why"), fails("tls", "WRONG_VERSION_NUMBER")),
    ],
)
def test_what_does_not_answer_is_not_named(url, failure, answer):
    said, asked = explained(url, failure, answer)
    assert (said, len(asked)) == (failure.text, 1)


@pytest.mark.parametrize(
    ("url", "failure"),
    [
        (SECURE, Failure("tls", "certificate: certificate has expired")),
        (SECURE, Failure("tls", "TLSV1_ALERT_PROTOCOL_VERSION")),
        (SECURE, Failure("refused", "why")),
        (PLAIN, Failure("dns", "no such name")),
    ],
)
def test_nothing_is_asked_when_the_failure_says_enough(url, failure):
    assert explained(url, failure, answers()) == (failure.text, [])


def test_a_host_that_may_not_be_asked_now_is_asked_later():
    assert explained(SECURE, WRONG, lambda url: None)[1] == ["http://a.example:8000/robots.txt"] * 2
