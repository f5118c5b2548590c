"""Sessions: a pipeline's connection to the tracker, which holds the lease for all its claims.

A broken connection is not death: the same process comes back into its session. Claims go back when the pipeline says
goodbye, when a supervisor reports its end, when another process takes its place, or when the lease has run out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, and_, bindparam, exists, func, select

from muniment.errors import NotFoundError, SessionEndedError, UsageError
from muniment.model.job import JobState
from muniment.model.page import PageState, first_claim
from muniment.model.pipeline import Greeting, Session, SessionEnding, SlotLock
from muniment.tracker.db.database import Database, Prepared
from muniment.tracker.schema.pipelines import assignments, host_permits, pipelines, sessions
from muniment.tracker.schema.tables import CLAIMED, jobs, pages

__all__ = [
    "BegunSession",
    "GivenBack",
    "begin",
    "check_live",
    "check_standing",
    "end",
    "held",
    "held_by",
    "held_jobs",
    "hold",
    "numbers",
    "paused_of",
    "release",
    "set_paused",
]

GivenBack = Counter[tuple[int, int]]
"""Pages given back by job and host number."""

_MOST_SLOTS = 1000
_UNFINISHED = select(jobs.c.id).where(jobs.c.state != JobState.FINISHED.value)
_COLUMNS = sessions.c.epoch, sessions.c.pipeline_id, sessions.c.instance, sessions.c.slots
_LATEST = select(sessions.c.ask, sessions.c.handed_out)
_STANDING = Prepared(
    select(sessions.c.pipeline_id, sessions.c.ending, sessions.c.paused).where(sessions.c.epoch == bindparam("epoch")),
    "epoch",
)


class BegunSession(Struct, frozen=True):
    """A session, and what it brought with it."""

    session: Session
    given_back: GivenBack
    resumed: bool


def check_live(db: Database, pipeline: str, epoch: int) -> None:
    """Raise NotFoundError unless a session is the pipeline's, and SessionEndedError when it has ended."""
    paused_of(db, pipeline, epoch)


def paused_of(db: Database, pipeline: str, epoch: int) -> str:
    """Why a live session takes no pages; empty when it does. Raises as `check_live`."""
    rows = db.rows(_STANDING, (epoch,)) if 0 < epoch < 1 << 31 else []
    check_standing(pipeline, epoch, rows)
    return str(rows[0][2])


def check_standing(pipeline: str, epoch: int, rows: Sequence[Sequence[Any]]) -> None:
    """The same, by the rows of the session: pipeline and ending."""
    if not rows or rows[0][0] != pipeline:
        raise NotFoundError(f"{pipeline} has no session {epoch}")
    if rows[0][1]:
        raise SessionEndedError(str(rows[0][1]), epoch)


def begin(db: Database, pipeline: str, greeting: Greeting, address: str, now: int, lease_until: int) -> BegunSession:
    """The session of a pipeline's process, within the caller's transaction: its own, or a new one.

    A session of another process of the same pipeline ends; what it held is given back.
    """
    _check(greeting)
    # two processes of one pipeline that greet at once come one after the other
    here = select(pipelines.c.id).where(pipelines.c.id == pipeline).with_for_update()
    if db.connection.execute(here).scalar() is None:
        raise NotFoundError(f"there is no pipeline {pipeline!r}")
    known = _session(db, sessions.c.pipeline_id == pipeline)
    values: dict[str, object] = {"version": greeting.version, "address": address}
    if known is not None and known.instance == greeting.instance and known.slots == greeting.slots:
        db.connection.execute(sessions.update().where(sessions.c.epoch == known.epoch).values(values))
        return BegunSession(known, Counter(), True)
    given_back = end(db, known.epoch, SessionEnding.REPLACED, now) if known else Counter()
    values |= {"pipeline_id": pipeline, "instance": greeting.instance, "slots": greeting.slots, "began_at": now}
    made = db.connection.execute(sessions.insert().values(**values, lease_until=lease_until))
    key = made.inserted_primary_key
    assert key is not None
    return BegunSession(Session(int(key[0]), pipeline, greeting.instance, greeting.slots), given_back, False)


def _check(greeting: Greeting) -> None:
    if not 1 <= greeting.slots <= _MOST_SLOTS:
        raise UsageError(f"a pipeline has from 1 to {_MOST_SLOTS} slots, not {greeting.slots}")
    if not 1 <= len(greeting.instance) <= 64 or set(greeting.instance) - set("0123456789abcdef"):
        raise UsageError(f"{greeting.instance[:64]!r} is not a hexadecimal instance id of up to 64 digits")
    if len(greeting.version) > 64:
        raise UsageError(f"{greeting.version[:64]!r}… is not a version")


def _session(db: Database, which: ColumnElement[bool]) -> Session | None:
    found = select(*_COLUMNS).where(which, sessions.c.ended_at.is_(None))
    row = db.connection.execute(found).first()
    return None if row is None else Session(*row)


def hold(db: Database, epoch: int) -> None:
    """Keep a session from ending until the caller's transaction does; raises SessionEndedError when it has ended."""
    here = select(sessions.c.ending).where(sessions.c.epoch == epoch).with_for_update()
    if ending := db.connection.execute(here).scalar_one():
        raise SessionEndedError(str(ending), epoch)


def set_paused(db: Database, epoch: int, why: str) -> None:
    """Keep why a session takes no pages, within the caller's transaction; empty when it does."""
    changed = sessions.update().where(sessions.c.epoch == epoch, sessions.c.paused != why)
    db.connection.execute(changed.values(paused=why))


def end(
    db: Database, epoch: int, ending: SessionEnding, now: int, only_if: Iterable[ColumnElement[bool]] = ()
) -> GivenBack:
    """End a session, within the caller's transaction: its claims go back, and its slots leave jobs that hold no lock.

    Ending it again changes nothing, nor does a session that is not as `only_if` says.
    """
    ended = db.connection.execute(
        sessions.update()
        .where(sessions.c.epoch == epoch, sessions.c.ended_at.is_(None), *only_if)
        .values(ended_at=now, ending=ending.value)
        .returning(sessions.c.pipeline_id)
    ).scalar()
    if ended is None:
        return Counter()
    db.connection.execute(
        assignments.delete().where(assignments.c.pipeline_id == ended, assignments.c.lock == SlotLock.NONE.value)
    )
    db.connection.execute(host_permits.delete().where(host_permits.c.epoch == epoch))
    return _give_back(db, epoch, deaths=int(ending.is_death))


def _give_back(db: Database, epoch: int, deaths: int) -> GivenBack:
    given_back = db.connection.execute(
        pages.update()
        .where(held_by(epoch))
        .values(state=PageState.READY.value, claim_id=None, deaths=pages.c.deaths + deaths)
        .returning(pages.c.job_id, pages.c.host_id)
    )
    return Counter((int(job_id), int(host_id)) for job_id, host_id in given_back)


def release(db: Database, job_id: int, claims: Iterable[tuple[int, int]], *, died: bool) -> GivenBack:
    """Give some pages back, (page id, claim id), within the caller's transaction; `died`: their worker has."""
    given_back: GivenBack = Counter()
    # in order, so that two never wait for each other
    for page_id, claim_id in sorted(claims):
        host_id = db.connection.execute(
            pages.update()
            .where(pages.c.job_id == job_id, pages.c.id == page_id, pages.c.claim_id == claim_id)
            .values(state=PageState.READY.value, claim_id=None, deaths=pages.c.deaths + int(died))
            .returning(pages.c.host_id)
        ).scalar()
        if host_id is not None:
            given_back[job_id, int(host_id)] += 1
    return given_back


def held_jobs(db: Database, epoch: int, ask: int) -> set[int]:
    """The jobs of which a session has pages; none when its claim `ask` was given some: these may be under way."""
    some = exists().where(pages.c.job_id == jobs.c.id, CLAIMED, pages.c.claim_id.between(*numbers(epoch)))
    found = set(db.connection.execute(_UNFINISHED.where(some)).scalars())
    # after the pages: a claim in between is seen
    latest, given = db.connection.execute(_LATEST.where(sessions.c.epoch == epoch)).one()
    return found if latest == ask - 1 or (latest == ask and not given) else set()


def held(db: Database, epoch: int) -> int:
    """The number of pages that a session has."""
    return int(db.connection.execute(select(func.count()).select_from(pages).where(held_by(epoch))).scalar_one())


def numbers(epoch: int) -> tuple[int, int]:
    """The first and the last number that claims of a session may have."""
    return first_claim(epoch) + 1, first_claim(epoch + 1) - 1


def held_by(epoch: int) -> ColumnElement[bool]:
    """The pages that a session has."""
    first, last = numbers(epoch)
    return and_(pages.c.job_id.in_(_UNFINISHED), CLAIMED, pages.c.claim_id.between(first, last))
