"""What an attempt saved beyond its records, by kind (seed 002)."""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec import Struct

from muniment.errors import ProtocolError

__all__ = ["Result", "ResultKind", "ResultStatus", "check_result"]


class ResultKind(StrEnum):
    """What a result is; its value is JSON, or the bytes of a file where that is said."""

    STATUS_CODE = "status_code"
    """The HTTP status that a browser shows the page with: a number."""
    FINAL_URL = "final_url"
    """Where the page was in the end: a URL."""
    OUTLINKS = "outlinks"
    """Where it leads to: a list of URLs."""
    REQUISITES = "requisites"
    """What was asked for to show it: a list of chains of requests, an object each."""
    SCREENSHOT = "screenshot"
    """A picture of the whole page: a file."""
    CUSTOM_JS = "custom_js"
    """What the rule's JavaScript gave: any value, or the exception."""
    UA = "ua"
    """The user agent that the page was asked for with: a text."""


class ResultStatus(StrEnum):
    """What became of what a result tells about."""

    DONE = "done"
    """It was done, and the value is what came of it."""
    FAILED = "failed"
    """It was tried and went wrong; the value says how."""
    NOT_RUN = "not-run"
    """Rules asked for it, and the engine that had the page cannot do it."""


class Result(Struct, frozen=True, array_like=True):
    """One result of an attempt."""

    kind: str
    """A `ResultKind`."""
    value: bytes
    status: str = ResultStatus.DONE.value
    media_type: str = "application/json"


_TYPES: dict[str, object] = {
    ResultKind.STATUS_CODE: int,
    ResultKind.FINAL_URL: str,
    ResultKind.OUTLINKS: list[str],
    ResultKind.REQUISITES: list[list[dict[str, object]]],
    ResultKind.UA: str,
}
_JSON = "application/json"


def check_result(result: Result) -> None:
    """Raise ProtocolError with one line for a result that is none of its kind."""
    if result.kind not in set(ResultKind):
        raise ProtocolError(f"unknown result {result.kind!r}")
    if result.status not in set(ResultStatus):
        raise ProtocolError(f"invalid status {result.status!r} of a result")
    if result.status != ResultStatus.DONE or result.media_type != _JSON:
        return
    try:
        msgspec.json.decode(result.value, type=_TYPES.get(result.kind, object))
    except msgspec.DecodeError as error:
        raise ProtocolError(f"the result {result.kind} is not what it should be: {error}") from None
