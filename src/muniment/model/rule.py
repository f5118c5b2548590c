"""A rule of a job: which pages it is about, and what it sets for them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

__all__ = ["NO_ORDERS", "EngineOrders", "Rule", "RuledEngine"]

RuledEngine = Literal["http", "browser"]


class Rule(Struct, frozen=True, omit_defaults=True):
    """One rule; it is about the pages for which all that it names holds, and about all pages when it names nothing."""

    regex: str = ""
    """Found in the normalised URL; Python syntax, `{primary_url}` as in ignore patterns."""
    host: str = ""
    """The host's name; `*.example.com` is every host below example.com, and that itself."""
    prefix: str = ""
    """How the normalised URL begins."""
    depth: tuple[int, int | None] | None = None
    """Fewest and most link hops, both included; pages that no link leads to have none, and are not meant."""
    kind: str = ""
    """How the page was found first: link, requisite, frame, redirect or listed."""
    accept: bool | None = None
    """Whether the URL comes into the queue when it is found."""
    skip: bool | None = None
    """Whether the page is left out (SKIPPED) instead of being handed out."""
    custom_js: str | None = None
    """JavaScript to run in the page."""
    ua: str | None = None
    """User agent to ask with: a name or a text; empty for the job's own."""
    nice: int | None = None
    """The nice value: lower goes first."""
    engine: RuledEngine | None = None
    """Whether the page is rendered in a browser."""


class EngineOrders(Struct, frozen=True, array_like=True):
    """The settings of rules for the engine that fetches a page; empty texts set nothing."""

    custom_js: str = ""
    ua: str = ""
    engine: Literal["", "http", "browser"] = ""


NO_ORDERS = EngineOrders()
