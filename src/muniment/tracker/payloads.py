"""Payloads already kept in this directory: what a revisit record may refer to."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import bindparam, select

from muniment.model.capture import Earlier
from muniment.model.page import Finished
from muniment.tracker.engine import Database, Lookup, Prepared
from muniment.tracker.tables import pages, payloads

__all__ = ["Payloads"]

_REMEMBER = Prepared(
    payloads.insert()
    .prefix_with("OR IGNORE", dialect="sqlite")
    .values(
        job_id=bindparam("job"),
        digest=bindparam("d"),
        page_id=bindparam("page"),
        captured_at=bindparam("at"),
        record_id=bindparam("r"),
    ),
    "job", "d", "page", "at", "r",
)  # fmt: skip
# no join: of a table that was not analysed yet, PostgreSQL would read all pages of the job for each
_URL = (
    select(pages.c.url).where(pages.c.job_id == payloads.c.job_id, pages.c.id == payloads.c.page_id).scalar_subquery()
)
_KNOWN = Lookup(
    select(payloads.c.digest, _URL, payloads.c.captured_at, payloads.c.record_id),
    payloads.c.job_id,
    payloads.c.digest,
)
_ANY = Prepared(select(payloads.c.job_id).where(payloads.c.job_id == bindparam("job")).limit(1), "job")
_BITS = 22
"""Of a digest, that tell whether one like it was kept: of a million, four in five new ones need no look-up."""


class Payloads:
    """The payloads of one job by digest."""

    def __init__(self, db: Database, job_id: int) -> None:
        self._db, self._job_id = db, job_id
        self._met: bytearray | None = None
        """A byte for each beginning of a digest: 1 when one was kept. None where others or an earlier run kept some."""
        if not (db.shared or db.rows(_ANY, (job_id,))):
            self._met = bytearray(1 << _BITS)

    def remember(self, finished: Iterable[Finished]) -> None:
        """Keep the first capture of each payload; within the caller's transaction."""
        rows = [(self._job_id, f.payload, f.page_id, f.started_at, f.record_id) for f in finished if f.payload]
        if self._met is not None:
            for row in rows:
                self._met[_beginning(row[1])] = 1
        # in order, so that sessions never wait for each other in a circle
        self._db.many(_REMEMBER, sorted(rows))

    def known(self, digests: Iterable[bytes]) -> dict[bytes, Earlier]:
        """The earlier capture of each digest that has one."""
        met = self._met
        asked = list(digests) if met is None else [digest for digest in digests if met[_beginning(digest)]]
        rows = self._db.lookup(_KNOWN, self._job_id, asked)
        return {digest: Earlier(url, captured_at, record_id) for digest, url, captured_at, record_id in rows}


def _beginning(digest: bytes) -> int:
    return int.from_bytes(digest[:4], "big") >> (32 - _BITS)
