"""Queries of lists: what comes after the `?` of a URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from msgspec import Struct

from muniment.model.network.lists import MOST_LISTED
from muniment.web.bodies import query_of
from muniment.web.refusals import RefusedRequestError

__all__ = ["JobsQuery", "ListQuery", "listed"]


class ListQuery(Struct, frozen=True, kw_only=True):
    """A part of a list."""

    after: int = 0
    """The number to go on after."""
    limit: int = MOST_LISTED


class JobsQuery(ListQuery, frozen=True, kw_only=True):
    """A part of the list of jobs."""

    state: str = ""


_Query = TypeVar("_Query", bound=ListQuery)


def listed(values: Mapping[str, str], kind: type[_Query]) -> _Query:
    """The query of a list; raises RefusedRequestError."""
    query = query_of(values, kind)
    if not 1 <= query.limit <= MOST_LISTED:
        raise RefusedRequestError(422, "usage", f"limit is from 1 to {MOST_LISTED}, not {query.limit}")
    return query
