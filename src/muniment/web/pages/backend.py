"""What the pages ask and have changed, whether runs in directories or a tracker's jobs answer."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from muniment.control.process_pages import ProcessPage
from muniment.control.processes import ProcessView
from muniment.control.runs.log import LogNews
from muniment.model.network.captures import TimeBucket
from muniment.model.network.dashboard import (
    HostStanding,
    IgnoreEffect,
    JobCard,
    LogPart,
    LogText,
    QueueView,
    RestartView,
    SettingValue,
    UrlStanding,
)
from muniment.model.network.jobs import ChangesMade, IgnoresCall, JobPatch, JobView
from muniment.model.network.lists import ChangeList, ChangeView, PageList, ResultView
from muniment.model.network.pipelines import PipelineView
from muniment.model.process import Machine

__all__ = ["PagesBackend"]


class PagesBackend(Protocol):
    """Every call may raise UsageError, NotFoundError for a job that is not there, and TrackerError."""

    def jobs(self) -> list[JobCard]:
        """All jobs, the newest first."""

    def card(self, job: int) -> JobCard:
        """A job in one line."""

    def view(self, job: int) -> JobView:
        """How a job stands."""

    def changes(self, job: int, after: int) -> ChangeList:
        """What was changed, the oldest first."""

    def newest_changes(self, job: int, most: int) -> list[ChangeView]:
        """What was changed last, the newest first."""

    def restart(self, job: int) -> RestartView | None:
        """How a run that ended goes on; None where nobody has to begin it."""

    def settings(self, job: int) -> list[SettingValue]:
        """The settings that may be changed."""

    def pages(self, job: int, url: str) -> PageList:
        """The page of a URL."""

    def why(self, job: int, url: str) -> UrlStanding:
        """What `muniment why` says."""

    def log(self, job: int, level: str, pattern: str, before: int | None, most: int) -> LogPart:
        """A part of the log."""

    def log_end(self, job: int) -> int:
        """Where the log ends now."""

    def news(self, job: int, at: int, level: str, pattern: str, most: int) -> LogNews:
        """What came after a place of the log."""

    def log_file(self, job: int) -> Path | None:
        """The log as a file; None where the log is in a tracker."""

    def log_text(self, job: int, after: str) -> LogText:
        """A part of a log that is in a tracker, from the beginning on; `after` is where the part before it ended."""

    def queue(self, job: int, pattern: str) -> QueueView:
        """What is in flight and what comes next."""

    def hosts(self, job: int, after: str, most: int) -> list[HostStanding]:
        """Hosts after a name."""

    def host_sums(self, job: int, names: list[str]) -> dict[str, tuple[int, int]]:
        """Rows and bad rows of hosts."""

    def ignore_effect(self, job: int, pattern: str) -> IgnoreEffect:
        """What an ignore pattern would take."""

    def buckets(self, job: int) -> tuple[int, list[TimeBucket]]:
        """What came in, over time."""

    def results(self, job: int, url: str) -> list[ResultView]:
        """What the attempts at a URL saved."""

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

    def pipelines(self) -> list[PipelineView]:
        """All pipelines."""

    def processes(self, kind: str, status: str, machine: str, text: str) -> tuple[list[ProcessView], list[Machine]]:
        """The newest processes that fit, and all machines."""

    def process(self, process_id: str) -> ProcessPage:
        """A process with its tree and output."""
