"""Retry: what is tried again, and the waits before it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests.support.pages import claim

from muniment.model.failure import FAILURE_CODES, Failure
from muniment.rules.retry import ASKS_AGAIN, is_failed, is_last, retryable, wait_ms

TRIES = 1_000_000
AGAIN = {408, 425, 429, *range(500, 600)} - {501, 505}
BY_CHANCE = {
    "dns", "refused", "unreachable", "reset", "tls", "timeout-connect", "timeout-header", "timeout-body", "cut",
    "browser", "protocol",
}  # fmt: skip


def test_statuses_of_the_contract():
    assert {status for status in range(600) if retryable(status, None)} == AGAIN


def test_429_and_5xx_as_the_last_answer_have_failed():
    assert [status for status in range(700) if is_failed(status, "")] == [408, 425, 429, *range(500, 600)]
    assert [status for status in range(700) if not is_failed(status, "cut: short")] == []


def test_statuses_that_ask_for_another_try():
    assert ASKS_AGAIN == AGAIN


def test_network_faults_are_tried_again_and_verdicts_are_not():
    assert {code for code in FAILURE_CODES if retryable(0, Failure(code, "why"))} == BY_CHANCE


def test_a_limit_of_this_machine_passes_and_one_of_the_exchange_does_not():
    assert retryable(0, Failure("limit", "this machine: Too many open files"))
    assert not retryable(200, Failure("limit", "cut after 3600 s (--max-fetch-time)"))
    assert not retryable(503, Failure("limit", "cut after 3600 s (--max-fetch-time)"))


def test_a_failure_decides_whatever_the_status():
    assert retryable(200, Failure("cut", "short"))
    assert not retryable(503, Failure("too-large", "long"))


def test_the_waits_of_three_tries_add_up_to_at_most_15_seconds():
    assert sum(wait_ms(attempt, 3, 0.999_999) for attempt in (1, 2)) <= 15_000


def test_a_script_that_threw_throws_again():
    assert not retryable(200, Failure("browser", "custom_js: Error: no"))
    assert retryable(200, Failure("browser", "hung"))


@pytest.mark.parametrize(
    ("status", "code", "answered", "later"),
    [
        (500, None, False, True), (200, "cut", False, True), (0, "tls", False, True),
        (0, "refused", False, False), (0, "unreachable", False, False), (0, "timeout-connect", False, False),
        (0, "reset", False, False), (0, "reset", True, True), (0, "dns", False, False),
        (0, "protocol", True, False), (200, "protocol", True, False), (200, "browser", True, False),
    ],
)  # fmt: skip
def test_what_gets_later_rounds_after_its_last_try(status, code, answered, later):
    failure = Failure(code, "why") if code else None
    last = structs.replace(claim(), last_try=True, last_round=False, answered=answered)
    assert is_last(last, status, failure) is not later
    assert not is_last(structs.replace(last, last_try=False), status, failure)


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_waits_are_bounded_and_grow(attempt, chance):
    assert 1_000 <= wait_ms(attempt, TRIES, chance) <= 300_000
    assert wait_ms(attempt, TRIES, chance) <= wait_ms(attempt + 1, TRIES, chance)


def test_pages_that_got_their_tries_again_begin_with_short_waits():
    assert wait_ms(4, 3, 0.5) == wait_ms(1, 3, 0.5)


@given(st.integers(1, 40))
def test_jitter_spreads_over_half_of_the_wait(attempt):
    low, high = wait_ms(attempt, TRIES, 0.0), wait_ms(attempt, TRIES, 0.999_999_999)
    assert low * 2 - 1 <= high + 1 <= low * 2 + 1
