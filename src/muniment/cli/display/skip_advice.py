"""What the summary says about pages that were left out: how many, why, and what to do."""

from __future__ import annotations

from muniment.rules.skip_causes import DEAD, IGNORED, INSIDE, LIMIT, NOT_KEPT, ROBOTS, SET_ASIDE

__all__ = ["skip_advice"]

_REST = "something else; crawl.jsonl names it"


def skip_advice(cause: str, pages: int, place: str, *, failed: bool) -> str:
    """A line of the summary about the pages that one cause left out; `place` is the directory for a shell.

    In a fetch they have rows and count as `failed`, and only what is known has a line.
    """
    said = {
        IGNORED: f"ignore patterns or rules; `muniment ignores list -o {place}` lists them, `remove` removes one",
        SET_ASIDE: f"guards against traps; `muniment ignores list -o {place}` lists them, `remove` brings one back",
        ROBOTS: "robots.txt; the same command with --no-robots captures them",
        DEAD: "hosts that were given up; the same command with --retry-failed tries them again",
        INSIDE: "private addresses; the same command with --allow-private captures them",
        LIMIT: "limits (length of a URL, redirects); `muniment why URL` says which",
        NOT_KEPT: "--noarchive; a new crawl without that option captures them",
    }
    if failed and cause not in said:
        return ""
    return f"{pages:,} {'failed' if failed else 'skipped'} by {said.get(cause, _REST)}"
