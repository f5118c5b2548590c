"""The page of captures, and their bytes as downloads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlencode

from starlette.responses import Response, StreamingResponse

from muniment.errors import UsageError
from muniment.model.network.captures import PER_PAGE
from muniment.web.pages.site import PageVisit
from muniment.web.queries import CAPTURE_FIELDS, query_of_captures

__all__ = ["captures", "hook_file", "picture", "raw", "record", "view"]

_SANDBOX = "sandbox; default-src 'none'"


async def captures(visit: PageVisit) -> Response:
    """Captures that fit, the newest first."""
    wanted = query_of_captures(visit.given)
    rows = await visit.site.look(lambda source: source.captures(wanted))
    given = {name: visit.given(name) for name in CAPTURE_FIELDS}
    kept = {name: value for name, value in given.items() if value}
    following = urlencode({**kept, "page": wanted.page + 1}) if len(rows) > PER_PAGE else ""
    return visit.page("captures.html", rows=rows[:PER_PAGE], given=given, next=following)


async def view(visit: PageVisit) -> Response:
    """Have a replay begin, and say where the capture is."""
    number, url, at = visit.job, visit.given("url"), visit.given("at")
    if not re.fullmatch("[0-9]{1,15}", at):
        raise UsageError(f"{at[:40]!r} is not a moment")
    if not visit.site.is_near(visit.request):
        raise UsageError("a replay answers on the server's own machine alone; give `muniment replay` there")
    address = await visit.site.look(lambda source: source.view_address(number, url, int(at)))
    return visit.page("view.html", address=address, url=url, job=number)


async def record(visit: PageVisit) -> Response:
    """A WARC record as it is stored."""
    number, file, offset = _place(visit)
    pieces = await visit.site.look(lambda source: source.record(number, file, offset))
    return _download(pieces, f"{file}-{offset}.warc", "application/warc")


async def raw(visit: PageVisit) -> Response:
    """The payload of a capture, its content coding kept."""
    number, file, offset = _place(visit)
    pieces = await visit.site.look(lambda source: source.payload(number, file, offset))
    return _download(pieces, f"{file}-{offset}.raw", "application/octet-stream")


async def picture(visit: PageVisit) -> Response:
    """A picture of a page that a browser made; nothing in it runs."""
    number, file, offset = _place(visit)
    kind, pieces = await visit.site.look(lambda source: source.picture(number, file, offset))
    return StreamingResponse(pieces, 200, {"Content-Security-Policy": _SANDBOX}, kind)


async def hook_file(visit: PageVisit) -> Response:
    """A file that hooks left."""
    number, path, url = visit.job, visit.given("path"), visit.given("url")
    pieces = await visit.site.look(lambda source: source.hook_file(number, path, url))
    return _download(pieces, path.rpartition("/")[2], "application/octet-stream")


def _place(visit: PageVisit) -> tuple[int, str, int]:
    offset = visit.given("offset")
    if not re.fullmatch("[0-9]{1,15}", offset):
        raise UsageError(f"{offset[:40]!r} is not an offset")
    return visit.job, visit.given("file"), int(offset)


def _download(pieces: Iterator[bytes], name: str, kind: str) -> Response:
    told = re.sub("[^A-Za-z0-9._-]+", "-", name)
    headers = {"Content-Disposition": f'attachment; filename="{told}"', "Content-Security-Policy": _SANDBOX}
    return StreamingResponse(pieces, 200, headers, kind)
