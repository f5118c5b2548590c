"""Which pages need a browser, and which are loaded in one. Pure."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from html import unescape

from msgspec import structs

from muniment.errors import UsageError
from muniment.model.rule import Rule
from muniment.settings.option_table import Settings

__all__ = ["is_document", "may_render", "reason_to_render", "wanted_engine", "why_not_rendered", "with_engine"]

_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_EMPTY = frozenset({204, 205, 304})
"""Statuses of answers without a document: a browser stays where it is."""
_LEAST_TEXT = 200
"""Characters of visible text below which a page with scripts is taken for a frame that they fill."""
_MOST_READ = 4 << 20
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_SCRIPT = re.compile(r"<script\b([^>]*)>(.*?)(?:</script\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_NO_PROGRAM = re.compile(r"""\btype\s*=\s*["']?(?:application/(?:ld\+)?json|text/template|text/html)""", re.IGNORECASE)
_NOSCRIPT = re.compile(r"<noscript\b[^>]*>(.*?)(?:</noscript\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_UNSEEN = re.compile(r"<(style|template|head|svg|textarea|select)\b[^>]*>.*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_LINK = re.compile(r"""<a\s(?:[^>]*\s)?href\s*=\s*["']?(?!\s*(?:#|javascript:|["'>]))""", re.IGNORECASE)
_ASKS = re.compile(
    r"(?:enable|need|requires?|without|turn on|activate|allow)\b.{0,40}\bjava ?script|java ?script", re.I
)
_FILLED = re.compile(
    r"""<(\w[\w-]*)\b[^>]*?\b(?:id\s*=\s*["']?(?:root|app|__next|__nuxt)(?=["'\s>])|data-reactroot\b)[^>]*>\s*</\1"""
    r"""|<app-root\b[^>]*>\s*</app-root""",
    re.IGNORECASE,
)
_IMAGE = re.compile(r"<img\b[^>]*>", re.IGNORECASE)
_SOURCE = re.compile(r"""\ssrc(?:set)?\s*=\s*["']?(?!data:|["'\s>])""", re.IGNORECASE)
_DATA_SOURCE = re.compile(r"\sdata-[\w-]*(?:src|original|lazy|url|image)[\w-]*\s*=", re.IGNORECASE)


def with_engine(settings: Settings, given: Container[str]) -> Settings:
    """The settings with the engine that `--browser` stands for; `given` are the names of those that were given."""
    if not settings.browser:
        return settings
    if "engine" in given and settings.engine != "browser":
        raise UsageError(f"--browser and --engine {settings.engine} contradict each other; give one of them")
    return structs.replace(settings, engine="browser", browser=False)


def wanted_engine(engine: str, order: str) -> str:
    """The engine of a page: what a rule orders, or that of the job."""
    return order or engine


def may_render(engine: str, rules: Iterable[Rule]) -> bool:
    """Whether a job with this engine and these rules may need a browser."""
    return engine != "http" or any(rule.engine == "browser" for rule in rules)


def is_document(status: int, kind: str, disposition: str) -> bool:
    """Whether an answer that does not redirect, of this media type, is a page that a browser can show."""
    shown = not disposition.strip().lower().startswith("attachment")
    return 200 <= status < 400 and status not in _EMPTY and kind in _TYPES and shown


def why_not_rendered(engine: str, order: str, status: int, kind: str, *, is_page: bool) -> str:
    """Why no browser got an answer, by the engine of the job and what a rule says of the page."""
    if wanted_engine(engine, order) == "http":
        return "a rule says engine http" if order else "the engine of the job is http"
    if not is_page:
        return "it is a requisite"
    if not 200 <= status < 300 or status in _EMPTY:
        return f"its status is {status}"
    if not is_document(status, kind, ""):
        return f"it is {kind or 'of no type'}"
    return "it needs no browser" if wanted_engine(engine, order) == "auto" else "it is for downloading"


def reason_to_render(markup: str) -> str:  # noqa: PLR0911
    """Why a page needs a browser; empty when it does not."""
    markup = _COMMENT.sub("", markup[:_MOST_READ])
    scripts = [found for found in _SCRIPT.finditer(markup) if not _NO_PROGRAM.search(found[1])]
    if not scripts:
        return ""
    rest = _SCRIPT.sub(" ", markup)
    hints = [_TAG.sub(" ", found[1]) for found in _NOSCRIPT.finditer(rest)]
    rest = _NOSCRIPT.sub(" ", rest)
    if any(_ASKS.search(hint) for hint in hints):
        return "its noscript asks for scripts"
    if _FILLED.search(rest):
        return "it has an empty element that scripts fill"
    if any(not _SOURCE.search(image[0]) and _DATA_SOURCE.search(image[0]) for image in _IMAGE.finditer(rest)):
        return "it has images whose address only scripts read"
    if not _LINK.search(rest):
        return "it has scripts and no link"
    text = " ".join(unescape(_TAG.sub(" ", _UNSEEN.sub(" ", rest))).split())
    if len(text) < _LEAST_TEXT:
        return f"it has scripts and {len(text)} characters of visible text"
    return ""
