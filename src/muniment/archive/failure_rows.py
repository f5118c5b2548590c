"""Rows without records: a row journal that belongs to no WARC, so that no file is made for them."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from muniment.archive.durable import GrowingFile, archive_error
from muniment.archive.index.journal import JournalEntry, entry_frame, header_frame, journal_path
from muniment.archive.index.rows import failure_row
from muniment.clock import now_us
from muniment.disk import sync_directory
from muniment.errors import ArchiveError
from muniment.model.capture import Capture, PageContext
from muniment.model.exchange import Exchange
from muniment.model.failure import Failure

__all__ = ["FailureRows"]


class FailureRows:
    """A journal that is made with its first row; the join of the index takes it in as it does those of WARCs.

    Not for two threads at once. After a row or a sync that raised, the rows since the last sync are lost.
    """

    def __init__(self, out: Path, parts: Path) -> None:
        self._out, self._parts = out, parts
        self._journal: GrowingFile | None = None

    def write_failure(self, url: str, failure: Failure, context: PageContext, exchange: Exchange) -> Capture:
        """Add the row of a try that left no record; buffered, safe only after `sync`."""
        row = failure_row(url, failure, context, now_us(), exchange)
        self.keep(row)
        return row

    def keep(self, row: Capture) -> None:
        """Add a row that has no record."""
        journal = self._journal or self._open()
        try:
            journal.append(entry_frame(JournalEntry(0, row, 0)))
        except ArchiveError:
            journal.cut(journal.synced)
            raise

    @property
    def waits(self) -> bool:
        """Whether a row is not on the disk yet."""
        return self._journal is not None and self._journal.length > self._journal.synced

    def sync(self) -> None:
        """Make all rows so far durable. Blocks."""
        if self._journal is not None:
            try:
                self._journal.sync()
            except ArchiveError:
                self._journal.cut(self._journal.synced)
                raise

    def end(self) -> None:
        """Sync and close. Blocks."""
        if self._journal is not None:
            self.sync()
            self._journal.close()

    def _open(self) -> GrowingFile:
        name = f"failures-{uuid4().hex}"
        try:
            self._parts.mkdir(exist_ok=True)
            sync_directory(self._out)
            journal = GrowingFile(journal_path(self._parts, name))
            journal.append(header_frame(name))
            journal.sync()
            sync_directory(self._parts)
        except OSError as error:
            raise archive_error(error, self._parts / name) from error
        self._journal = journal
        return journal
