"""Signals of an exchange about its host, for `rules.hosts.politeness` to judge."""

from __future__ import annotations

from msgspec import structs

from muniment.clock import now_ms
from muniment.extract.coding import decode
from muniment.model.exchange import Exchange
from muniment.model.url import host_of, origin_of, path_of
from muniment.rules.hosts.failures import BARRED
from muniment.rules.hosts.politeness import (
    THROTTLED,
    HostSignal,
    SignalKind,
    asked_wait_ms,
    challenged,
    kind_of,
)

__all__ = ["elsewhere_signal", "page_signal", "robots_signal", "throttled_signal"]

_LOOKED_AT = 1 << 16
"""Bytes of a body that are searched for the marks of a challenge."""
_TELLING = frozenset({202, 403, 405, 429, 503})
"""The only statuses that may mean more for the host than that it answers."""


def throttled_signal(exchange: Exchange) -> HostSignal:
    """The signal of a 429 or 503 as soon as its header block is there, from when Retry-After counts."""
    closed = path_of(exchange.url) == "/robots.txt"
    wait = asked_wait_ms(exchange.header("retry-after"), exchange.header("date"), now_ms())
    return _signal("closed" if closed else "throttled", exchange, wait)


def page_signal(exchange: Exchange) -> HostSignal | None:
    """The signal of a page's whole exchange; None when it only means that the host answers, or was sent before."""
    if exchange.failure is None and exchange.status not in _TELLING:
        return None
    failure = None if exchange.status in _TELLING else exchange.failure
    kind = kind_of(exchange.status, failure)
    if exchange.status in _TELLING and challenged(exchange.status, exchange.headers, _beginning(exchange)):
        kind = "challenge"
    return None if kind in ("answer", "throttled") else _signal(kind, exchange)


def robots_signal(exchange: Exchange) -> HostSignal | None:
    """The same of a request for robots.txt, whose failure closes the whole origin."""
    signal = page_signal(exchange)
    if signal is not None and signal.kind in ("unreachable", "nameless", "barred", "offline"):
        return signal
    failed = exchange.failure is not None or exchange.status >= 500
    if not failed or exchange.status in THROTTLED:
        return signal
    closed = _signal("closed" if exchange.status else "mute", exchange)
    return structs.replace(closed, text=f"robots.txt: {closed.text}")


def elsewhere_signal(exchange: Exchange, origin: str) -> HostSignal | None:
    """What an origin's robots.txt on another host means for that origin; None when it is available."""
    if exchange.failure is None and exchange.status < 500 and exchange.status != 429:
        return None
    wait = asked_wait_ms(exchange.header("retry-after"), exchange.header("date"), now_ms())
    text = f"robots.txt on {host_of(exchange.url)}: {exchange.status or exchange.failure}"
    if exchange.failure is not None and exchange.failure.code == BARRED:
        return HostSignal("barred", f"{BARRED}: {text}", origin, exchange.started_at // 1000)
    return HostSignal("closed" if exchange.status else "mute", text, origin, exchange.started_at // 1000, wait)


def _signal(kind: SignalKind, exchange: Exchange, wait_ms: int = 0) -> HostSignal:
    failure = exchange.failure
    unnamed = failure is not None and failure.code in ("dns", BARRED)
    return HostSignal(
        kind=kind,
        text=str(exchange.status or failure),
        origin=host_of(exchange.url) if unnamed else origin_of(exchange.url),
        asked_at=exchange.started_at // 1000,
        wait_ms=wait_ms,
    )


def _beginning(exchange: Exchange) -> bytes:
    body = exchange.body.payload(_LOOKED_AT)
    coding = exchange.field("content-encoding")
    return decode(body, coding, _LOOKED_AT) if coding else body
