"""The attempts of a tracker in place of captures, for a server that has no archive at hand."""

from __future__ import annotations

from collections.abc import Iterator

from muniment.errors import NotFoundError
from muniment.model.network.captures import PER_PAGE, CaptureFilter, CaptureRow, PageArtifacts
from muniment.tracker.db.database import Database
from muniment.tracker.views.attempt_search import search_attempts

__all__ = ["AttemptCaptures"]


class AttemptCaptures:
    """The attempts of a tracker in place of captures, where no archive is at hand."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def captures(self, wanted: CaptureFilter) -> list[CaptureRow]:
        """A page of attempts, and one more."""
        return search_attempts(self._db, wanted, PER_PAGE + 1, wanted.page * PER_PAGE)

    def record(self, job: int, file: str, offset: int) -> Iterator[bytes]:
        """Records are where the archives are."""
        raise NotFoundError(f"the bytes of job {job} are in the directories of its pipelines: {_REMEDY}")

    def payload(self, job: int, file: str, offset: int) -> Iterator[bytes]:
        """The same of payloads."""
        return self.record(job, file, offset)

    def view_address(self, job: int, url: str, at: int) -> str:
        """The same of pages."""
        raise NotFoundError(f"the bytes of job {job} are in the directories of its pipelines: {_REMEDY}")

    def made(self, job: int, url: str) -> PageArtifacts:
        """The same of what was made of them, of which nothing is shown."""
        return PageArtifacts()

    def picture(self, job: int, file: str, offset: int) -> tuple[str, Iterator[bytes]]:
        """The same of pictures."""
        return "", self.record(job, file, offset)

    def hook_file(self, job: int, path: str, url: str) -> Iterator[bytes]:
        """The same of files of hooks."""
        return self.record(job, "", 0)


_REMEDY = "start `muniment serve` with --archives DIR where it can read them"
