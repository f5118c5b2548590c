"""Results: what attempts saved beyond their records. Small values are in the table, large ones files by digest."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Collection, Iterable
from pathlib import Path

from msgspec import Struct
from sqlalchemy import bindparam, select

from muniment.disk import sync, sync_directory
from muniment.errors import DiskFullError, TrackerError
from muniment.model.page import Claim, PageResult
from muniment.model.result import ResultKind, ResultStatus, check_result
from muniment.tracker.db.database import BatchInsert, Database, Prepared, Row
from muniment.tracker.schema.tables import results

__all__ = ["INLINE", "ResultStore", "StoredResult"]

INLINE = 4096
"""Bytes up to which a text is kept in the table."""

_COLUMNS = ("job_id", "page_id", "attempt", "kind", "value", "status", "media_type", "digest", "length")
_FORGET = Prepared(
    results.delete().where(
        results.c.job_id == bindparam("job"),
        results.c.page_id == bindparam("page"),
        results.c.attempt == bindparam("a"),
        results.c.kind == bindparam("k"),
    ),
    "job", "page", "a", "k",
)  # fmt: skip
_KEEP = BatchInsert(results, *_COLUMNS)


class StoredResult(Struct, frozen=True):
    """A result as the tracker has it."""

    attempt: int
    kind: str
    status: str
    media_type: str
    value: bytes


class ResultStore:
    """The results of one job."""

    def __init__(self, db: Database, job_id: int) -> None:
        self._db, self._job_id = db, job_id
        self._directory = db.results_directory

    def expect(self, claims: Iterable[Claim]) -> None:
        """Note what rules want of claimed pages as not run, until somebody says otherwise; in their transaction."""
        wanted = [
            (claim, kind)
            for claim in claims
            for kind, order in ((ResultKind.CUSTOM_JS, claim.orders.custom_js), (ResultKind.UA, claim.orders.ua))
            if order and not claim.barred
        ]
        status = ResultStatus.NOT_RUN.value
        self._write([(self._job_id, c.page_id, c.attempt, k.value, "", status, "", None, 0) for c, k in wanted])

    def store(self, finished: Iterable[PageResult]) -> list[Row]:
        """Write what is large to files, before the transaction that keeps the rows; raises ProtocolError."""
        return [self._row(page, at) for page in finished if page.results for at in range(len(page.results))]

    def keep(self, rows: list[Row], accepted: Collection[int]) -> None:
        """Keep those of accepted pages, in the transaction of their finish."""
        self._write([row for row in rows if row[1] in accepted])

    def of_page(self, page_id: int) -> list[StoredResult]:
        """The results of a page, attempt by attempt; files are read."""
        c = results.c
        columns = c.attempt, c.kind, c.status, c.media_type, c.value, c.digest
        found = select(*columns).where(c.job_id == self._job_id, c.page_id == page_id).order_by(c.attempt, c.kind)
        return [
            StoredResult(
                attempt, kind, status, media_type, self._file(digest).read_bytes() if digest else value.encode()
            )
            for attempt, kind, status, media_type, value, digest in self._db.connection.execute(found)
        ]

    def _write(self, rows: list[Row]) -> None:
        self._db.many(_FORGET, [row[:4] for row in rows])
        self._db.many(_KEEP, rows)

    def _row(self, page: PageResult, at: int) -> Row:
        result = page.results[at]
        check_result(result)
        text = _text(result.value)
        digest = None if text is not None else self._save(result.value)
        how = (text or "", result.status, result.media_type, digest, len(result.value))
        return (self._job_id, page.page_id, page.attempt, result.kind, *how)

    def _file(self, digest: bytes) -> Path:
        return self._directory / digest.hex()

    def _save(self, value: bytes) -> bytes:
        """Write a value under its digest, durable on return; one that is there already stays."""
        digest = hashlib.sha256(value).digest()
        path = self._file(digest)
        if not path.exists():
            try:
                _write_durably(path, value)
            except OSError as error:
                kind = DiskFullError if error.errno in _FULL else TrackerError
                raise kind(f"a result cannot be kept in {self._directory}: {error.strerror}") from error
        return digest


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def _text(value: bytes) -> str | None:
    """A value that the table can hold."""
    if len(value) > INLINE or b"\0" in value:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _write_durably(path: Path, value: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    aside = path.with_suffix(f".{os.getpid()}.part")
    with aside.open("wb") as file:
        file.write(value)
        file.flush()
        sync(file.fileno())
    aside.replace(path)
    sync_directory(path.parent)
