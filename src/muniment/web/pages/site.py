"""The site: what all pages share, who visits, and what becomes of a request."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar
from urllib.parse import parse_qsl

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from muniment.control.fleet.backends import CaptureBackend
from muniment.errors import DiskFullError, ForeignJobError, MunimentError, NotFoundError, TrackerError, UsageError
from muniment.model.names import told_name
from muniment.web.pages.backend import PagesBackend
from muniment.web.pages.render import page_text
from muniment.web.refusals import RefusedRequestError

__all__ = [
    "THEMES",
    "ForbiddenError",
    "PageHandler",
    "PageSite",
    "PageVisit",
    "SignIn",
    "Visitor",
    "answered",
    "form_of",
    "nowhere",
    "see_other",
]

_log = logging.getLogger(__name__)
_MOST_FORM = 4 << 20
_T = TypeVar("_T")
THEMES = ("system", "light", "dark")


class Visitor(Struct, frozen=True):
    """Who looks at the pages."""

    name: str
    may_steer: bool
    may_submit: bool
    may_all: bool = True
    """Change jobs of others, too."""


class ForbiddenError(MunimentError):
    """The visitor may not do this."""


class SignIn(Protocol):
    """How visitors sign in."""

    async def visitor(self, request: Request) -> Visitor | None:
        """Who sends a request; None for nobody who is known."""

    async def not_signed_in(self, request: Request) -> Response:
        """What nobody who is known gets to see."""

    async def log_in(self, request: Request) -> Response:
        """Sign in."""

    async def log_out(self, request: Request) -> Response:
        """Sign out."""


class PageSite(Protocol):
    """The pages' side of a dashboard or a server."""

    title: str
    sign_in: SignIn
    local: bool
    """Over local runs: there are processes and captures of this machine, and no pipelines."""

    @property
    def stopping(self) -> bool:
        """Whether it is about to end."""

    async def ask(self, question: Callable[[PagesBackend], _T]) -> _T:
        """The answer to a question."""

    async def look(self, question: Callable[[CaptureBackend], _T]) -> _T:
        """The answer to a question about captures, which may take seconds."""

    def is_near(self, request: Request) -> bool:
        """Whether the browser that sends a request is on this machine, as far as that can be known."""

    async def kill(self, process_id: str, visitor: Visitor) -> None:
        """End a process and all below it; raises ForbiddenError."""

    async def act(self, action: Callable[[PagesBackend], _T], visitor: Visitor, job: int = 0) -> _T:
        """Carry out a change that somebody makes, of a job."""


class PageVisit(Struct, frozen=True):
    """A request of a visitor."""

    site: PageSite
    request: Request
    visitor: Visitor
    form: list[tuple[str, str]]

    @property
    def job(self) -> int:
        """The job of the path."""
        return int(self.request.path_params["job"])

    def given(self, name: str) -> str:
        """A field of the form, or else of the query; empty without one."""
        found = [value for one, value in self.form if one == name]
        return found[-1] if found else self.request.query_params.get(name, "")

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """An HTML page."""
        return _page(self.site, self.request, self.visitor, template, status, values)


PageHandler = Callable[[PageVisit], Awaitable[Response]]


def _page(
    site: PageSite, request: Request, visitor: Visitor | None, template: str, status: int, values: dict[str, Any]
) -> Response:
    theme = request.cookies.get("theme", "system")
    shared = {
        "site": site,
        "visitor": visitor,
        "path": request.url.path,
        "theme": theme if theme in THEMES else "system",
        "themes": THEMES,
        "flash": FLASHES.get(request.query_params.get("done", ""), ""),
    }
    return HTMLResponse(page_text(template, {**shared, **values}), status)


FLASHES = {
    "pause": "Paused: no new request begins.",
    "resume": "Resumed.",
    "again": "It may go on; how, is said below.",
    "abort": "Aborted.",
    "settings": "Settings changed.",
    "same": "Nothing changed: the values are the same.",
    "ignores": "Ignore patterns changed.",
    "new": "The job has begun.",
    "kill": "Ended.",
}
"""What a page says after a change, by the word in its address."""


def see_other(path: str) -> Response:
    """Have the browser look at another page."""
    return RedirectResponse(path, 303)


def answered(
    site: PageSite, handler: PageHandler, *, steers: bool = False, submits: bool = False, as_json: bool = False
) -> Callable[[Request], Awaitable[Response]]:
    """The answers of a handler, to who may ask it, whatever goes wrong."""

    async def answer(request: Request) -> Response:
        try:
            visitor = await site.sign_in.visitor(request)
            if visitor is None and as_json:
                return _refused_json(401, "token", "sign in first")
            if visitor is None:
                return await site.sign_in.not_signed_in(request)
            _check_right(visitor, steers=steers, submits=submits)
            form = [] if as_json else await form_of(request)
            return await handler(PageVisit(site, request, visitor, form))
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:  # whatever is sent, there is an answer
            return _told(site, request, _in_words(error), as_json=as_json)

    return answer


def _check_right(visitor: Visitor, *, steers: bool, submits: bool) -> None:
    if (steers and not visitor.may_steer) or (submits and not visitor.may_submit):
        raise ForbiddenError("you may look here and change nothing")


async def form_of(request: Request) -> list[tuple[str, str]]:
    """The fields of a form that was sent; raises UsageError for one that is too large."""
    if request.method != "POST":
        return []
    if int(request.headers.get("content-length") or 0) > _MOST_FORM:
        raise UsageError("the form is too large")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _MOST_FORM:
            raise UsageError("the form is too large")
    return parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)


def _in_words(error: Exception) -> MunimentError:
    if isinstance(error, MunimentError):
        return error
    if isinstance(error, OSError):
        return TrackerError(f"{error.filename or 'a file'}: {error.strerror or error}; look again in a moment")
    _log.error("internal error: %s: %s", type(error).__name__, error, exc_info=error)
    return TrackerError(
        f"the server failed at this request ({type(error).__name__}), and its log says why; try another page"
    )


def _told(site: PageSite, request: Request, error: MunimentError, *, as_json: bool) -> Response:
    status, code = next(((s, c) for kind, s, c in _STATUSES if isinstance(error, kind)), (503, "busy"))
    if isinstance(error, RefusedRequestError):
        status, code = error.status, error.code
    text = " ".join(told_name(str(error)).split())[:2000]
    if as_json:
        return _refused_json(status, code, text)
    back = request.headers.get("referer", "").partition("?")[0]
    own = f"{request.url.scheme}://{request.headers.get('host', '')}/"
    values = {"text": text, "status": status, "back": f"/{back.removeprefix(own)}" if back.startswith(own) else "/"}
    return _page(
        site, request, None, "told.html", status, {**values, "waits": status == 503 and request.method == "GET"}
    )


def _refused_json(status: int, code: str, text: str) -> Response:
    return JSONResponse({"error": {"code": code, "text": text}}, status)


def nowhere(site: PageSite) -> Callable[[Request, Exception], Awaitable[Response]]:
    """The answer to an address that is not a page's, or that takes forms alone."""

    async def answer(request: Request, error: Exception) -> Response:
        taken = isinstance(error, HTTPException) and error.status_code == 405
        text = "this address takes forms alone; go back to the page with the form" if taken else "no page is here"
        if request.url.path.startswith("/v1/"):
            return _refused_json(405 if taken else 404, "method" if taken else "not-found", text)
        found = _told(site, request, NotFoundError(text), as_json=False)
        found.status_code = 405 if taken else 404
        found.headers.update(getattr(error, "headers", None) or {})  # which methods are allowed
        return found

    return answer


_STATUSES = (
    (NotFoundError, 404, "not-found"),
    (ForbiddenError, 403, "scope"),
    (ForeignJobError, 403, "scope"),
    (TrackerError, 503, "database"),
    (DiskFullError, 503, "database"),
    (UsageError, 422, "usage"),
)
