"""The text that hosts showed before: a set of hashes of blocks, in 8 MB of memory at most, and all in the tracker.

Hashes share places: now and then a block passes for one that was seen. Half full, the set begins anew, so that text
seems new once more: what guards decide by it is late then, never wrong.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable

from sqlalchemy import bindparam, func, literal_column, select

from muniment.clock import monotonic
from muniment.tracker.db.database import BatchInsert, Database, Prepared
from muniment.tracker.schema.guards import text_blocks

__all__ = ["SeenText", "words_of"]

_WORD = 32
_FEWEST_BITS, _MOST_BITS, _STEP = 20, 26, 3
"""Places of the set, as powers of two: it grows when it is half full."""
_LOOK_S = 2.0
"""How often what other processes found is read."""
_ADD = BatchInsert(text_blocks, "job_id", "session", "number", "hashes", conflict="REPLACE")
_LATER = Prepared(
    select(text_blocks.c.number, text_blocks.c.hashes)
    .where(
        text_blocks.c.job_id == bindparam("job"),
        text_blocks.c.session == bindparam("session"),
        text_blocks.c.number > bindparam("after"),
    )
    .order_by(text_blocks.c.number)
    .limit(literal_column("1000")),
    "job", "session", "after",
)  # fmt: skip
_LAST = Prepared(
    select(text_blocks.c.session, func.max(text_blocks.c.number))
    .where(text_blocks.c.job_id == bindparam("job"))
    .group_by(text_blocks.c.session),
    "job",
)
_CLEAR = Prepared(text_blocks.delete().where(text_blocks.c.job_id == bindparam("job")), "job")


def words_of(packed: bytes) -> array[int]:
    """The hashes in little-endian bytes."""
    words = array("I", packed[: len(packed) & ~3])
    if sys.byteorder == "big":
        words.byteswap()
    return words


class SeenText:
    """The blocks of one job; changes happen within the caller's transaction."""

    def __init__(self, db: Database, job_id: int) -> None:
        self._db, self._job_id = db, job_id
        self._size(_FEWEST_BITS)
        self._fresh, self._saved = array("I"), array("I")
        self._number, self._looked_at = 0, 0.0
        self._look()
        db.on_rollback(self._undo)

    def _size(self, bits: int) -> None:
        """Begin with an empty set of so many places."""
        self._shift, self._most = _WORD - bits, 1 << (bits - 1)
        self._bits = bytearray(1 << (bits - 3))
        self._count = 0
        self._read: dict[int, int] = {}

    def add(self, hashes: Iterable[int]) -> bool:
        """Add the blocks of a page, without a copy of what was seen; whether one was new."""
        bits, fresh, before, shift = self._bits, self._fresh, len(self._fresh), self._shift
        for word in hashes:
            place = word >> shift
            mask = 1 << (place & 7)
            if not bits[place >> 3] & mask:
                bits[place >> 3] |= mask
                fresh.append(word)
        return len(fresh) > before

    def save(self) -> None:
        """Write what was new since the last time."""
        if not self._fresh:
            return
        self._number += 1
        words = array("I", self._fresh)
        if sys.byteorder == "big":
            words.byteswap()
        self._db.many(_ADD, [(self._job_id, self._db.session, self._number, words.tobytes())])
        self._read[self._db.session] = self._number
        self._count += len(self._fresh)
        self._saved, self._fresh = self._fresh, array("I")
        if self._count > self._most:
            self._outgrow()

    def look_again(self) -> None:
        """Read what other processes found, now and then."""
        if self._db.shared and monotonic() - self._looked_at > _LOOK_S:
            self._look()

    def _outgrow(self) -> None:
        """Go on with a larger set, or when that is too large with an empty one."""
        bits = _WORD - self._shift + _STEP
        if bits <= _MOST_BITS:
            self._size(bits)
            self._look()
        else:
            self._db.changed(_CLEAR, [(self._job_id,)])
            self._size(_MOST_BITS)

    def _look(self) -> None:
        self._looked_at = monotonic()
        for session, last in self._db.rows(_LAST, (self._job_id,)):
            after = self._read.get(session, 0)
            if session == self._db.session:
                self._number = max(self._number, last)
            while last > after:
                rows = self._db.rows(_LATER, (self._job_id, session, after))
                if not rows:
                    break
                for number, packed in rows:
                    words = words_of(bytes(packed))
                    self.add(words)
                    self._count += len(words)
                    after = number
            self._read[session] = after
        del self._fresh[:]
        if self._count > self._most and self._shift > _WORD - _MOST_BITS:
            self._outgrow()

    def _undo(self) -> None:
        # of a transaction before, text only seems new once more
        for word in (*self._fresh, *self._saved):
            place = word >> self._shift
            self._bits[place >> 3] &= ~(1 << (place & 7))
        del self._fresh[:], self._saved[:]
