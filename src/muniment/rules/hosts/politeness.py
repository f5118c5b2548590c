"""Politeness: what an answer, or its absence, means for its host: how long nothing is asked, how many connections.

Times are Unix ms. Only what was asked after the last wait was set counts against a host: six connections that fail at
once are one piece of news.
"""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Literal

from msgspec import Struct, structs

from muniment.model.failure import Failure, FailureCode
from muniment.rules.hosts.failures import BARRED, SLOW, UNREACHABLE, is_nameless, is_offline

__all__ = [
    "CALM",
    "CHALLENGES",
    "LONGEST_ASKED_MS",
    "LONG_MS",
    "NAME_AGAIN_MS",
    "THROTTLED",
    "HostSignal",
    "HostState",
    "SignalKind",
    "asked_wait_ms",
    "believable",
    "challenged",
    "connections",
    "counts_towards_death",
    "has_bad_pages",
    "is_asked_for",
    "is_back_off",
    "is_of_origin",
    "is_proof",
    "is_timeout",
    "judge",
    "kind_of",
    "signal_of",
]

SignalKind = Literal[
    "answer", "refused", "throttled", "challenge", "closed", "mute", "slow", "unreachable", "nameless", "barred",
    "offline",
]  # fmt: skip
"""`refused` is a 403, `throttled` 429 and 503, `closed` a robots.txt that forbids all by failing, `slow` a time-out.

`mute`: nothing came for robots.txt. `nameless`: there is no such name. `barred`: its address may not be reached.
`offline`: the failure is on our side of the network, a proxy that fails or no route.
"""

THROTTLED = frozenset({429, 503})
"""The statuses by which a host says that it is asked too much."""
_FIRST_MS, _LAST_MS = 1_000, 4_000
"""Back-off without a Retry-After: with it, the waits of three tries stay under 15 s."""
_LONGEST_BACK_OFF_MS = 300_000
"""The longest back-off of what is waited for: an origin that had answered, a robots.txt, our own way out."""
_FIRST_GAP_MS, _LONGEST_GAP_MS = 500, 10_000
_SOON, _LATE = 4, 10
"""Answers after a wait: a host that throttles again before so many wants a longer gap, after so many a shorter one."""
_MOST_BARE, _BARE_EACH, _BARE_EVER = 50, 5, 500
"""Throttling answers without Retry-After and without a good one between, from which on they are the pages' own.

At least so many, so many for each page that is left of the host, and never more than so many: a host that answers 503
for half an hour throttles all of them, and its pages are not to blame.
"""
_STEADY = 100
"""Answers after which such a gap is halved."""
LONGEST_ASKED_MS = 24 * 3600 * 1000
"""The longest Retry-After that is believed."""
LONG_MS = 8_000
"""The minimum of our own waits that is reported and kept at once: a kill must not lose it."""
_ASKED_FOR = (" with Retry-After",)
"""How the reasons of waits end that hosts ask for themselves."""
_STORM = 10
"""Refusals in a row (403, 429, challenges) that make a storm."""
_PAUSE_MS, _LONGEST_PAUSE_MS = 30_000, 300_000
_MOST_FORBIDDEN = 3
"""Pauses after which 403 is taken for the host's answer: no pause changed it."""
_MOST_BARE_PAUSES = 4
"""Pauses after which 429 without Retry-After pauses no more: 450 s changed nothing, and a back-off is enough."""
_MOST_SLOWED = 4
_GOOD = 10
"""Answers after which a slowed host gets twice the connections again."""
_PROOF, _PROOF_HEARD = 3, 10
"""Failures, one after the other, that prove an origin dead: on a host that never answered, and on another."""
NAME_AGAIN_MS = 5_000
"""A name that was not found is asked for again so much later at the earliest."""
_CLOCKS_MS = 100
"""What clocks of a worker and the orchestrator may differ by."""

_CHALLENGE_STATUSES = frozenset({202, 403, 405, 429, 503})
_CHALLENGE_HEADERS = {"cf-mitigated": "challenge", "x-amzn-waf-action": ""}

_OF_ORIGIN: frozenset[SignalKind] = frozenset({"closed", "mute", "slow", "unreachable"})

CHALLENGES: tuple[bytes, ...] = (
    b"/cdn-cgi/challenge-platform/",
    b"_cf_chl_opt",
    b"_Incapsula_Resource",
    b"captcha-delivery.com",
    b"px-captcha",
    b"/.well-known/ddos-guard/",
)
"""What the pages of well-known guards hold that ask whether a person is there."""


class HostSignal(Struct, frozen=True, array_like=True):
    """The trouble of one exchange that concerns its host."""

    kind: SignalKind
    text: str
    """For people: `429`, `dns: no such name`, …"""
    origin: str
    """What fails, and is dead if this is proof: scheme, host and port, or the name alone where all of it does."""
    asked_at: int
    """When the request began."""
    wait_ms: int = 0
    """Retry-After; 0 for none."""


class HostState(Struct, frozen=True):
    """The state of a host. The neutral value is `CALM`; a host that has not answered yet is not `heard`."""

    heard: bool = True
    """It has answered."""
    until: int = 0
    """Nothing is asked before then."""
    reason: str = ""
    """Why; empty without a wait."""
    since: int = 0
    """When the last bad news was taken in: what was asked before says nothing more."""
    strikes: int = 0
    """Bad news in a row: the back-off grows with it."""
    refusals: int = 0
    """Refusals in a row, towards a storm."""
    pauses: int = 0
    """Storms in a row."""
    paused_at: int = 0
    """When the last of them was taken in."""
    slowed: int = 0
    """How often its connections were halved."""
    good: int = 0
    """Answers since it was slowed last."""
    gap_ms: int = 0
    """Milliseconds between requests, because it throttled again right after its waits."""
    bare: int = 0
    """Throttling answers without Retry-After since it answered last."""
    steady: int = -1
    """Answers since it throttled last, or since its gap was halved; -1 when it has not throttled."""


CALM = HostState()


def is_of_origin(signal: HostSignal) -> bool:
    """Whether a signal concerns one origin, and not all that its name stands for: silence and refusal, and no more.

    What a server asks for by 429, 503 or Retry-After, it asks for its host, though it does so for robots.txt.
    """
    of_host = signal.kind == "closed" and (signal.wait_ms > 0 or signal.text.isdigit())
    return signal.kind in _OF_ORIGIN and "://" in signal.origin and not of_host


def counts_towards_death(signal: HostSignal) -> bool:
    """Whether a signal of an origin that never answered is one of those that prove it dead."""
    return signal.kind in ("unreachable", "mute", "nameless", "barred")


def signal_of(status: int, code: FailureCode | None) -> SignalKind:
    """The kind of signal that a status, or the code of a failure, is."""
    if code is not None:
        return "unreachable" if code in UNREACHABLE else "slow" if code in SLOW else "answer"
    return "refused" if status == 403 else "throttled" if status in THROTTLED else "answer"


def kind_of(status: int, failure: Failure | None) -> SignalKind:
    """The kind of signal that an exchange is by its status and its failure."""
    if failure is not None and is_offline(str(failure)):
        return "offline"
    if failure is not None and failure.code == BARRED:
        return "barred"
    if failure is not None and is_nameless(str(failure)):
        return "nameless"
    return signal_of(status, failure.code if failure else None)


def is_timeout(signal: HostSignal) -> bool:
    """Whether the host let the time pass, in connecting or in answering."""
    return signal.text.removeprefix("robots.txt: ").startswith("timeout-")


def challenged(status: int, headers: tuple[tuple[str, str], ...], body: bytes) -> bool:
    """Whether an answer asks for a person instead of giving the page; `body` is how it begins."""
    if status not in _CHALLENGE_STATUSES:
        return False
    marked = any(name in _CHALLENGE_HEADERS and _CHALLENGE_HEADERS[name] in value for name, value in headers)
    return marked or any(mark in body for mark in CHALLENGES)


def asked_wait_ms(retry_after: str, date: str, now: int) -> int:
    """Milliseconds that a Retry-After asks for, in seconds or as a date; 0 when it says nothing sensible.

    A date is read by the server's own clock, which is the `date` header.
    """
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return min(int(text[:9]) * 1000, LONGEST_ASKED_MS)
    until = _unix_ms(text)
    if until is None:
        return 0
    server = _unix_ms(date)
    # dates know no fractions: the second in which the server looked at its clock may have just begun
    return max(0, min(until - (now if server is None else server) + 1000 * (server is None), LONGEST_ASKED_MS))


def _unix_ms(date: str) -> int | None:
    """Unix ms of an HTTP date: each of its three forms is GMT, which that of asctime does not say (RFC 9110 §5.6.7)."""
    try:
        found = parsedate_to_datetime(date)
        return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, TypeError, OverflowError):
        return None


def connections(state: HostState, per_host: int) -> int:
    """Connections that the host may have now: one until it has answered, fewer while it is slow."""
    return max(1, per_host >> state.slowed) if state.heard else 1


def judge(
    state: HostState, signal: HostSignal, now: int, chance: float, *, answered: bool = False, left: int = 0
) -> HostState:
    """The state of the host after a signal; `chance` in [0, 1) is the jitter.

    `answered`: the origin has answered in this job, so that it is waited for. `left`: pages of the host that wait.
    """
    fresh = signal.asked_at >= state.since
    if signal.kind == "answer":
        return _answered(state, now) if fresh else _interrupted(state)
    if signal.kind in ("refused", "throttled", "challenge"):
        state = _refused(structs.replace(state, heard=True), signal, now, fresh=fresh)
    if fresh:
        state = _backed_off(state, signal, now, chance, answered=answered, left=left)
    return _held(state, now + signal.wait_ms, f"{signal.text} with Retry-After", now) if signal.wait_ms else state


def _answered(state: HostState, now: int) -> HostState:
    slowed, good = state.slowed, state.good + 1
    gap_ms, steady = state.gap_ms, state.steady + (state.steady >= 0)
    if slowed and good >= _GOOD:
        slowed, good = slowed - 1, 0
    if gap_ms and steady >= _STEADY:
        gap_ms, steady = _halved(gap_ms), 0
    if state.until > now:
        state = structs.replace(state, heard=True, strikes=0, refusals=0, pauses=0, bare=0)
        return structs.replace(state, slowed=slowed, good=good, gap_ms=gap_ms, steady=steady)
    return HostState(slowed=slowed, good=good, gap_ms=gap_ms, steady=steady) if slowed or gap_ms else CALM


def _interrupted(state: HostState) -> HostState:
    """A late answer among throttled requests: the second time, it came after a wait."""
    if state.steady < 0:
        return state
    steady = max(state.steady, int(state.strikes > 1))
    return structs.replace(state, refusals=0, strikes=min(state.strikes, 1), steady=steady)


def _halved(gap_ms: int) -> int:
    return gap_ms // 2 if gap_ms >= _FIRST_GAP_MS else 0


def _held(state: HostState, until: int, reason: str, now: int) -> HostState:
    """The wait made longer, never shorter."""
    if until <= state.until:
        return state
    return structs.replace(state, until=until, reason=reason, since=now)


def _refused(state: HostState, signal: HostSignal, now: int, *, fresh: bool) -> HostState:
    """Count towards a storm, and pause when it is there."""
    challenge = signal.kind == "challenge"
    # six connections that are throttled at once are one refusal: fewer and slower requests follow it
    refusals = state.refusals + (signal.kind == "refused" or (fresh and signal.text == "429"))
    # the header block of a challenge may have set a wait: only those asked for before the pause say nothing new
    storm = signal.asked_at >= state.paused_at if challenge else refusals >= _STORM and now >= state.until
    used_to = signal.kind == "refused" and state.pauses >= _MOST_FORBIDDEN
    bare = signal.kind == "throttled" and not signal.wait_ms and state.pauses >= _MOST_BARE_PAUSES
    if not storm or used_to or bare:
        return structs.replace(state, refusals=refusals)
    reason = "a challenge page" if signal.kind == "challenge" else f"{refusals} refusals in a row, {signal.text} last"
    until = now + min(_PAUSE_MS << min(state.pauses, 8), _LONGEST_PAUSE_MS)
    pauses = state.pauses + 1
    paused = structs.replace(state, refusals=0, pauses=pauses, paused_at=now, slowed=_MOST_SLOWED, good=0)
    return _held(paused, until, reason, now)


def _backed_off(
    state: HostState, signal: HostSignal, now: int, chance: float, *, answered: bool, left: int
) -> HostState:
    """Fewer connections after a time-out, a growing wait after most else."""
    if signal.kind == "refused":
        return state
    slowed = min(state.slowed + 1, _MOST_SLOWED) if signal.kind in ("slow", "throttled") else _MOST_SLOWED
    strikes = state.strikes + 1
    if signal.kind == "throttled":
        bare = 0 if signal.wait_ms else state.bare + 1
        state = structs.replace(state, gap_ms=_grown_gap(state), steady=0, bare=bare)
    state = structs.replace(state, since=now, strikes=strikes, slowed=slowed, good=0)
    if signal.kind == "nameless":
        return _held(state, now + NAME_AGAIN_MS + _CLOCKS_MS, signal.text, now)
    # a host that answers on another port, or did a moment ago, is not held up for one failure
    if signal.kind == "slow" or (signal.kind == "unreachable" and state.heard and strikes == 1):
        return state
    if signal.kind == "throttled" and has_bad_pages(state, left):
        return state
    patient = signal.kind in ("closed", "offline") or (signal.kind in ("unreachable", "mute") and answered)
    longest = _LONGEST_BACK_OFF_MS if patient else _LAST_MS
    wait = int(min(_FIRST_MS << min(strikes - 1, 16), longest) * (0.5 + chance / 2))
    return _held(state, now + wait, signal.text, now)


def has_bad_pages(state: HostState, left: int) -> bool:
    """Whether a host throttles so much without a word of waiting that the pages left of it must be to blame."""
    return state.bare >= min(max(_MOST_BARE, _BARE_EACH * left), _BARE_EVER)


def _grown_gap(state: HostState) -> int:
    """The gap of a host that throttles: half as long again when it had begun to answer after its wait.

    After many answers the gap is not what it wants: some of its pages are always refused.
    """
    if state.steady >= _LATE:
        return _halved(state.gap_ms)
    if not 1 <= state.steady < _SOON:
        return state.gap_ms
    return min(max(_FIRST_GAP_MS, state.gap_ms * 3 // 2), _LONGEST_GAP_MS)


def is_asked_for(reason: str) -> bool:
    """Whether a host asked for a wait itself: it is reported and kept at once, however short it is."""
    return reason.endswith(_ASKED_FOR)


def is_back_off(reason: str) -> bool:
    """Whether a wait is ours, because a host could not be reached, and not one that the host asked for."""
    return ": " in reason and not is_asked_for(reason)


def believable(until: int, reason: str, now: int) -> int:
    """The end of a wait that an earlier run set, no later than any wait lasts: the clock may have been set back since.

    A stored wait of more than a day is ignored: the clock was set; a wait of our own is much shorter.
    """
    longest = LONGEST_ASKED_MS if is_asked_for(reason) else _LONGEST_PAUSE_MS
    return min(until, now + longest)


def is_proof(failures: int, *, heard: bool) -> bool:
    """Whether so many failures in a row prove an origin dead."""
    return failures >= (_PROOF_HEARD if heard else _PROOF)
