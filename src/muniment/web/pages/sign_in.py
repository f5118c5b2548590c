"""Signing in: on the loopback by a ticket that the command printed, at a server by a token."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from muniment.model.network.scopes import TokenScope
from muniment.web.pages.render import page_text
from muniment.web.pages.site import Visitor, form_of, see_other
from muniment.web.pages.tickets import SESSION_S, Tickets
from muniment.web.refusals import RefusedRequestError

if TYPE_CHECKING:
    from muniment.web.state import ServerState

__all__ = ["TicketSignIn", "TokenSignIn"]

_TOKEN_SESSION_S = 12 * 3600
_MOST_ENDED = 10_000


class TicketSignIn:
    """Signing in by the address that the command printed."""

    def __init__(self, tickets: Tickets, port: int, visitor: Visitor) -> None:
        self._tickets, self._visitor = tickets, visitor
        self._cookie = f"muniment-{port}"

    async def visitor(self, request: Request) -> Visitor | None:
        """The user, when the browser has a session."""
        session = request.cookies.get(self._cookie, "")
        return self._visitor if session and self._tickets.is_open(session) else None

    async def not_signed_in(self, request: Request) -> Response:
        """How to get in."""
        return _told_out(401)

    async def log_in(self, request: Request) -> Response:
        """Take a ticket; it works once."""
        session = self._tickets.session(request.query_params.get("ticket", "")) if request.method == "GET" else None
        if session is None:
            return _told_out(401)
        made = see_other("/")
        made.set_cookie(self._cookie, session, max_age=SESSION_S, httponly=True, samesite="strict")
        return made

    async def log_out(self, request: Request) -> Response:
        """End the session."""
        self._tickets.end(request.cookies.get(self._cookie, ""))
        made = _told_out(200)
        made.delete_cookie(self._cookie, httponly=True, samesite="strict")
        return made


class TokenSignIn:
    """Signing in by a token, typed once: no script sees what the browser keeps, and it is looked up each time."""

    def __init__(self, server: ServerState) -> None:
        self._server = server
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._cookie = f"muniment-{server.tracker.socket.getsockname()[1]}"

    async def visitor(self, request: Request) -> Visitor | None:
        """Whose token a request has, in its cookie or its head."""
        session = request.cookies.get(self._cookie, "")
        header = request.headers.get("authorization")
        if header is None and (not session or session in self._ended):
            return None
        try:
            return await self._caller(request, header or f"Bearer {session.partition('.')[2]}")
        except RefusedRequestError as error:
            if header is not None or error.status not in (401, 403):
                raise
            return None

    async def _caller(self, request: Request, header: str) -> Visitor:
        address = request.client.host if request.client else ""
        caller = await self._server.authentication.caller(header, address)
        if caller.pipeline or not caller.may(TokenScope.READ):
            raise RefusedRequestError(403, "scope", "the pages need a token of the scope read")
        submits = caller.may(TokenScope.SUBMIT)
        return Visitor(caller.name, submits, submits, caller.may(TokenScope.OPERATE))

    async def not_signed_in(self, request: Request) -> Response:
        """Have the visitor sign in."""
        return see_other("/login")

    async def log_in(self, request: Request) -> Response:
        """The form for a token, and what becomes of it."""
        if request.method == "GET":
            return _login("", 200)
        token = next((value.strip() for name, value in await form_of(request) if name == "token"), "")
        try:
            await self._caller(request, f"Bearer {token}")
        except RefusedRequestError as error:
            return _login(str(error) if token else "give a token", error.status)
        made = see_other("/")
        session = f"{secrets.token_urlsafe(12)}.{token}"
        secure = any(origin.startswith("https:") for origin in (self._server.tracker.order.public_url,))
        made.set_cookie(
            self._cookie, session, max_age=_TOKEN_SESSION_S, httponly=True, samesite="strict", secure=secure
        )
        return made

    async def log_out(self, request: Request) -> Response:
        """End the session."""
        session = request.cookies.get(self._cookie, "")
        if session:
            self._ended[session] = None
            while len(self._ended) > _MOST_ENDED:
                self._ended.popitem(last=False)
        made = see_other("/login")
        made.delete_cookie(self._cookie, httponly=True, samesite="strict")
        return made


def _told_out(status: int) -> Response:
    return HTMLResponse(page_text("signed_out.html", {"theme": "system"}), status)


def _login(error: str, status: int) -> Response:
    return HTMLResponse(page_text("login.html", {"theme": "system", "error": error}), status)
