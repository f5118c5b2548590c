"""Families of pages, as the tracker keeps them: read and written a batch at a time, so that memory stays bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

import xxhash
from msgspec import Struct
from sqlalchemy import bindparam, func, literal_column, select

from muniment.model.page import PageState
from muniment.rules.guards.family import LOOPS, Family, Guard
from muniment.rules.guards.loops import is_loop
from muniment.rules.guards.shape import shape_of
from muniment.tracker.db.database import BatchInsert, Database, Lookup, Prepared, Row
from muniment.tracker.schema.guards import families
from muniment.tracker.schema.tables import pages

__all__ = [
    "FamilyRow",
    "FamilyStore",
    "family_key",
    "family_of",
    "named_family",
    "pages_released",
    "set_aside",
    "with_patterns",
]

_COLUMNS = (
    "job_id", "key", "shape", "guard", "asked", "barren", "skipped", "sampled", "since", "until_id", "releases",
    "patience", "led", "freed", "recent", "re",
)  # fmt: skip
_COUNTS = _COLUMNS[4:-3]
_STATE = tuple(families.c[name] for name in _COLUMNS[1:])
_FIND = Lookup(select(*_STATE), families.c.job_id, families.c.key, locks=True)
_LOOK = Lookup(select(*_STATE), families.c.job_id, families.c.key)
_SAVE = BatchInsert(families, *_COLUMNS, conflict="REPLACE")
_ASIDE = Prepared(
    select(*_STATE).where(families.c.job_id == bindparam("job"), families.c.since > literal_column("0")), "job"
)
_HERE = (
    pages.c.job_id == bindparam("job"),
    pages.c.state == PageState.SKIPPED.value,
    pages.c.reason == bindparam("reason"),
)
_WAITING = Prepared(
    select(pages.c.host_id, func.count())
    .where(*_HERE, pages.c.in_scope, pages.c.attempts_remaining > literal_column("0"))
    .group_by(pages.c.host_id),
    "job", "reason",
)  # fmt: skip
_READY = Prepared(
    pages.update()
    .where(*_HERE)
    # by which rules it was judged is asked again
    .values(state=literal_column("'READY'"), reason=literal_column("''"), ruleset=literal_column("0")),
    "job", "reason",
)  # fmt: skip


class FamilyRow(Struct, frozen=True):
    """A family with the key that it is found by."""

    key: bytes
    family: Family
    re: str = ""
    """The pattern that finds its URLs, once it is set aside."""


def family_key(guard: str, shape: str) -> bytes:
    """The sixteen bytes by which a family is known in a job."""
    return xxhash.xxh3_128_digest(f"{guard} {shape}".encode())


def family_of(url: str, *, loops: bool, guard: Guard = "barren") -> tuple[bytes, str, Guard]:
    """Key, shape and guard of the family of a normalised URL."""
    shape = shape_of(url)
    guard = LOOPS if loops and is_loop(url) else guard
    return family_key(guard, shape), shape, guard


def set_aside(db: Database, job_id: int) -> list[FamilyRow]:
    """The families of a job that are set aside."""
    return [_family_row(row) for row in db.rows(_ASIDE, (job_id,))]


def named_family(db: Database, job_id: int, guard: str, shape: str) -> Family | None:
    """The family with this guard and shape; None for one that is not known."""
    rows = db.lookup(_LOOK, job_id, [family_key(guard, shape)])
    return _family_row(rows[0]).family if rows else None


def with_patterns(db: Database, job_id: int, patterns: Collection[str]) -> list[FamilyRow]:
    """The families that are set aside and have one of these patterns."""
    return [one for one in set_aside(db, job_id) if one.re in patterns]


def pages_released(db: Database, job_id: int, family: Family) -> Counter[int]:
    """Have the pages of a family wait again, within the caller's transaction; newly pending per host number."""
    reason = family.reason
    pending = Counter({int(host): int(count) for host, count in db.rows(_WAITING, (job_id, reason))})
    db.changed(_READY, [(job_id, reason)])
    return pending


class FamilyStore:
    """The families of one job."""

    def __init__(self, db: Database, job_id: int) -> None:
        self._db, self._job_id = db, job_id

    def find(self, keys: Collection[bytes]) -> dict[bytes, FamilyRow]:
        """Those of these keys that are known, locked until the transaction ends."""
        rows = self._db.lookup(_FIND, self._job_id, sorted(keys)) if keys else []
        return {one.key: one for one in map(_family_row, rows)}

    def save(self, known: Mapping[bytes, FamilyRow]) -> None:
        """Write families, within the caller's transaction."""
        self._db.many(_SAVE, [self._row(one) for _, one in sorted(known.items())])

    def _row(self, one: FamilyRow) -> Row:
        family = one.family
        return (
            self._job_id, one.key, family.shape, family.guard, family.asked, family.barren, family.skipped,
            family.sampled, family.since, family.until_id, family.releases, family.patience, family.led, family.freed,
            " ".join(map(str, family.recent)), one.re if family.since else "",
        )  # fmt: skip


def _family_row(row: Row) -> FamilyRow:
    key, shape, guard, *counts, freed, recent, re = row
    named = dict(zip(_COUNTS, counts, strict=True))
    return FamilyRow(bytes(key), Family(shape, guard, **named, freed=bool(freed), recent=_numbers(recent)), re)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))
