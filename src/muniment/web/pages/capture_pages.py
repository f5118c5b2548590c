"""The page of captures, and their bytes as downloads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import urlencode

from starlette.responses import Response, StreamingResponse

from muniment.errors import UsageError
from muniment.model.network.captures import CaptureQuery
from muniment.web.pages.site import PageVisit

__all__ = ["captures", "query_of_captures", "raw", "record", "view"]

_FIELDS = ("q", "job", "host", "status", "type", "error", "from", "to")
_PER_PAGE = 100
_SANDBOX = "sandbox; default-src 'none'"


def query_of_captures(visit: PageVisit) -> CaptureQuery:
    """What is searched; raises UsageError for a number or a time that is not one."""
    given = {name: visit.given(name).strip() for name in _FIELDS}
    page = visit.given("page")
    if given["job"] and not re.fullmatch("[0-9]{1,9}", given["job"]):
        raise UsageError(f"{given['job'][:40]!r} is not the number of a job")
    return CaptureQuery(
        q=given["q"],
        job=int(given["job"]) if given["job"] else None,
        host=given["host"],
        status=given["status"],
        type=given["type"],
        error=given["error"],
        since=_time(given["from"]),
        until=_time(given["to"]),
        page=int(page) if re.fullmatch("[0-9]{1,6}", page) else 0,
    )


def _time(text: str) -> int | None:
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text[:40]!r} is not a time; write one as 2026-11-25 or 2026-11-25T12:00") from None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


async def captures(visit: PageVisit) -> Response:
    """Captures that fit, the newest first."""
    wanted = query_of_captures(visit)
    rows = await visit.site.ask(lambda desk: desk.captures(wanted))
    given = {name: visit.given(name) for name in _FIELDS}
    kept = {name: value for name, value in given.items() if value}
    following = urlencode({**kept, "page": wanted.page + 1}) if len(rows) > _PER_PAGE else ""
    return visit.page("captures.html", rows=rows[:_PER_PAGE], given=given, next=following)


async def view(visit: PageVisit) -> Response:
    """Have a replay begin, and say where the capture is."""
    number, url, at = visit.job, visit.given("url"), visit.given("at")
    if not re.fullmatch("[0-9]{1,15}", at):
        raise UsageError(f"{at[:40]!r} is not a moment")
    address = await visit.site.act(lambda desk: desk.view_address(number, url, int(at)), visit.visitor)
    return visit.page("view.html", address=address, url=url, job=number)


async def record(visit: PageVisit) -> Response:
    """A WARC record as it is stored."""
    number, file, offset = _place(visit)
    pieces = await visit.site.ask(lambda desk: desk.record(number, file, offset))
    return _download(pieces, f"{file}-{offset}.warc", "application/warc")


async def raw(visit: PageVisit) -> Response:
    """The payload of a capture, its content coding kept."""
    number, file, offset = _place(visit)
    pieces = await visit.site.ask(lambda desk: desk.payload(number, file, offset))
    return _download(pieces, f"{file}-{offset}.raw", "application/octet-stream")


def _place(visit: PageVisit) -> tuple[int, str, int]:
    offset = visit.given("offset")
    if not re.fullmatch("[0-9]{1,15}", offset):
        raise UsageError(f"{offset[:40]!r} is not an offset")
    return visit.job, visit.given("file"), int(offset)


def _download(pieces: Iterator[bytes], name: str, kind: str) -> Response:
    told = re.sub("[^A-Za-z0-9._-]+", "-", name)
    headers = {"Content-Disposition": f'attachment; filename="{told}"', "Content-Security-Policy": _SANDBOX}
    return StreamingResponse(pieces, 200, headers, kind)
