"""The faces of one server, chosen by the Host: the front, archived pages, and the index for the rewriter."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from muniment.replay.security_headers import download_headers

__all__ = ["Face", "ReplaySite"]

Face = Callable[[Request, str, str], Awaitable[Response]]
"""Answers a request, by its path and its query as they were sent."""


class ReplaySite:
    """Answers requests to known hosts."""

    def __init__(self, faces: Mapping[str, Face]) -> None:
        self._faces = faces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1").lower()
        face = self._faces.get(host)
        path = scope.get("raw_path", scope["path"].encode()).decode("latin-1")
        query = scope["query_string"].decode("latin-1")
        if face is None:
            policy = download_headers("refused.txt")
            response: Response = PlainTextResponse("This server answers to its own names only.\n", 421, policy)
        else:
            response = await face(Request(scope, receive), path, query)
        await response(scope, receive, send)
