"""Queries: what comes after the `?` of a URL."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TypeVar

from msgspec import Struct

from muniment.errors import UsageError
from muniment.model.network.captures import PER_PAGE, CaptureFilter, CaptureList, CaptureRow
from muniment.model.network.lists import MOST_LISTED
from muniment.web.bodies import query_of
from muniment.web.refusals import RefusedRequestError

__all__ = [
    "CAPTURE_FIELDS",
    "AttemptsQuery",
    "CapturesQuery",
    "JobsQuery",
    "ListQuery",
    "PagesQuery",
    "ProcessesQuery",
    "ResultsQuery",
    "RulesQuery",
    "capture_list",
    "listed",
    "query_of_captures",
]

_MOST_NUMBER = (1 << 63) - 1


class AttemptsQuery(Struct, frozen=True, kw_only=True):
    """A part of a list of attempts."""

    after: str = ""
    """The `next` of the part before."""
    limit: int = MOST_LISTED


class ListQuery(Struct, frozen=True, kw_only=True):
    """A part of a list."""

    after: int = 0
    """The number to go on after."""
    limit: int = MOST_LISTED


class JobsQuery(ListQuery, frozen=True, kw_only=True):
    """A part of the list of jobs."""

    state: str = ""


class PagesQuery(ListQuery, frozen=True, kw_only=True):
    """A part of the list of a job's pages."""

    url: str = ""
    state: str = ""


class ResultsQuery(Struct, frozen=True, kw_only=True):
    """The results of a page."""

    url: str
    attempt: int | None = None
    """None: of all its attempts."""


class ProcessesQuery(Struct, frozen=True, kw_only=True):
    """Which processes."""

    machine: str = ""
    type: str = ""
    status: str = ""


class RulesQuery(Struct, frozen=True, kw_only=True):
    """A version of the rules."""

    version: int | None = None
    """None: the latest."""


CAPTURE_FIELDS = ("q", "job", "host", "status", "type", "error", "from", "to")
"""The fields of a search of captures."""


class CapturesQuery(Struct, frozen=True, kw_only=True, rename={"since": "from", "until": "to"}):
    """A search of captures, as it is written."""

    q: str = ""
    job: int | None = None
    host: str = ""
    status: str = ""
    type: str = ""
    error: str = ""
    since: str = ""
    until: str = ""
    page: int = 0


def query_of_captures(given: Callable[[str], str]) -> CaptureFilter:
    """What is searched, by the text of each field; raises UsageError for a number or a time that is not one."""
    text = {name: given(name).strip() for name in (*CAPTURE_FIELDS, "page")}
    if text["job"] and not re.fullmatch("[0-9]{1,9}", text["job"]):
        raise UsageError(f"{text['job'][:40]!r} is not the number of a job")
    return CaptureFilter(
        q=text["q"],
        job=int(text["job"]) if text["job"] else None,
        host=text["host"],
        status=text["status"],
        type=text["type"],
        error=text["error"],
        since=_time(text["from"]),
        until=_time(text["to"]),
        page=int(text["page"]) if re.fullmatch("[0-9]{1,6}", text["page"]) else 0,
    )


def _time(text: str) -> int | None:
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text[:40]!r} is not a time; write one as 2026-11-25 or 2026-11-25T12:00") from None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def capture_list(rows: list[CaptureRow], wanted: CaptureFilter) -> CaptureList:
    """A page of captures, of what was found: one more than a page when there is another."""
    return CaptureList(rows[:PER_PAGE], wanted.page + 1 if len(rows) > PER_PAGE else None)


_Query = TypeVar("_Query", bound=ListQuery | AttemptsQuery)


def listed(values: Mapping[str, str], kind: type[_Query]) -> _Query:
    """The query of a list; raises RefusedRequestError."""
    query = query_of(values, kind)
    if not 1 <= query.limit <= MOST_LISTED:
        raise RefusedRequestError(422, "usage", f"limit is from 1 to {MOST_LISTED}, not {query.limit}")
    if isinstance(query.after, int) and not 0 <= query.after <= _MOST_NUMBER:
        raise RefusedRequestError(422, "usage", "after is the number that a list gave as next")
    return query
