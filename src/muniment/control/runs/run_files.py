"""What the files of a run say without being read: whose it is, whether it changed, that it is there at all."""

from __future__ import annotations

from pathlib import Path

from muniment.model.network.dashboard import JobCard
from muniment.model.network.jobs import ResponseSums
from muniment.procs.lock import EVENTS_FILE

__all__ = ["owner_of", "stamp_of", "unread_card"]


def owner_of(out: Path) -> str:
    """Whose run it is, by its directory: a crawl of a command line keeps no name."""
    try:
        return out.owner()
    except (KeyError, OSError):
        return ""


def stamp_of(path: Path) -> tuple[int, int] | None:
    """When a file was changed and how long it is; None without it."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def unread_card(number: int, out: Path, why_not: str, *, running: bool) -> JobCard:
    """A run whose tracker is not there yet, or cannot be read."""
    begun = stamp_of(out / EVENTS_FILE)
    return JobCard(
        id=number, name=out.name, url="", state="running" if running else "stopped", reason=why_not, done=0, queued=0,
        in_flight=0, skipped=0, failed=0, rate=0.0, bytes=0, errors=0, responses=ResponseSums(), by="", note="",
        created_at=begun[0] // 1_000_000 if begun else 0, finished_at=None,
    )  # fmt: skip
