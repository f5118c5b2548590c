"""What a server refuses, and how it says so: a status, a code for programs and one line for people."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec
from msgspec import Struct
from starlette.responses import Response

from muniment.errors import (
    BusyError,
    DiskFullError,
    ForeignJobError,
    MunimentError,
    NotFoundError,
    PlaceError,
    PrivateTargetError,
    ProtocolError,
    SessionEndedError,
    TrackerError,
    UsageError,
    WrongAskError,
)
from muniment.model.names import told_name

__all__ = [
    "ErrorAnswer",
    "ErrorDetail",
    "RefusedRequestError",
    "busy",
    "database_away",
    "json_response",
    "refusal_of",
    "refused",
    "stopping",
]

_log = logging.getLogger(__name__)
_RETRY_S = 1
"""Seconds after which asking again makes sense."""
_MOST_TEXT = 2000


class ErrorDetail(Struct, frozen=True):
    """The error of an answer."""

    code: str
    """For programs."""
    text: str
    """For people, one line."""


class ErrorAnswer(Struct, frozen=True):
    """An answer that is an error."""

    error: ErrorDetail


class RefusedRequestError(MunimentError):
    """A request that is refused."""

    def __init__(
        self,
        status: int,
        code: str,
        text: str,
        *,
        retry_s: int = 0,
        headers: Mapping[str, str] | None = None,
        **more: object,
    ) -> None:
        super().__init__(text)
        self.status, self.code, self.more = status, code, more
        self.headers = dict(headers or {}) | ({"Retry-After": str(retry_s)} if retry_s else {})


def busy(text: str = "the server has too much to do; ask again in a moment", status: int = 503) -> RefusedRequestError:
    """More was asked than the server can do."""
    return RefusedRequestError(status, "busy", text, retry_s=_RETRY_S)


def stopping() -> RefusedRequestError:
    """The server is about to end."""
    return RefusedRequestError(
        503, "stopping", "the server is stopping; ask again, or ask another one", retry_s=_RETRY_S
    )


def database_away(text: str = "the database is away; ask again in a moment") -> RefusedRequestError:
    """The database cannot be reached for now."""
    return RefusedRequestError(503, "database", text, retry_s=_RETRY_S)


def refusal_of(error: Exception) -> RefusedRequestError:
    """The refusal for an error; an unexpected one is logged."""
    if isinstance(error, RefusedRequestError):
        return error
    if isinstance(error, PlaceError):
        return RefusedRequestError(409, "place", str(error), at=error.at)
    if isinstance(error, SessionEndedError):
        return RefusedRequestError(409, "session-ended", str(error), ending=error.ending)
    for kind, status, code in _KINDS:
        if isinstance(error, kind):
            return RefusedRequestError(status, code, str(error), retry_s=_RETRY_S if status == 503 else 0)
    _log.error("internal error: %s: %s", type(error).__name__, error, exc_info=error)
    return busy("the server failed at this request, and its log says why; ask again")


_KINDS: tuple[tuple[type[MunimentError], int, str], ...] = (
    (NotFoundError, 404, "not-found"),
    (ForeignJobError, 403, "scope"),
    (PrivateTargetError, 422, "private-address"),
    (BusyError, 503, "busy"),
    (UsageError, 422, "usage"),
    (ProtocolError, 422, "usage"),
    (WrongAskError, 409, "ask"),
    (TrackerError, 503, "database"),
    (DiskFullError, 503, "database"),
)
"""The first that fits counts."""


def refused(error: RefusedRequestError) -> Response:
    """The answer to a request that is refused."""
    text = " ".join(told_name(str(error)).split())[:_MOST_TEXT]
    detail = {"code": error.code, "text": text}
    return json_response({"error": detail, **error.more}, error.status, error.headers)


def json_response(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON; without a body when there is no value."""
    given = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **(headers or {})}
    if value is None:
        return Response(status_code=status, headers=given)
    return Response(msgspec.json.encode(value), status, given, "application/json")
