"""What a browser made of a page."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from muniment.model.exchange import RequestEnded

__all__ = ["ConsoleLine", "RenderState", "RenderedPage", "ScriptOutcome"]

RenderState = Literal["settled", "time", "failed"]


class ConsoleLine(Struct, frozen=True):
    """An error that the page wrote, or an exception that nobody caught."""

    level: Literal["error", "exception"]
    text: str
    url: str
    line: int


class ScriptOutcome(Struct, frozen=True):
    """What custom_js gave: its value as JSON, or how it failed."""

    done: bool
    value: bytes


class RenderedPage(Struct, kw_only=True):
    """What was taken of a page; parts are missing when they were not wanted or there was no time for them."""

    state: RenderState = "settled"
    url: str = ""
    """Where it was opened."""
    final_url: str = ""
    title: str = ""
    status: int = 0
    agent: str = ""
    links: list[tuple[str, str]] = []
    """URL and how it was found, in the words of `FoundAs`."""
    dom: bytes = b""
    text: bytes = b""
    pictures: dict[str, bytes] = {}
    """By name: view, thumbnail, fullPage, customJs."""
    script: ScriptOutcome | None = None
    console: list[ConsoleLine] = []
    script_errors: int = 0
    chains: list[list[RequestEnded]] = []
    documents: list[str] = []
    """The documents that followed the first one, as after a redirect."""
    cookies: list[dict[str, Any]] = []
    """Those of its context at its end."""
