"""What the pages ask and have changed, whether runs in directories or a tracker's jobs answer."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from muniment.control.runs.log import LogNews
from muniment.control.why import Why
from muniment.model.network.dashboard import JobCard, LogPart, SettingValue
from muniment.model.network.jobs import ChangesMade, IgnoresCall, JobPatch, JobView
from muniment.model.network.lists import ChangeView, PageList

__all__ = ["JobsDesk"]


class JobsDesk(Protocol):
    """Every call may raise UsageError, NotFoundError for a job that is not there, and TrackerError."""

    def jobs(self) -> list[JobCard]:
        """All jobs, the newest first."""

    def card(self, job: int) -> JobCard:
        """A job in one line."""

    def view(self, job: int) -> JobView:
        """How a job stands."""

    def changes(self, job: int, after: int = 0) -> list[ChangeView]:
        """What was changed, the oldest first."""

    def settings(self, job: int) -> list[SettingValue]:
        """The settings that may be changed."""

    def pages(self, job: int, url: str) -> PageList:
        """The page of a URL."""

    def why(self, job: int, url: str) -> Why:
        """What `muniment why` says."""

    def log(self, job: int, level: str, pattern: str, before: int | None, most: int) -> LogPart:
        """A part of the log."""

    def log_end(self, job: int) -> int:
        """Where the log ends now."""

    def news(self, job: int, at: int, level: str, pattern: str, most: int) -> LogNews:
        """What came after a place of the log."""

    def log_file(self, job: int) -> Path:
        """The log as a file."""

    def pause(self, job: int) -> None:
        """Pause a job."""

    def resume(self, job: int) -> None:
        """Have a paused or aborted job go on."""

    def abort(self, job: int) -> None:
        """End a job."""

    def change(self, job: int, patch: JobPatch) -> ChangesMade:
        """Change settings and terms."""

    def change_ignores(self, job: int, call: IgnoresCall) -> ChangesMade:
        """Add and remove ignore patterns and sets."""

    def ignores(self, job: int) -> list[tuple[str, str]]:
        """The set and the text of each pattern in force; the set is empty for one given by hand."""

    def begin(self, urls: list[str], note: str, options: list[tuple[str, str]]) -> int:
        """Begin a job; its number."""
