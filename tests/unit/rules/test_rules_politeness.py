"""Politeness: what a host's answers and failures mean for how it is treated."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.rules.hosts.politeness import (
    CALM,
    HostSignal,
    HostState,
    asked_wait_ms,
    challenged,
    connections,
    has_bad_pages,
    is_proof,
    judge,
    signal_of,
)

UNHEARD = HostState(heard=False)
NOW = 1_000_000


def sign(kind, text="", at=NOW, wait=0):
    return HostSignal(
        kind, text or {"refused": "403", "throttled": "429"}.get(kind, kind), "http://a.example", at, wait
    )


def after(*signs, manners=CALM, now=NOW, chance=1.0):
    """The manners after signs that came one after the other, each asked for when the wait before was over."""
    for one in signs:
        now = max(now, manners.until)
        manners = judge(manners, HostSignal(one.kind, one.text, one.origin, now, one.wait_ms), now, chance)
    return manners


@pytest.mark.parametrize(
    ("said", "date", "wait"),
    [
        ("120", "", 120_000),
        (" 7 ", "", 7_000),
        ("0", "", 0),
        ("99999999999999", "", 24 * 3600 * 1000),
        ("soon", "", 0),
        ("-5", "", 0),
        ("1.5", "", 0),
        ("", "", 0),
        ("Thu, 01 Jan 1970 00:17:00 GMT", "", 21_000),
        # by the server's clock, which is wrong by years
        ("Sun, 06 Nov 1994 08:50:07 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 30_000),
        ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:50:07 GMT", 0),
        ("Sunday, 06-Nov-94 08:50:07 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 30_000),
    ],
)
def test_retry_after_in_seconds_and_as_a_date(said, date, wait):
    assert asked_wait_ms(said, date, NOW) == wait


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kathmandu"])
@pytest.mark.parametrize(
    "said", ["Sun, 06 Nov 1994 08:50:37 GMT", "Sunday, 06-Nov-94 08:50:37 GMT", "Sun Nov  6 08:50:37 1994"]
)
def test_each_form_of_a_date_is_gmt_in_any_zone(monkeypatch, zone, said):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert asked_wait_ms(said, "Sun, 06 Nov 1994 08:49:37 GMT", NOW) == 60_000
        assert asked_wait_ms(said, "Sun Nov  6 08:49:37 1994", NOW) == 60_000
    finally:
        monkeypatch.undo()
        time.tzset()


def test_retry_after_holds_the_host_and_is_never_shortened():
    held = judge(CALM, sign("throttled", wait=60_000), NOW, 0.5)
    assert (held.until, held.reason) == (NOW + 60_000, "429 with Retry-After")
    late = judge(held, sign("throttled", "503", at=NOW - 5, wait=1_000), NOW + 10, 0.5)
    assert late.until == NOW + 60_000
    longer = judge(held, sign("throttled", "503", at=NOW - 5, wait=90_000), NOW + 10, 0.5)
    assert longer.until == NOW + 90_010
    assert judge(held, sign("answer", at=NOW + 1), NOW + 20, 0.0).until == NOW + 60_000


def test_back_off_grows_with_jitter_and_has_an_end():
    waits = [after(*[sign("throttled", "503")] * n).until - after(*[sign("throttled", "503")] * (n - 1)).until
             for n in range(2, 6)]  # fmt: skip
    assert waits == [2_000, 4_000, 4_000, 4_000]
    assert judge(CALM, sign("throttled", "503"), NOW, 0.0).until == NOW + 500
    assert judge(CALM, sign("throttled", "503"), NOW, 1.0).until == NOW + 1_000


def test_what_was_asked_before_the_last_bad_news_is_old_news():
    first = judge(CALM, sign("throttled", "503"), NOW, 1.0)
    assert judge(first, sign("throttled", "503", at=NOW - 1), NOW + 5, 1.0) == first
    late = judge(first, sign("answer", at=NOW - 1), NOW + 5, 0.0)
    assert (late.until, late.reason, late.strikes, late.slowed) == (first.until, first.reason, 1, first.slowed)
    slow = after(sign("slow"))
    assert judge(slow, sign("answer", at=NOW - 1), NOW + 5, 0.0) is slow


def test_an_answer_makes_peace():
    assert after(sign("unreachable"), sign("answer"), manners=UNHEARD) != UNHEARD
    assert after(sign("answer"), manners=UNHEARD) is CALM
    assert after(sign("throttled"), sign("answer")).strikes == 0


def test_a_host_that_nobody_has_heard_of_has_one_connection():
    assert (connections(UNHEARD, 6), connections(CALM, 6)) == (1, 6)


def test_time_outs_halve_the_connections_and_answers_bring_them_back():
    slow = after(sign("slow"))
    assert (connections(slow, 6), slow.until) == (3, 0)
    assert connections(after(sign("slow"), sign("slow")), 6) == 1
    assert connections(after(*[sign("slow")] * 50), 6) == 1
    assert connections(after(*[sign("answer")] * 9, manners=slow), 6) == 3
    assert after(*[sign("answer")] * 10, manners=slow) is CALM


@pytest.mark.parametrize("kind", ["refused", "throttled"])
def test_ten_refusals_in_a_row_are_a_storm(kind):
    flying = [sign(kind, at=NOW)] * 9
    manners = CALM
    for one in flying:
        manners = judge(manners, one, NOW, 1.0)
    calm_again = after(sign("answer"), manners=manners)
    stormy = after(sign(kind), manners=manners)
    assert (calm_again.refusals, stormy.pauses) == (0, 1)
    assert stormy.until - max(NOW, manners.until) == 30_000
    assert "10 refusals in a row" in stormy.reason
    assert connections(stormy, 6) == 1


def test_a_rate_limit_is_no_storm():
    """It refuses all but one of those that are under way, again and again."""
    manners = CALM
    for _ in range(12):
        asked = max(NOW, manners.until)
        for took, kind in enumerate(("throttled", "throttled", "throttled", "answer"), 1):
            manners = judge(manners, sign(kind, at=asked), asked + took, 1.0)
    assert (manners.pauses, manners.refusals, manners.strikes) == (0, 0, 1)
    assert manners.gap_ms > 1_000, "an answer of which it is heard late shows, too, that it wants a gap"
    first = judge(judge(CALM, sign("throttled"), NOW, 1.0), sign("answer", at=NOW - 1), NOW + 5, 0.0)
    assert after(sign("throttled"), manners=first, now=NOW + 5).gap_ms == 0, "what was asked before it began is no sign"
    burst = CALM
    for took in range(1, 20):
        burst = judge(burst, sign("throttled"), NOW + took, 1.0)
    assert (burst.pauses, burst.refusals) == (0, 1)


def test_pauses_grow_and_403_is_in_the_end_taken_for_the_answer():
    stormy = after(*[sign("refused")] * 20)
    assert stormy.pauses == 2
    assert after(*[sign("refused")] * 200).pauses == 3
    assert after(*[sign("throttled", wait=1_000)] * 200).pauses > 6


def test_pauses_end_when_429_without_a_word_of_waiting_outlasts_four():
    assert after(*[sign("throttled")] * 200).pauses == 4
    tail = after(*[sign("throttled")] * 48)
    assert after(sign("throttled"), manners=tail).until - tail.until == 4_000, "it backs off all the same"
    assert after(sign("answer"), *[sign("throttled")] * 10, manners=tail).pauses == 1


@pytest.mark.parametrize(("left", "bare"), [(1, 50), (10, 50), (20, 100), (1_000, 500)])
def test_pages_are_to_blame_once_each_was_throttled_a_few_times(left, bare):
    manners = after(*[sign("throttled", "503")] * (bare - 1))
    assert (has_bad_pages(manners, left), has_bad_pages(after(sign("throttled", "503"), manners=manners), left)) == (
        False,
        True,
    )
    last = max(NOW, manners.until)
    assert judge(manners, sign("throttled", "503", at=last), last, 1.0, left=left + 100).until > last or bare == 500
    assert judge(manners, sign("throttled", "503", at=last), last, 1.0, left=left).until == manners.until, "no wait"


def test_a_challenge_pauses_at_once():
    assert judge(CALM, sign("challenge", "403"), NOW, 0.0).until == NOW + 30_000


def test_a_challenge_pauses_although_its_header_block_set_a_wait_and_those_asked_with_it_say_nothing_more():
    throttled = judge(CALM, sign("throttled", "503", at=NOW - 9), NOW, 1.0)
    paused = judge(throttled, sign("challenge", "503", at=NOW - 9), NOW + 3, 1.0)
    assert (throttled.until, paused.until, paused.reason) == (NOW + 1_000, NOW + 30_003, "a challenge page")
    late = judge(paused, sign("challenge", "503", at=NOW - 8), NOW + 5, 1.0)
    assert (late.until, late.pauses) == (paused.until, 1)


def test_one_failure_of_a_host_that_answers_does_not_hold_it_up():
    assert after(sign("unreachable")).until == 0
    assert after(sign("unreachable"), sign("unreachable")).until == NOW + 2_000
    assert after(sign("unreachable"), manners=UNHEARD).until == NOW + 1_000


def test_proof_of_death_is_longer_for_a_host_that_had_answered():
    assert [is_proof(n, heard=False) for n in (2, 3)] == [False, True]
    assert [is_proof(n, heard=True) for n in (9, 10)] == [False, True]


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (200, None, "answer"), (404, None, "answer"), (500, None, "answer"), (403, None, "refused"),
        (429, None, "throttled"), (503, None, "throttled"), (0, "dns", "unreachable"), (0, "refused", "unreachable"),
        (0, "timeout-connect", "unreachable"), (0, "timeout-header", "slow"), (0, "tls", "answer"),
        (0, "reset", "answer"), (200, "limit", "answer"),
    ],
)  # fmt: skip
def test_kinds_of_signs(status, code, kind):
    assert signal_of(status, code) == kind


@pytest.mark.parametrize(
    ("status", "headers", "body", "is_one"),
    [
        (403, (("cf-mitigated", "challenge"),), b"", True),
        (202, (("x-amzn-waf-action", "challenge"),), b"", True),
        (503, (), b"<script>window._cf_chl_opt={}", True),
        (200, (("cf-mitigated", "challenge"),), b"_cf_chl_opt", False),
        (403, (("cf-mitigated", "other"),), b"forbidden", False),
    ],
)
def test_challenge_pages(status, headers, body, is_one):
    assert challenged(status, headers, body) is is_one


kinds = st.sampled_from(["answer", "refused", "throttled", "challenge", "closed", "slow", "unreachable"])


@given(st.lists(st.tuples(kinds, st.integers(0, 5_000), st.integers(0, 20_000), st.floats(0, 0.999))))
def test_a_wait_is_never_shortened_and_connections_stay_within_bounds(news):
    manners, now = UNHEARD, NOW
    for kind, later, wait, chance in news:
        now += later
        before, manners = manners, judge(manners, sign(kind, at=now - 50, wait=wait), now, chance)
        assert manners.until >= before.until or before.until <= now
        assert 1 <= connections(manners, 6) <= 6
