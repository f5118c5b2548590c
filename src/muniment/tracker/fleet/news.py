"""News: what a pipeline goes by. Their number grows whenever they say something else than before.

They are made of what the database says, and compared with what they said: whoever changed it, and how, they tell.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec
from msgspec import structs
from sqlalchemy import bindparam, literal_column, or_, select

from muniment.model.network.sessions import JobNews, NewsAnswer, SlotNews
from muniment.model.pipeline import SlotLock
from muniment.tracker.db.database import Asked, Database, Prepared, Row, retrying_transaction
from muniment.tracker.fleet.sessions import check_standing, numbers
from muniment.tracker.schema.pipelines import assignments, host_permits, sessions
from muniment.tracker.schema.tables import CLAIMED, jobs, pages

__all__ = ["News"]

_SESSION = Prepared(
    select(
        sessions.c.pipeline_id, sessions.c.ending, sessions.c.news, sessions.c.news_digest, sessions.c.stopping,
        sessions.c.slots,
    ).where(sessions.c.epoch == bindparam("epoch")),
    "epoch",
)  # fmt: skip
_SLOTS = Prepared(
    select(assignments.c.slot, assignments.c.job_id, assignments.c.lock)
    .where(assignments.c.pipeline_id == bindparam("pipeline"))
    .order_by(assignments.c.slot),
    "pipeline",
)
_IS_AT = (
    select(assignments.c.job_id)
    .where(assignments.c.job_id == jobs.c.id, assignments.c.pipeline_id == bindparam("pipeline"))
    .exists()
)
_HAS = (
    select(pages.c.id)
    .where(pages.c.job_id == jobs.c.id, CLAIMED, pages.c.claim_id.between(bindparam("first"), bindparam("last")))
    .exists()
)
_JOBS = Prepared(
    select(jobs.c.id, jobs.c.state, jobs.c.paused, jobs.c.settings_age)
    .where(or_(_IS_AT, (jobs.c.state != literal_column("'FINISHED'")) & _HAS))
    .order_by(jobs.c.id),
    "pipeline", "first", "last",
)  # fmt: skip
"""Those that its slots are at, and those whose pages it has."""
_LOWERED = Prepared(
    select(host_permits.c.host, host_permits.c.target)
    .where(host_permits.c.epoch == bindparam("epoch"), host_permits.c.target.is_not(None))
    .order_by(host_permits.c.host),
    "epoch",
)


class News:
    """Gives pipelines their news."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def of(self, pipeline: str, epoch: int) -> NewsAnswer:
        """The news of a session. Raises NotFoundError and SessionEndedError."""
        return self.beside(pipeline, epoch, [])[0]

    def beside(self, pipeline: str, epoch: int, more: Sequence[Asked]) -> tuple[NewsAnswer, list[list[Row]]]:
        """The same, and the answers to what else is asked in the same turn."""
        told, digest, number, answers = self._look(pipeline, epoch, more)
        if digest is not None:
            number = self._keep(epoch, digest)
        return structs.replace(told, news=number), answers

    def _look(
        self, pipeline: str, epoch: int, more: Sequence[Asked]
    ) -> tuple[NewsAnswer, bytes | None, int, list[list[Row]]]:
        """What there is to tell, its digest when it is new, the number of the news before, and the other answers."""
        asked = [
            (_SESSION, (epoch,)),
            (_SLOTS, (pipeline,)),
            (_JOBS, (pipeline, *numbers(epoch))),
            (_LOWERED, (epoch,)),
            *more,
        ]
        found, *answers = self._db.several(asked) if 0 < epoch < 1 << 31 else [[]]
        check_standing(pipeline, epoch, found)
        [(_, _, number, before, stopping, slots)] = found
        told = _told(answers[:3], bool(stopping), int(slots))
        digest = hashlib.sha256(msgspec.json.encode(told)).digest()
        new = None if before is not None and bytes(before) == digest else digest
        return told, new, int(number), answers[3:]

    @retrying_transaction
    def _keep(self, epoch: int, digest: bytes) -> int:
        with self._db.transaction() as connection:
            raised = sessions.update().where(sessions.c.epoch == epoch)
            values = {"news": sessions.c.news + 1, "news_digest": digest}
            return int(connection.execute(raised.values(values).returning(sessions.c.news)).scalar_one())


def _told(answers: list[list[Row]], stopping: bool, slots: int) -> NewsAnswer:
    assigned, at_work, lowered = answers
    return NewsAnswer(
        news=0,
        stop=stopping,
        slots=[SlotNews(int(slot), int(job), SlotLock(lock)) for slot, job, lock in assigned if slot < slots],
        jobs=[
            JobNews(job=int(job), state=str(state), paused=bool(paused), settings_age=int(age))
            for job, state, paused, age in at_work
        ],
        permits={str(host): int(target) for host, target in lowered},
    )
