"""Digests of many exchanges at once, before they are written one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muniment.archive.multibuffer import ARENA, Multibuffer, Place, load
from muniment.model.exchange import Exchange

__all__ = ["digest_together"]

_FEWEST = 4
"""Exchanges, of two messages each, that may be worth it."""
_SMALLEST = 2 << 10
"""Bytes of a body below which a digest by itself takes no longer."""


def digest_together(exchanges: Sequence[Exchange]) -> Iterator[None]:
    """Let bodies know their payloads' and blocks' digests, as many as the arena holds at each step; to be run through.

    A step takes a few milliseconds, and others may have their turn between two. Bodies that gain nothing by it are left
    out, and all of them where there is no multi-buffer library: who asks for their digests computes them.
    """
    fit = [exchange for exchange in exchanges if _fits(exchange)]
    multibuffer = load() if len(fit) >= _FEWEST else None
    if multibuffer is None:
        return
    group: list[Exchange] = []
    used = 0
    for exchange in fit:
        room = _room(exchange)
        if used + room > ARENA:
            _digest(multibuffer, group)
            yield
            group, used = [], 0
        group.append(exchange)
        used += room
    _digest(multibuffer, group)
    yield


def _fits(exchange: Exchange) -> bool:
    body = exchange.body
    return body.in_memory and body.length >= _SMALLEST and _room(exchange) <= ARENA and bool(exchange.head)


def _room(exchange: Exchange) -> int:
    body = exchange.body
    block = len(exchange.head) + body.length
    return block if body.length == body.payload_length else block + body.payload_length


def _digest(multibuffer: Multibuffer, exchanges: list[Exchange]) -> None:
    places: list[Place] = []
    end = 0
    for exchange in exchanges:
        block, payload, end = _put(multibuffer.arena, end, exchange)
        places += (payload, block)
    digests = iter(multibuffer.digests(places))
    for exchange, payload_sha1, block_sha1 in zip(exchanges, digests, digests, strict=True):
        exchange.body.know(payload_sha1, block_sha1)


def _put(arena: memoryview, at: int, exchange: Exchange) -> tuple[Place, Place, int]:
    """Copy an exchange into the arena: where its block lies, where its payload, and where both end."""
    body = exchange.body
    start = at + len(exchange.head)
    arena[at:start] = exchange.head
    end = start
    for piece in body.wire():
        begun, end = end, end + len(piece)
        arena[begun:end] = piece
    block = at, end - at
    if body.length == body.payload_length:
        return block, (start, end - start), end
    # what is chunked lies there twice
    payload = body.payload(body.payload_length)
    begun, end = end, end + len(payload)
    arena[begun:end] = payload
    return block, (begun, end - begun), end
