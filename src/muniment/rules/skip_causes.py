"""Causes: why pages are left out, by how their reason begins, and what to do. All pure."""

from __future__ import annotations

from msgspec import Struct

from muniment.rules.rule_engine import IGNORED, RULED

__all__ = ["BEGINNINGS", "OTHER", "SkipCause", "advised"]

OTHER = "other"
_IGNORED, _ROBOTS, _DEAD, _LIMIT, _NOT_KEPT = "ignore", "robots", "dead-host", "limit", "noarchive"
BEGINNINGS = (
    (IGNORED, _IGNORED),
    (RULED, _IGNORED),
    ("robots: the page ", _NOT_KEPT),
    ("robots: ", _ROBOTS),
    ("dead-host: ", _DEAD),
    ("noarchive: ", _NOT_KEPT),
    ("url: ", _LIMIT),
    ("limit: ", _LIMIT),
)
"""How reasons and errors begin, and the cause that each stands for; the first that fits counts."""


class SkipCause(Struct, frozen=True):
    """Pages of a job that were left out for one cause."""

    cause: str
    """`ignore`, `robots`, `dead-host`, `limit`, `noarchive` or `other`."""
    pages: int
    failed: bool
    """Whether they count as failed, as in a fetch, where they have rows; otherwise they are skipped."""


def advised(left: SkipCause, place: str) -> str:
    """A line of the summary: why pages are left out, and what to do; `place` is the directory for a shell."""
    told = {
        _IGNORED: f"ignore patterns or rules; `muniment ignores list -o {place}` lists them, `remove` removes one",
        _ROBOTS: "robots.txt; the same command with --no-robots captures them",
        _DEAD: "hosts that were given up; the same command tries them again",
        _LIMIT: "limits (length of a URL, redirects); `muniment why URL` says which",
        _NOT_KEPT: "--noarchive; a new crawl without that option captures them",
    }
    return f"{left.pages:,} {'failed' if left.failed else 'skipped'} by {told.get(left.cause, _REST)}"


_REST = "something else; crawl.jsonl names it"
