"""Answers of the server that more than one of its faces gives."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from starlette.responses import Response

__all__ = ["page_response", "static_response"]


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
