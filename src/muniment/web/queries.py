"""Queries: what comes after the `?` of a URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from msgspec import Struct

from muniment.model.network.lists import MOST_LISTED
from muniment.web.bodies import query_of
from muniment.web.refusals import RefusedRequestError

__all__ = [
    "AttemptsQuery",
    "JobsQuery",
    "ListQuery",
    "PagesQuery",
    "ProcessesQuery",
    "ResultsQuery",
    "RulesQuery",
    "listed",
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


_Query = TypeVar("_Query", bound=ListQuery | AttemptsQuery)


def listed(values: Mapping[str, str], kind: type[_Query]) -> _Query:
    """The query of a list; raises RefusedRequestError."""
    query = query_of(values, kind)
    if not 1 <= query.limit <= MOST_LISTED:
        raise RefusedRequestError(422, "usage", f"limit is from 1 to {MOST_LISTED}, not {query.limit}")
    if isinstance(query.after, int) and not 0 <= query.after <= _MOST_NUMBER:
        raise RefusedRequestError(422, "usage", "after is the number that a list gave as next")
    return query
