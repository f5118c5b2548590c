"""Answers of the server that more than one of its faces gives."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from starlette.responses import Response, StreamingResponse

from muniment.replay.captures.bodies import AT_ONCE

__all__ = ["body_response", "page_response", "static_response"]


def body_response(pieces: Iterator[bytes], length: int | None, status: int, headers: list[tuple[str, str]]) -> Response:
    """A body of the archive, and headers that may come more than once.

    A small one is read here, which may take its time, and sent at once: what is streamed waits for a thread at every
    piece.
    """
    small = length is not None and length <= AT_ONCE
    response = Response(b"".join(pieces), status) if small else StreamingResponse(pieces, status)
    lines = headers if length is None else [*headers, ("content-length", str(length))]
    response.raw_headers = [
        (name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in lines
    ]
    return response


def page_response(text: str, status: int, headers: dict[str, str]) -> Response:
    """A page of HTML."""
    return Response(text, status, headers, "text/html; charset=utf-8")


def static_response(name: str, headers: dict[str, str]) -> Response:
    """A file of ours."""
    kind = "text/css" if name.endswith("css") else "text/javascript"
    return Response(_bytes_of(name), 200, headers, f"{kind}; charset=utf-8")


@cache
def _bytes_of(name: str) -> bytes:
    return (files("muniment.replay") / "static" / name).read_bytes()
