"""What an attempt saved beyond its records, by kind."""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec import Struct

from muniment.errors import ProtocolError

__all__ = ["PageResource", "Result", "ResultKind", "ResultStatus", "check_result"]


class ResultKind(StrEnum):
    """The kind of a result; its value is JSON, or the bytes of a file where noted."""

    STATUS_CODE = "status_code"
    """The HTTP status that a browser shows the page with: a number."""
    FINAL_URL = "final_url"
    """Where the page was in the end: a URL."""
    OUTLINKS = "outlinks"
    """Where it leads to: a list of URLs."""
    REQUISITES = "requisites"
    """What was asked for to show it: a list of chains of requests, an object each."""
    SCREENSHOT = "screenshot"
    """The ids of the records of its pictures, by name."""
    TITLE = "title"
    """The title of the document: a text."""
    CONSOLE = "console"
    """The errors that it wrote and the exceptions that nobody caught: a list of objects."""
    CUSTOM_JS = "custom_js"
    """What the rule's JavaScript gave: any value, or the exception."""
    UA = "ua"
    """The user agent that the page was asked for with: a text."""


class ResultStatus(StrEnum):
    """The outcome that a result reports."""

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


class PageResource(Struct, frozen=True):
    """What becomes one `resource` record."""

    uri: str
    """`urn:KIND:URL`."""
    content_type: str
    block: bytes
    record_id: str
    """`urn:uuid:…`."""


_TYPES: dict[str, object] = {
    ResultKind.STATUS_CODE: int,
    ResultKind.FINAL_URL: str,
    ResultKind.OUTLINKS: list[str],
    ResultKind.REQUISITES: list[list[dict[str, object]]],
    ResultKind.UA: str,
    ResultKind.TITLE: str,
    ResultKind.CONSOLE: list[dict[str, object]],
    ResultKind.SCREENSHOT: dict[str, str],
}
_JSON = "application/json"


def check_result(result: Result) -> None:
    """Raise ProtocolError with one line for an invalid result."""
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
