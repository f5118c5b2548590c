"""Jobs: making one, finding it again, its rulesets and its states."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import takewhile

import msgspec
from msgspec import Struct
from sqlalchemy import TextClause, bindparam, func, literal_column, select

from muniment.errors import NotFoundError
from muniment.model.job import JobOrigin, JobState
from muniment.model.pipeline import SlotLock
from muniment.rules.job_rules import Rules, compile_ruleset
from muniment.rules.rendering.needs_browser import may_render
from muniment.rules.rule_engine import Ruleset
from muniment.settings.option_table import Settings
from muniment.tracker.db.database import Database, Prepared, retrying_transaction
from muniment.tracker.schema.changes import job_rulesets
from muniment.tracker.schema.pipelines import assignments, job_numbers
from muniment.tracker.schema.tables import (
    CLAIMED,
    PARKED,
    PENDING,
    STASHED,
    job_sums,
    jobs,
    pages,
    repairs,
    seed_lists,
)

__all__ = [
    "NOBODY",
    "Job",
    "JobInput",
    "all_latest_rules",
    "any_claimed",
    "any_parked",
    "any_pending",
    "any_start_captured",
    "any_stashed",
    "apply_reopen",
    "clear_finished",
    "create_job",
    "find_job",
    "given_of",
    "latest_rules",
    "load_job",
    "reopen",
    "rules_of",
    "ruleset_of",
    "save_given",
    "save_rules",
    "save_settings",
    "set_judged",
    "set_outcome",
    "settings_of",
    "settle",
    "start_digest",
    "start_urls",
]


_COLUMNS = (
    jobs.c.id, jobs.c.name, jobs.c.state, jobs.c.outcome, jobs.c.settings, jobs.c.start_digest, jobs.c.given,
    jobs.c.judged, jobs.c.paused,
)  # fmt: skip


NOBODY = JobOrigin()
_STARTS_AT_ONCE = 1000


class JobInput(Struct, frozen=True):
    """The settings of the command line: a resumed run compares its own with them."""

    settings: Settings
    """Secrets left out."""
    rules: Rules


class Job(Struct, frozen=True):
    """A job as it stands in the tracker."""

    job_id: int
    name: str
    state: str
    """ACTIVE, DRAINING, FINISHED or ABORTED."""
    outcome: str
    settings: str
    """JSON."""
    start_digest: bytes
    given: str
    """JSON of `JobInput`; empty in a tracker of an older version."""
    judged: int
    """The version of the rules that its waiting pages were judged by."""
    paused: bool = False
    """Nothing of it is fetched until it is resumed."""

    @property
    def over(self) -> bool:
        """Whether it has ended for good: its index is joined. One that captured nothing may be tried again.

        FINISHED alone says that no page is left: a kill may have come before the join.
        """
        return self.state == "FINISHED" and self.outcome == "completed"


def start_digest(urls: Iterable[str]) -> bytes:
    """The digest that a resumed run compares: SHA-256 over the sorted set of start URLs."""
    return hashlib.sha256("\n".join(sorted(set(urls))).encode()).digest()


def find_job(db: Database) -> Job | None:
    """The job that the database was opened for, or None when it is new."""
    row = db.connection.execute(select(*_COLUMNS).where(jobs.c.place_id == db.place_id).order_by(jobs.c.id)).first()
    return None if row is None else Job(*row)


def load_job(db: Database, job_id: int) -> Job:
    """A job by its number; raises NotFoundError when there is none."""
    row = db.connection.execute(select(*_COLUMNS).where(jobs.c.id == job_id)).first()
    if row is None:
        raise NotFoundError(f"there is no job {job_id}")
    return Job(*row)


def create_job(db: Database, name: str, given: JobInput, digest: bytes, now: int, origin: JobOrigin = NOBODY) -> Job:
    """Make the job; within the caller's transaction, so that a job never exists without its start pages."""
    settings, kept = _text(given.settings), _text(given)
    told = {"started_by": origin.who, "started_in": origin.where, "explanation": origin.why}
    made = db.connection.execute(
        jobs.insert().values(
            **told, name=name, place_id=db.place_id, state="ACTIVE", settings=settings, given=kept, judged=1,
            start_digest=digest,
            created_at=now,
        )
    )  # fmt: skip
    key = made.inserted_primary_key
    assert key is not None
    job_id = int(key[0])
    db.connection.execute(job_sums.insert().values(job_id=job_id, session=db.session))
    if db.shared:
        db.connection.execute(job_numbers.insert().values(job_id=job_id))
    return Job(job_id, name, "ACTIVE", "", settings, digest, kept, 1)


@retrying_transaction
def set_outcome(db: Database, job_id: int, outcome: str, reason: str = "") -> None:
    """Note why a job ended: completed, or failed when nothing could be captured."""
    values = {"outcome": outcome, **({"reason": reason} if reason else {})}
    with db.transaction() as connection:
        connection.execute(jobs.update().where(jobs.c.id == job_id).values(values))


@retrying_transaction
def settle(db: Database, job_id: int, now: int) -> str:
    """Bring the job's state in line with its pages; returns it.

    ACTIVE: pages are pending, are still to be judged by newer rules, children still have to get shorter paths,
    or its list is not read to the end.
    DRAINING: none pending, some claimed, parked until a later round, or in the stash. FINISHED: none of these. An
    aborted job stays so.
    """
    with db.transaction() as connection:
        # what others bring is either there already, or comes after the state that is written here
        db.take_turns(job_id, alone=True)
        # locked, so that of two that settle a job the second sees what the first left
        here = select(jobs.c.state, jobs.c.judged).where(jobs.c.id == job_id).with_for_update()
        before, judged = connection.execute(here).one()
        if before == JobState.ABORTED:
            return str(before)
        state = _state(db, job_id, judged).value
        if state == before:
            return state
        ended = now if state == JobState.FINISHED else None
        connection.execute(jobs.update().where(jobs.c.id == job_id).values(state=state, finished_at=ended))
        if ended is not None:
            clear_finished(db, job_id)
    return state


# SQLite has no statistics: without the hints it would read every page of the job to find that there is none.
def _any(condition: TextClause, index: str) -> Prepared:
    some = select(pages.c.id).with_hint(pages, f"INDEXED BY {index}", "sqlite")
    return Prepared(some.where(pages.c.job_id == bindparam("job"), condition).limit(literal_column("1")), "job")


_WAITING, _HELD = _any(PENDING, "ix_pages_pending"), _any(CLAIMED, "ix_pages_claimed")
_LATER, _ASIDE = _any(PARKED, "ix_pages_parked"), _any(STASHED, "ix_pages_stashed")


def _state(db: Database, job_id: int, judged: int) -> JobState:
    if any_pending(db, job_id):
        return JobState.ACTIVE
    to_do = (
        select(repairs.c.page_id).where(repairs.c.job_id == job_id),
        select(seed_lists.c.job_id).where(seed_lists.c.job_id == job_id, seed_lists.c.ended.is_(False)),
    )
    if any(db.connection.execute(some.limit(1)).first() for some in to_do):
        return JobState.ACTIVE
    newest = select(func.max(job_rulesets.c.version)).where(job_rulesets.c.job_id == job_id)
    if judged < int(db.connection.execute(newest).scalar() or 0):
        return JobState.ACTIVE
    unfinished = any_claimed(db, job_id) or any_parked(db, job_id) or any_stashed(db, job_id)
    return JobState.DRAINING if unfinished else JobState.FINISHED


def any_parked(db: Database, job_id: int) -> bool:
    """Whether a page waits for a later round."""
    return bool(db.rows(_LATER, (job_id,)))


def any_stashed(db: Database, job_id: int) -> bool:
    """Whether a page that is to be fetched is in the stash."""
    return bool(db.rows(_ASIDE, (job_id,)))


def any_claimed(db: Database, job_id: int) -> bool:
    """Whether somebody holds a page."""
    return bool(db.rows(_HELD, (job_id,)))


def any_pending(db: Database, job_id: int) -> bool:
    """Whether a page waits to be claimed."""
    return bool(db.rows(_WAITING, (job_id,)))


@retrying_transaction
def reopen(db: Database, job_id: int) -> None:
    """Make an ended job ACTIVE again: a change may have made pages pending, which the next run judges."""
    with db.transaction():
        apply_reopen(db, job_id)


def apply_reopen(db: Database, job_id: int) -> None:
    """The same within the caller's transaction."""
    reopened = jobs.update().where(jobs.c.id == job_id).values(state="ACTIVE", outcome="", finished_at=None)
    db.connection.execute(reopened)


def any_start_captured(db: Database, job_id: int) -> bool:
    """Whether some start page gave an answer, over all processes that write the job."""
    counted = select(func.sum(job_sums.c.starts_captured)).where(job_sums.c.job_id == job_id)
    return bool(db.connection.execute(counted).scalar_one())


def settings_of(job: Job) -> Settings:
    """The settings in force, secrets left out."""
    return msgspec.json.decode(job.settings, type=Settings)


def save_settings(db: Database, job_id: int, settings: Settings) -> None:
    """Keep the settings in force, within the caller's transaction; they hold no secrets."""
    db.connection.execute(jobs.update().where(jobs.c.id == job_id).values(settings=_text(settings)))


def given_of(db: Database, job: Job) -> JobInput:
    """The settings of the last command line; in a tracker of an older version, those in force."""
    if job.given:
        return msgspec.json.decode(job.given, type=JobInput)
    return JobInput(settings_of(job), latest_rules(db, job.job_id)[1])


def save_given(db: Database, job_id: int, given: JobInput) -> None:
    """Keep what a command line gave, within the caller's transaction."""
    db.connection.execute(jobs.update().where(jobs.c.id == job_id).values(given=_text(given)))


def set_judged(db: Database, job_id: int, version: int) -> None:
    """Note that every page that waits was judged by this version of the rules; within the caller's transaction."""
    older = jobs.c.judged < version
    db.connection.execute(jobs.update().where(jobs.c.id == job_id, older).values(judged=version))


def _text(value: Struct) -> str:
    return msgspec.json.encode(value).decode()


def latest_rules(db: Database, job_id: int) -> tuple[int, Rules]:
    """The version in force and its patterns."""
    row = db.connection.execute(
        select(job_rulesets.c.version, job_rulesets.c.rules)
        .where(job_rulesets.c.job_id == job_id)
        .order_by(job_rulesets.c.version.desc())
        .limit(1)
    ).one()
    return int(row[0]), msgspec.json.decode(row[1], type=Rules)


def all_latest_rules(db: Database, job_ids: Sequence[int]) -> dict[int, Rules]:
    """The patterns of some jobs that are in force."""
    newer = job_rulesets.alias()
    again = select(newer.c.version).where(newer.c.job_id == job_rulesets.c.job_id)
    newest = ~again.where(newer.c.version > job_rulesets.c.version).exists()
    found = select(job_rulesets.c.job_id, job_rulesets.c.rules).where(job_rulesets.c.job_id.in_(job_ids), newest)
    return {int(job_id): msgspec.json.decode(rules, type=Rules) for job_id, rules in db.connection.execute(found)}


def rules_of(db: Database, job_id: int, version: int) -> Rules:
    """A version of the patterns and rules, which may be an older one."""
    here = job_rulesets.c.job_id == job_id, job_rulesets.c.version == version
    text = db.connection.execute(select(job_rulesets.c.rules).where(*here)).scalar_one()
    return msgspec.json.decode(text, type=Rules)


def save_rules(db: Database, job_id: int, rules: Rules, now: int) -> int:
    """Add a version, within the caller's transaction; older ones stay, for the attempts made under them."""
    newest = select(func.coalesce(func.max(job_rulesets.c.version), 0)).where(job_rulesets.c.job_id == job_id)
    version = int(db.connection.execute(newest).scalar_one()) + 1
    db.connection.execute(
        job_rulesets.insert().values(job_id=job_id, version=version, rules=_text(rules), created_at=now)
    )
    renders = may_render(settings_of(load_job(db, job_id)).engine, rules.in_order)
    db.connection.execute(jobs.update().where(jobs.c.id == job_id).values(renders=renders))
    return version


def ruleset_of(db: Database, job_id: int, version: int, rules: Rules) -> Ruleset:
    """A version of the patterns, compiled for the start URLs of its job; raises UsageError for an invalid one."""
    # there may be many start URLs, and few patterns are about them
    return compile_ruleset(version, rules, start_urls(db, job_id) if rules.by_start_urls else ())


def start_urls(db: Database, job_id: int) -> Sequence[str]:
    """The start URLs of a job, in order; none for a list: patterns are not expanded by millions of URLs."""
    if db.connection.execute(select(seed_lists.c.job_id).where(seed_lists.c.job_id == job_id)).first():
        return ()
    # they are the first pages of a job: looking no further keeps this from reading all others
    found = select(pages.c.url, pages.c.via_id, pages.c.id).where(pages.c.job_id == job_id).order_by(pages.c.id)
    urls: list[str] = []
    after = 0
    while rows := db.connection.execute(found.where(pages.c.id > after).limit(_STARTS_AT_ONCE)).all():
        starts = [str(url) for url, _, _ in takewhile(lambda row: row[1] is None, rows)]
        urls += starts
        if len(starts) < _STARTS_AT_ONCE:
            break
        after = rows[-1][2]
    return urls


def clear_finished(db: Database, job_id: int) -> None:
    """Take the locks off that hold until a job is finished or aborted, within the caller's transaction."""
    db.connection.execute(
        assignments.update()
        .where(assignments.c.job_id == job_id, assignments.c.lock == SlotLock.UNTIL_FINISHED.value)
        .values(lock=SlotLock.NONE.value)
    )
