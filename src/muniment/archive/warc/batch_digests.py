"""Digests of many exchanges at once, before they are written one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muniment.archive.warc.multibuffer import Message, Multibuffer, load
from muniment.model.exchange import Exchange

__all__ = ["digest_together"]

_AT_ONCE = 4 << 20
"""Bytes of bodies after which a step ends: 2 or 3 ms."""
_FEWEST = 4
"""Exchanges, of two messages each, that may be worth it."""
_SMALLEST = 2 << 10
"""Bytes of a body below which a digest by itself takes no longer."""


def digest_together(exchanges: Sequence[Exchange]) -> Iterator[None]:
    """Let bodies know their payloads' and blocks' digests, some megabytes at each step; to be run through.

    A step takes a few milliseconds, and others may have their turn between two. Bodies that gain nothing by it are left
    out, and all of them where there is no multi-buffer library: who asks for their digests computes them.
    """
    fit = [exchange for exchange in exchanges if _fits(exchange)]
    multibuffer = load() if len(fit) >= _FEWEST else None
    if multibuffer is None:
        return
    group: list[Exchange] = []
    size = 0
    for exchange in fit:
        group.append(exchange)
        size += exchange.body.length
        if size >= _AT_ONCE:
            _digest(multibuffer, group)
            yield
            group, size = [], 0
    if group:
        _digest(multibuffer, group)
        yield


def _fits(exchange: Exchange) -> bool:
    body = exchange.body
    return body.in_memory and body.length >= _SMALLEST and bool(exchange.head)


def _digest(multibuffer: Multibuffer, exchanges: list[Exchange]) -> None:
    messages = [message for exchange in exchanges for message in _messages(exchange)]
    digests = iter(multibuffer.digests(messages))
    for exchange, payload_sha1, block_sha1 in zip(exchanges, digests, digests, strict=True):
        exchange.body.know(payload_sha1, block_sha1)


def _messages(exchange: Exchange) -> tuple[Message, Message]:
    """An exchange's payload and its block."""
    body, block = exchange.body, _block(exchange)
    if body.length == body.payload_length:
        return (block, len(exchange.head)), (block, 0)
    return (body.payload(body.payload_length), 0), (block, 0)


def _block(exchange: Exchange) -> bytes:
    """The header block and the body in one piece: the read that brought them, where it was one and nothing else."""
    head, pieces = exchange.head, list(exchange.body.wire())
    read = pieces[0].obj if len(pieces) == 1 and isinstance(pieces[0], memoryview) else None
    if isinstance(read, bytes) and len(read) == len(head) + len(pieces[0]) and read.startswith(head):
        return read
    return b"".join((head, *pieces))
