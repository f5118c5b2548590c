"""Bodies of requests: read within bounds of size and time, unpacked, and made into values."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Mapping
from typing import TypeVar

import msgspec
from starlette.requests import Request

from muniment.clock import monotonic
from muniment.web.refusals import RefusedRequestError, busy

__all__ = ["MOST_BODY", "BodyReader", "query_of"]

MOST_BODY = 32 << 20
"""Bytes of a body, as sent and unpacked."""
_MOST_TOGETHER = 8 * MOST_BODY
"""Bytes of all bodies that are being read."""
_FIRST_S, _SLOWEST = 20.0, 64 << 10
"""Seconds that a body may take, and bytes for which it may take one more."""
_Value = TypeVar("_Value")


class BodyReader:
    """Reads bodies; all of them together take a bounded part of the memory."""

    def __init__(self) -> None:
        self._held = 0

    async def read(self, request: Request, kind: type[_Value]) -> _Value:
        """The body of a request as a value; raises RefusedRequestError."""
        _check_type(request.headers.get("content-type", ""))
        coding = request.headers.get("content-encoding", "identity").strip().lower()
        if coding not in {"identity", "gzip", "x-gzip", ""}:
            raise RefusedRequestError(415, "unsupported", f"the content coding {coding[:40]!r} is not taken; use gzip")
        if int(request.headers.get("content-length", "0")) > MOST_BODY:
            raise _too_large()
        body = bytearray()
        try:
            await self._fill(body, request, packed=coding not in {"identity", ""})
            return _decoded(bytes(body), kind)
        finally:
            self._held -= len(body)

    async def _fill(self, body: bytearray, request: Request, *, packed: bool) -> None:
        chunks = _within_time(request.stream())
        async for chunk in _unpacked(chunks) if packed else chunks:
            if len(body) + len(chunk) > MOST_BODY:
                raise _too_large()
            if self._held + len(chunk) > _MOST_TOGETHER:
                raise busy("the server has too many large requests at once; send it again in a moment")
            self._held += len(chunk)
            body += chunk


def query_of(values: Mapping[str, str], kind: type[_Value]) -> _Value:
    """What comes after the `?` as a value; what is empty counts as left out. Raises RefusedRequestError."""
    try:
        return msgspec.convert({name: text for name, text in values.items() if text}, kind, strict=False)
    except (msgspec.ValidationError, ValueError) as error:
        raise RefusedRequestError(400, "bad-request", f"the query is not as it should be: {error}") from None


def _check_type(given: str) -> None:
    kind, _, parameters = given.partition(";")
    charset = parameters.replace(" ", "").lower()
    if given and (
        kind.strip().lower() != "application/json" or charset not in {"", "charset=utf-8", 'charset="utf-8"'}
    ):
        raise RefusedRequestError(415, "unsupported", f"a body is application/json in UTF-8, not {given[:80]!r}")


def _too_large() -> RefusedRequestError:
    return RefusedRequestError(413, "too-large", f"a body has at most {MOST_BODY >> 20} MiB, unpacked as well")


async def _within_time(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A body that comes slowly holds memory: after a while it is refused."""
    began, size = monotonic(), 0
    while True:
        try:
            async with asyncio.timeout(began + _FIRST_S + size / _SLOWEST - monotonic()):
                chunk = await anext(chunks)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise RefusedRequestError(
                400, "bad-request", "the body came too slowly; send it again", headers={"Connection": "close"}
            ) from None
        size += len(chunk)
        yield chunk


async def _unpacked(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A gzip stream, unpacked to no more than may be taken."""
    member = zlib.decompressobj(31)
    async for chunk in chunks:
        rest = chunk
        while rest:
            if member.eof:
                member = zlib.decompressobj(31)
            try:
                yield member.decompress(rest, MOST_BODY + 1)
            except zlib.error:
                raise RefusedRequestError(400, "bad-request", "the body is not gzip, though it says so") from None
            rest = member.unconsumed_tail or member.unused_data
    if not member.eof:
        raise RefusedRequestError(400, "bad-request", "the gzip stream of the body is cut short")


def _decoded(body: bytes, kind: type[_Value]) -> _Value:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise RefusedRequestError(400, "bad-request", f"the body is not as it should be: {error}") from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise RefusedRequestError(400, "bad-request", f"the body is not JSON: {error}") from None
