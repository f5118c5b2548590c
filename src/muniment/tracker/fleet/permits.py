"""Permits: which pipeline may have how many connections to a host, by the host's name, over all jobs.

A row is a pipeline's share of a host; one without permits waits for some. Who changes the shares of a host holds a lock
on its name meanwhile, and rows end with their session.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct, structs
from sqlalchemy import bindparam, case, literal_column, null, select

from muniment.model.job import JobState
from muniment.rules.host_permits import HostShare, divided
from muniment.tracker.db.database import BatchInsert, Database, Prepared, Row
from muniment.tracker.fleet.sessions import held_by
from muniment.tracker.schema.pipelines import host_permits
from muniment.tracker.schema.tables import CLAIMED, hosts, jobs, pages

__all__ = ["Granted", "HostNeed", "PermitTable"]

_WANTED_MS = 10_000
"""Who wanted a host so long ago and has no pages of it wants it no more."""
_NOTE_MS = 3_000
"""That a host is still wanted is written so often."""
_BACK_OFF_MS = 60_000
"""So long after a back-off a host belongs to one pipeline still."""
_C = host_permits.c
_EPOCH = pages.c.claim_id.bitwise_rshift(literal_column("40"))
"""Of the session that has a page (`model.page.session_of`)."""
_COLUMNS = ("host", "epoch", "permits", "target", "most", "gap_ms", "wait_until", "wanted_at", "job_id")
_PUT = BatchInsert(host_permits, *_COLUMNS, conflict="REPLACE")
_HERE = _C.host == bindparam("name"), _C.epoch == bindparam("session")
_ASK = Prepared(host_permits.update().where(*_HERE).values(target=bindparam("keep")), "keep", "name", "session")
_KEEP = Prepared(
    host_permits.update()
    .where(*_HERE, _C.permits > bindparam("more"))
    .values(permits=bindparam("keep"), target=case((_C.target >= bindparam("met"), null()), else_=_C.target)),
    "keep", "met", "name", "session", "more",
)  # fmt: skip
_DROP = Prepared(host_permits.delete().where(*_HERE), "name", "session")
_WAIT = Prepared(
    host_permits.update().where(*_HERE).values(gap_ms=bindparam("gap"), wait_until=bindparam("until")),
    "gap", "until", "name", "session",
)  # fmt: skip


class HostNeed(Struct, frozen=True):
    """What a job wants of a host."""

    most: int
    gap_ms: int


class Granted(Struct, frozen=True):
    """What a pipeline has of a host."""

    permits: int
    """The connections that it may use from now on."""
    had: int
    """Those that it may still have open."""
    gap_ms: int
    wait_until: int
    """Unix ms."""


class _Share(Struct, frozen=True):
    """A row."""

    host: str
    epoch: int
    permits: int
    target: int | None
    most: int
    gap_ms: int
    wait_until: int
    wanted_at: int
    job_id: int
    """Whose limit `most` is."""


class PermitTable:
    """Divides hosts over the sessions of a tracker; changes happen within the caller's transaction."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def divide(
        self, epoch: int, job_id: int, needs: Mapping[str, HostNeed], others_jobs: Collection[int], now: int
    ) -> dict[str, Granted]:
        """What a session may have of hosts that one of its jobs wants; `others_jobs` are those of its other slots."""
        shares = self._shares(needs)
        contested = {host for host, rows in shares.items() if any(row.epoch != epoch for row in rows)}
        at_work = self._at_work(contested) if contested else set()
        mine_before = [row for rows in shares.values() for row in rows if row.epoch == epoch]
        stricter = {row.job_id for row in mine_before if row.most < needs[row.host].most} - {job_id, *others_jobs}
        others_jobs = {*others_jobs, *self._left(epoch, stricter)}
        granted: dict[str, Granted] = {}
        written: list[Row] = []
        for host, need in needs.items():
            rows = shares[host]
            before = next((row for row in rows if row.epoch == epoch), None)
            mine = _needed(before, host, epoch, job_id, need, others_jobs, now)
            others = [row for row in rows if row.epoch != epoch]
            mine = self._divided(mine, others, at_work, now)
            if mine != before:
                written.append(structs.astuple(mine))
            waits = max(row.wait_until for row in (mine, *others))
            granted[host] = Granted(_usable(mine), mine.permits, max(row.gap_ms for row in (mine, *others)), waits)
        self._db.many(_PUT, written)
        return granted

    def _left(self, epoch: int, candidates: Collection[int]) -> set[int]:
        """Those of some jobs of which a session has pages still, though no slot is at them any more."""
        if not candidates:
            return set()
        found = select(pages.c.job_id).where(pages.c.job_id.in_(list(candidates)), held_by(epoch)).distinct()
        return set(self._db.connection.execute(found).scalars())

    def _divided(self, mine: _Share, others: list[_Share], at_work: set[tuple[str, int]], now: int) -> _Share:
        if not others:
            return structs.replace(mine, permits=mine.most, target=None)
        before = [_share(row, at_work, now) for row in others]
        given, asked = divided(structs.replace(_share(mine, at_work, now), wants=True), before)
        changed = [
            (after.target, mine.host, after.epoch)
            for was, after in zip(before, asked, strict=True)
            if after.target != was.target
        ]
        self._db.many(_ASK, changed)
        return structs.replace(mine, permits=given.permits, target=given.target)

    def keep(self, epoch: int, most: Mapping[str, int]) -> None:
        """A session keeps at most so many connections to hosts from now on."""
        self._db.take_names(most)
        self._db.many(_KEEP, [(count, count, host, epoch, count) for host, count in sorted(most.items()) if count > 0])
        self._db.many(_DROP, [(host, epoch) for host, count in sorted(most.items()) if count <= 0])

    def give_way(self, epoch: int, names: Collection[str]) -> None:
        """A session has no use for hosts: it keeps as much as it was asked to, where others want them still."""
        if names:
            self._db.take_names(names)
            asked = select(_C.host, _C.target).where(
                _C.host.in_(list(names)), _C.epoch == epoch, _C.target.is_not(None)
            )
            self.keep(epoch, {str(host): int(target) for host, target in self._db.connection.execute(asked)})

    def of(self, epoch: int, names: Collection[str]) -> dict[str, Granted]:
        """What a session may have of hosts now; without a row, nothing."""
        columns = [_C[name] for name in _COLUMNS]
        mine = select(*columns).where(_C.host.in_(list(names)), _C.epoch == epoch)
        rows = [_Share(*row) for row in self._db.connection.execute(mine)]
        return {row.host: Granted(_usable(row), row.permits, row.gap_ms, row.wait_until) for row in rows}

    def wait(self, epoch: int, waits: Mapping[str, tuple[int, int]]) -> None:
        """Note the gap of hosts and when their back-off ends (Unix ms), as a session found them out."""
        self._db.many(_WAIT, [(gap, until, host, epoch) for host, (gap, until) in sorted(waits.items())])

    def _shares(self, names: Collection[str]) -> dict[str, list[_Share]]:
        """The shares of hosts, which nobody else changes until the end of the transaction."""
        self._db.take_names(names)
        found: dict[str, list[_Share]] = {name: [] for name in names}
        columns = [_C[name] for name in _COLUMNS]
        for row in self._db.connection.execute(select(*columns).where(_C.host.in_(list(names))).order_by(_C.epoch)):
            found[row.host].append(_Share(*row))
        return found

    def _at_work(self, names: Iterable[str]) -> set[tuple[str, int]]:
        """Which sessions have pages of hosts."""
        open_jobs = select(jobs.c.id).where(jobs.c.state != JobState.FINISHED.value)
        of_host = (hosts.c.job_id == pages.c.job_id) & (hosts.c.id == pages.c.host_id)
        found = (
            select(hosts.c.name, _EPOCH)
            .select_from(pages.join(hosts, of_host))
            .where(pages.c.job_id.in_(open_jobs), CLAIMED, hosts.c.name.in_(list(names)))
            .distinct()
        )
        return {(str(name), int(epoch)) for name, epoch in self._db.connection.execute(found)}


def _needed(
    row: _Share | None, host: str, epoch: int, job_id: int, need: HostNeed, others_jobs: Collection[int], now: int
) -> _Share:
    """A session's share of a host with what one of its jobs wants, who may be stricter than the other ones or not."""
    if row is None:
        return _Share(host, epoch, 0, None, need.most, need.gap_ms, 0, now, job_id)
    others = row.job_id != job_id and row.job_id in others_jobs
    stricter = others and row.most < need.most
    return structs.replace(
        row,
        most=row.most if stricter else need.most,
        gap_ms=max(row.gap_ms, need.gap_ms) if others else need.gap_ms,
        wanted_at=now if now - row.wanted_at > _NOTE_MS else row.wanted_at,
        job_id=row.job_id if stricter else job_id,
    )


def _usable(row: _Share) -> int:
    return row.permits if row.target is None else min(row.permits, row.target)


def _share(row: _Share, at_work: set[tuple[str, int]], now: int) -> HostShare:
    alone = row.gap_ms > 0 or row.wait_until > now - _BACK_OFF_MS
    wants = now - row.wanted_at <= _WANTED_MS or (row.host, row.epoch) in at_work
    return HostShare(row.epoch, row.permits, row.target, row.most, alone, wants)
