"""Leases: how long each session lasts, by the time that some server serves. What nobody served costs no session.

In a file, the one server keeps them in memory: a heartbeat writes nothing, and a server that begins gives all sessions
a whole lease. On PostgreSQL they are in the rows of the sessions.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod

from sqlalchemy import BigInteger, ColumnElement, bindparam, case, exists, func, select

from muniment.model.pipeline import LEASE_S
from muniment.tracker.db.database import Asked, BatchInsert, Database, Prepared, retrying_transaction
from muniment.tracker.fleet.lease_clock import LeaseClock
from muniment.tracker.schema.pipelines import servers, sessions, trackers

__all__ = ["Leases", "leases_of", "tracker_id"]

_STEP_MS = 2_000
"""Longest time between two sweeps that counts: a server that was frozen or cut off for longer served nobody."""
_FORGET_MS = 60_000
"""After so long a server that does not sweep is gone, and its lease counts no more."""

_ONE = trackers.c.number == 1
_TRACKER = BatchInsert(trackers, "number", "id", "served_at", conflict="IGNORE")
_SEEN = BatchInsert(servers, "id", "lease_ms", "seen_at", conflict="REPLACE")
_LOWEST = Prepared(select(func.min(servers.c.lease_ms)).where(servers.c.seen_at >= bindparam("since")), "since")
_LIVE = sessions.c.ended_at.is_(None)


def tracker_id(db: Database, now: int) -> str:
    """The random id of a tracker, which is made when it is asked for the first time."""
    found = select(trackers.c.id).where(_ONE)
    known = db.connection.execute(found).scalar()
    if known is None and not db.read_only:
        _make_id(db, now)
        known = db.connection.execute(found).scalar_one()
    return str(known or "")


@retrying_transaction
def _make_id(db: Database, now: int) -> None:
    with db.transaction():
        db.many(_TRACKER, [(1, secrets.token_hex(16), now)])


class Leases(ABC):
    """The leases of all sessions of a tracker."""

    def __init__(self, db: Database, clock: LeaseClock, lease_s: float) -> None:
        self._db, self._clock = db, clock
        self._mine_ms = round(lease_s * 1000)

    @property
    def lease_ms(self) -> int:
        """How long a lease is: the shortest that a server of this tracker was given."""
        return self._mine_ms

    @abstractmethod
    def renew(self, epoch: int) -> None:
        """Renew a session's lease, within the caller's transaction on PostgreSQL; it never becomes shorter."""

    @abstractmethod
    def renewal(self, pipeline: str, epoch: int, paused: str) -> list[Asked]:
        """What renews the lease of a pipeline's session alone, if that is paused for this reason; it answers then.

        Nothing where nothing is written.
        """

    @abstractmethod
    def pass_on(self) -> None:
        """Let time pass that was served; to be called about once a second."""

    @abstractmethod
    def lapsed(self) -> list[int]:
        """The sessions whose lease has run out."""

    @abstractmethod
    def still_lapsed(self) -> list[ColumnElement[bool]]:
        """What holds of the row of such a session as long as nobody renewed it."""


_RENEW = Prepared(
    sessions.update()
    .where(sessions.c.epoch == bindparam("of"), _LIVE, sessions.c.lease_until < bindparam("than"))
    .values(lease_until=bindparam("until")),
    "until", "of", "than",
)  # fmt: skip


_RENEWED = Prepared(
    sessions.update()
    .where(
        sessions.c.epoch == bindparam("of"),
        sessions.c.pipeline_id == bindparam("pipeline"),
        sessions.c.paused == bindparam("why"),
        _LIVE,
    )
    .values(
        lease_until=case(
            (sessions.c.lease_until > bindparam("than"), sessions.c.lease_until),
            else_=bindparam("until", type_=BigInteger()),
        )
    )
    .returning(sessions.c.epoch),
    "than", "until", "of", "pipeline", "why",
)  # fmt: skip


class _MemoryLeases(Leases):
    def __init__(self, db: Database, clock: LeaseClock, lease_s: float) -> None:
        super().__init__(db, clock, lease_s)
        self._until: dict[int, int] = {}
        self._served_at = clock.now()

    def renew(self, epoch: int) -> None:
        """Renew it; nothing is written."""
        self._until[epoch] = max(self._until.get(epoch, 0), self._clock.now() + self._mine_ms)

    def renewal(self, pipeline: str, epoch: int, paused: str) -> list[Asked]:
        """Nothing."""
        return []

    def pass_on(self) -> None:
        """Move all leases by what was not served."""
        now = self._clock.now()
        gap = now - self._served_at - _STEP_MS
        self._served_at = now
        live = set(self._db.connection.execute(select(sessions.c.epoch).where(_LIVE)).scalars())
        for epoch in live - self._until.keys():
            # from before this server
            self._until[epoch] = now + self._mine_ms
        self._until = {epoch: until + max(0, gap) for epoch, until in self._until.items() if epoch in live}

    def lapsed(self) -> list[int]:
        """Those that are over now; nobody renews one meanwhile."""
        return sorted(epoch for epoch, until in self._until.items() if until < self._served_at)

    def still_lapsed(self) -> list[ColumnElement[bool]]:
        """Nothing more: this server is the only one."""
        return []


class _RowLeases(Leases):
    def __init__(self, db: Database, clock: LeaseClock, lease_s: float) -> None:
        super().__init__(db, clock, lease_s)
        self._server = secrets.token_hex(8)
        self._lowest_ms, self._read_at = self._mine_ms, -_STEP_MS

    @property
    def lease_ms(self) -> int:
        """The shortest of all servers that are there; not older than two seconds."""
        now = self._clock.now()
        if now - self._read_at >= _STEP_MS:
            lowest = self._db.rows(_LOWEST, (now - _FORGET_MS,))[0][0]
            self._lowest_ms, self._read_at = min(int(lowest or self._mine_ms), self._mine_ms), now
        return self._lowest_ms

    def renew(self, epoch: int) -> None:
        """Renew it in its row."""
        until = self._clock.now() + self.lease_ms
        self._db.many(_RENEW, [(until, epoch, until)])

    def renewal(self, pipeline: str, epoch: int, paused: str) -> list[Asked]:
        """A statement, which needs no transaction."""
        until = self._clock.now() + self.lease_ms
        return [(_RENEWED, (until, until, epoch, pipeline, paused))]

    def pass_on(self) -> None:
        """Move all leases by what no server served, once for all of them."""
        self._pass_on()

    @retrying_transaction
    def _pass_on(self) -> None:
        with self._db.transaction() as connection:
            # after the lock: another server may have moved the leases while this one waited
            found = select(trackers.c.served_at).where(_ONE).with_for_update()
            served_at = connection.execute(found).scalar()
            now = self._clock.now()
            if served_at is None:
                self._db.many(_TRACKER, [(1, secrets.token_hex(16), now)])
                # an older program took the time of leases from elsewhere
                connection.execute(sessions.update().where(_LIVE).values(lease_until=now + self._mine_ms))
            elif (gap := now - int(served_at) - _STEP_MS) > 0:
                connection.execute(sessions.update().where(_LIVE).values(lease_until=sessions.c.lease_until + gap))
            connection.execute(trackers.update().where(_ONE).values(served_at=now))
            self._db.many(_SEEN, [(self._server, self._mine_ms, now)])
            connection.execute(servers.delete().where(servers.c.seen_at < now - _FORGET_MS))

    def lapsed(self) -> list[int]:
        """Those that are over now."""
        found = select(sessions.c.epoch).where(_LIVE, sessions.c.lease_until < self._clock.now())
        return [int(epoch) for epoch in self._db.connection.execute(found.order_by(sessions.c.epoch)).scalars()]

    def still_lapsed(self) -> list[ColumnElement[bool]]:
        """Its lease is over, and this server was not frozen since it looked."""
        now = self._clock.now()
        return [sessions.c.lease_until < now, exists().where(_ONE, trackers.c.served_at >= now - _STEP_MS)]


def leases_of(db: Database, clock: LeaseClock, lease_s: float = LEASE_S) -> Leases:
    """The leases of a tracker's sessions."""
    return (_RowLeases if db.shared else _MemoryLeases)(db, clock, lease_s)
