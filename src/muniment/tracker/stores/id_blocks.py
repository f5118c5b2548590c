"""Numbers of pages and hosts within a job.

A process that writes a job alone counts in memory. Beside others it takes blocks from a row of `job_numbers`, in a
transaction of its own before the one that uses them, so that nobody waits for that row.
"""

from __future__ import annotations

from collections import deque
from itertools import count

from sqlalchemy import bindparam, func, literal_column, select

from muniment.tracker.db.database import Database, Prepared
from muniment.tracker.schema.pipelines import job_numbers
from muniment.tracker.schema.tables import pages

__all__ = ["IdBlocks", "last_page"]

_BLOCK = 4096
_LAST_PAGE = Prepared(
    select(func.coalesce(func.max(pages.c.id), literal_column("0"))).where(pages.c.job_id == bindparam("job")), "job"
)


def last_page(db: Database, job_id: int) -> int:
    """The highest number of a page that the tracker has; 0 before there is one."""
    return int(db.rows(_LAST_PAGE, (job_id,))[0][0])


class IdBlocks:
    """Gives out numbers that no other process gives out; `kind` is a column of `job_numbers`."""

    def __init__(self, db: Database, job_id: int, kind: str) -> None:
        self._db, self._job_id, self._column = db, job_id, job_numbers.c[kind]
        self.begin(0)

    def begin(self, highest: int) -> None:
        """Go on after the highest number known; beside others, forget what an undone transaction may have reserved."""
        self._counted = count(highest + 1)
        self._blocks: deque[range] = deque()
        self._left = 0

    def reserve(self, wanted: int) -> None:
        """Reserve so many numbers, before the transaction that takes them."""
        if not self._db.shared or self._left >= wanted:
            return
        size = max(wanted, _BLOCK)
        mine = job_numbers.update().where(job_numbers.c.job_id == self._job_id)
        taken = mine.values({self._column.name: self._column + size}).returning(self._column)
        last = int(self._db.connection.execute(taken).scalar_one())
        self._blocks.append(range(last - size + 1, last + 1))
        self._left += size

    def take(self) -> int:
        """The next number."""
        if not self._db.shared:
            return next(self._counted)
        self.reserve(1)
        block = self._blocks.popleft()
        if len(block) > 1:
            self._blocks.appendleft(block[1:])
        self._left -= 1
        return block[0]
