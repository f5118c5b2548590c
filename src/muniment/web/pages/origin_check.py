"""The guard of the pages: only our own names, only our own forms, and the headers of every answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muniment.web.pages.render import HEADERS

__all__ = ["Guard", "refusal"]

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def refusal(
    method: str, headers: Mapping[str, str], origins: Collection[str], *, bearer: bool = False
) -> tuple[int, str] | None:
    """Why a request is not answered, with its status; None when it may pass. Origins are as `http://127.0.0.1:80`."""
    names = {origin.partition("://")[2] for origin in origins}
    if not bearer and headers.get("host", "").lower() not in names:
        return 421, "this server answers to its own names only"
    if method in _SAFE:
        return None
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if origin is not None and origin.lower() not in origins:
        return 403, "a page of another origin cannot change anything here"
    if site is not None and site not in ("same-origin", "none"):
        return 403, "a page of another site cannot change anything here"
    if origin is None and site is None and not bearer:
        return 403, "a request that changes something has to say where it comes from: send Origin"
    return None


class Guard:
    """Answers what may not pass, and adds the headers to the rest."""

    def __init__(self, app: ASGIApp, origins: Callable[[], Collection[str]], *, tokens: bool) -> None:
        """`tokens`: a request with one in its head may use any name; no page of another site can send it."""
        self._app, self._origins, self._tokens = app, origins, tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if scope["type"] != "http":
            return
        given = Headers(scope=scope)
        bearer = self._tokens and given.get("authorization", "").lower().startswith("bearer ")
        refused = refusal(scope["method"], given, self._origins(), bearer=bearer)
        if refused is None:
            await self._app(scope, receive, with_headers)
            return
        status, text = refused
        await PlainTextResponse(f"{text}\n", status)(scope, receive, with_headers)
