"""Sessions: a pipeline's connection to the tracker, which holds the lease for all its claims.

A broken connection is not death: the same process comes back into its session. Claims go back when the pipeline says
goodbye, when a supervisor reports its end, when another process takes its place, or when the lease has run out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct, structs
from sqlalchemy import ColumnElement, and_, bindparam, func, select

from muniment.errors import UsageError
from muniment.model.job import JobState
from muniment.model.page import PageState, first_claim
from muniment.model.pipeline import Greeting, HostReport, Session, SessionEnding, SlotLock
from muniment.rules.worker_deaths import PROOF, SUSPECT
from muniment.tracker.db.database import Asked, Database, Prepared, Row
from muniment.tracker.schema.pipelines import assignments, pipelines, sessions
from muniment.tracker.schema.tables import CLAIMED, jobs, pages

__all__ = [
    "HEARTBEAT_MS",
    "LEASE_MS",
    "ClaimGrant",
    "GivenBack",
    "begin",
    "end",
    "held",
    "lapsed",
    "release",
    "renew",
    "taken",
    "taking",
]  # fmt: skip

LEASE_MS = 60_000
"""How long a session lasts after it was heard of."""
HEARTBEAT_MS = 10_000
"""How often a pipeline is to say that it is there."""

GivenBack = Counter[tuple[int, int]]
"""Pages given back by job and host number."""

_MOST_SLOTS = 1000
_UNFINISHED = select(jobs.c.id).where(jobs.c.state != JobState.FINISHED.value)
_SUSPECT = Prepared(
    select(pages.c.id)
    .where(pages.c.job_id.in_(_UNFINISHED), CLAIMED)
    .where(pages.c.claim_id.between(bindparam("first"), bindparam("last")))
    .where(pages.c.deaths.between(SUSPECT, PROOF - 1))
    .limit(1),
    "first",
    "last",
)
_COLUMNS = sessions.c.epoch, sessions.c.pipeline_id, sessions.c.instance, sessions.c.slots, sessions.c.lease_until
_TAKE = Prepared(
    sessions.update()
    .where(sessions.c.epoch == bindparam("epoch"), sessions.c.ended_at.is_(None))
    .values(lease_until=bindparam("until"), claims=sessions.c.claims + bindparam("count"))
    .returning(*_COLUMNS, sessions.c.claims),
    "count", "until", "epoch",
)  # fmt: skip


class ClaimGrant(Struct, frozen=True):
    """What a session was given for a claim."""

    session: Session
    after: int
    """The number before the first that its claims may have."""
    suspect: bool
    """Whether it has a page that gets nothing beside it."""


def begin(db: Database, pipeline: str, greeting: Greeting, now: int) -> tuple[Session, GivenBack]:
    """The session of a pipeline's process, within the caller's transaction: its own, or a new one.

    A session of another process of the same pipeline ends; what it held is given back.
    """
    _check(greeting)
    # two processes of one pipeline that greet at once come one after the other
    db.connection.execute(select(pipelines.c.id).where(pipelines.c.id == pipeline).with_for_update())
    known = _session(db, sessions.c.pipeline_id == pipeline)
    if known is not None and known.instance == greeting.instance and known.slots == greeting.slots:
        renew(db, known.epoch, now)
        return structs.replace(known, lease_until=now + LEASE_MS), Counter()
    given_back = end(db, known.epoch, SessionEnding.REPLACED, now) if known else Counter()
    made = db.connection.execute(
        sessions.insert().values(
            pipeline_id=pipeline,
            instance=greeting.instance,
            version=greeting.version,
            slots=greeting.slots,
            began_at=now,
            lease_until=now + LEASE_MS,
        )
    )
    key = made.inserted_primary_key
    assert key is not None
    return Session(int(key[0]), pipeline, greeting.instance, greeting.slots, now + LEASE_MS), given_back


def _check(greeting: Greeting) -> None:
    if not 1 <= greeting.slots <= _MOST_SLOTS:
        raise UsageError(f"a pipeline has from 1 to {_MOST_SLOTS} slots, not {greeting.slots}")
    if not greeting.instance or set(greeting.instance) - set("0123456789abcdef"):
        raise UsageError(f"{greeting.instance!r} is not a hexadecimal instance id")


def _session(db: Database, which: ColumnElement[bool]) -> Session | None:
    found = select(*_COLUMNS).where(which, sessions.c.ended_at.is_(None))
    row = db.connection.execute(found).first()
    return None if row is None else Session(*row)


def renew(db: Database, epoch: int, now: int, report: HostReport | None = None) -> bool:
    """Renew a lease within the caller's transaction; False when the session has ended."""
    values: dict[str, object] = {"lease_until": now + LEASE_MS}
    if report is not None:
        values |= {"report": msgspec.json.encode(report).decode(), "reported_at": now}
    renewed = db.connection.execute(
        sessions.update().where(sessions.c.epoch == epoch, sessions.c.ended_at.is_(None)).values(values)
    )
    return renewed.rowcount == 1


def taking(epoch: int, count: int, now: int) -> list[Asked]:
    """Renew a lease and set numbers of claims aside, and ask for a page that gets nothing beside it (`taken`).

    To be run within a transaction, before which the session cannot end then.
    """
    return [(_TAKE, (count, now + LEASE_MS, epoch)), (_SUSPECT, _numbers(epoch))]


def taken(answers: Sequence[list[Row]], epoch: int, count: int) -> ClaimGrant | None:
    """What `taking` gave; None when the session has ended."""
    rows, suspect = answers
    for *columns, claims in rows:
        return ClaimGrant(Session(*columns), first_claim(epoch) + int(claims) - count, bool(suspect))
    return None


def lapsed(db: Database, now: int) -> list[int]:
    """The sessions that have not ended though their lease has run out."""
    found = select(sessions.c.epoch).where(sessions.c.ended_at.is_(None), sessions.c.lease_until < now)
    return [int(epoch) for epoch in db.connection.execute(found.order_by(sessions.c.epoch)).scalars()]


def end(db: Database, epoch: int, ending: SessionEnding, now: int) -> GivenBack:
    """End a session, within the caller's transaction: its claims go back, and its slots leave jobs that hold no lock.

    Ending it again changes nothing.
    """
    ended = db.connection.execute(
        sessions.update()
        .where(sessions.c.epoch == epoch, sessions.c.ended_at.is_(None))
        .values(ended_at=now, ending=ending.value)
        .returning(sessions.c.pipeline_id)
    ).scalar()
    if ended is None:
        return Counter()
    db.connection.execute(
        assignments.delete().where(assignments.c.pipeline_id == ended, assignments.c.lock == SlotLock.NONE.value)
    )
    return _give_back(db, epoch, deaths=int(ending.is_death))


def _give_back(db: Database, epoch: int, deaths: int) -> GivenBack:
    given_back = db.connection.execute(
        pages.update()
        .where(_held_by(epoch))
        .values(state=PageState.READY.value, claim_id=None, deaths=pages.c.deaths + deaths)
        .returning(pages.c.job_id, pages.c.host_id)
    )
    return Counter((int(job_id), int(host_id)) for job_id, host_id in given_back)


def release(db: Database, job_id: int, claims: Iterable[tuple[int, int]], *, died: bool) -> GivenBack:
    """Give some pages back, (page id, claim id), within the caller's transaction; `died`: their worker has."""
    given_back: GivenBack = Counter()
    for page_id, claim_id in claims:
        host_id = db.connection.execute(
            pages.update()
            .where(pages.c.job_id == job_id, pages.c.id == page_id, pages.c.claim_id == claim_id)
            .values(state=PageState.READY.value, claim_id=None, deaths=pages.c.deaths + int(died))
            .returning(pages.c.host_id)
        ).scalar()
        if host_id is not None:
            given_back[job_id, int(host_id)] += 1
    return given_back


def held(db: Database, epoch: int) -> int:
    """How many pages a session has."""
    return int(db.connection.execute(select(func.count()).select_from(pages).where(_held_by(epoch))).scalar_one())


def _numbers(epoch: int) -> tuple[int, int]:
    return first_claim(epoch) + 1, first_claim(epoch + 1) - 1


def _held_by(epoch: int) -> ColumnElement[bool]:
    first, last = _numbers(epoch)
    return and_(pages.c.job_id.in_(_UNFINISHED), CLAIMED, pages.c.claim_id.between(first, last))
