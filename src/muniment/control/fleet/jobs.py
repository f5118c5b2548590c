"""The jobs of a fleet: making one, looking at them, changing one. A change is in force when its function returns."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import UNSET, structs

from muniment.clock import now_ms
from muniment.control.fleet.job_specs import check_line, checked_spec, checked_terms
from muniment.control.fleet.values import changed_values
from muniment.control.ignore_effect import ignore_effect
from muniment.control.runs.answer_cache import AnswerCache
from muniment.errors import ForeignJobError, NotFoundError, UsageError
from muniment.model.change import (
    AbortJob,
    AddIgnore,
    AddSet,
    Change,
    FailJob,
    PauseJob,
    RemoveIgnore,
    RemoveSet,
    ResumeJob,
    SetTerms,
    SetValues,
)
from muniment.model.job import JobOrigin, JobState, JobTerms
from muniment.model.network.dashboard import IgnoreEffect
from muniment.model.network.jobs import ChangesMade, IgnoresCall, JobPatch, JobSpec, JobView
from muniment.model.network.lists import MOST_LISTED, ChangeList, JobList
from muniment.tracker.db.database import Database
from muniment.tracker.jobs import store
from muniment.tracker.jobs.audit import settings_age
from muniment.tracker.jobs.changes import amend_all
from muniment.tracker.jobs.submissions import Submission, SubmittedBeforeError, is_of, submitted
from muniment.tracker.open import JobStart, StartPages, submit_job
from muniment.tracker.views.counts import job_summary
from muniment.tracker.views.jobs import CountWaiting, job_changes_after, job_place, job_view, job_views, waiting_counts
from muniment.tracker.views.log_lines import lines_until

__all__ = [
    "MOST_NUMBER",
    "abort",
    "add",
    "all_made",
    "change",
    "changes",
    "check_own",
    "effect_of_ignore",
    "fail",
    "ignores",
    "job_of",
    "list_jobs",
    "pause",
    "resume",
    "submit",
    "view",
    "whole_view",
]

MOST_NUMBER = (1 << 31) - 1
"""The largest number of a job."""
_MOST_REASON = 1_000
_RECENT = 1_000
_NETWORK = "network"


def add(
    db: Database,
    spec: JobSpec,
    who: str,
    now: int | None = None,
    *,
    allow_private: bool = False,
    where: str = "",
    submission: Submission | None = None,
) -> JobView:
    """Make a job; raises UsageError for one that makes no sense, PrivateTargetError for targets that are not public."""
    at = now_ms() if now is None else now
    checked = checked_spec(spec, at, allow_private=allow_private)
    start = JobStart(
        origin=JobOrigin(who, where, spec.explanation),
        terms=checked.terms,
        paused=spec.paused,
        cookies=checked.cookies,
        submission=submission,
    )
    made = submit_job(db, checked.name, checked.settings, StartPages(checked.urls), at, checked.rules, start)
    return job_view(db, made.job.job_id)


def submit(db: Database, spec: JobSpec, submission: Submission, *, allow_private: bool) -> tuple[JobView, bool]:
    """Make a job that was asked for over a network, and whether it is new: a repeated request finds the one it made."""
    now = now_ms()
    try:
        made = submitted(db, submission, now)
        if made is not None:
            return job_view(db, made), False
        who = submission.token
        return add(db, spec, who, now, allow_private=allow_private, where=_NETWORK, submission=submission), True
    except SubmittedBeforeError as before:
        return job_view(db, before.job_id), False


def check_own(db: Database, job_id: int, token: str) -> None:
    """Raise NotFoundError for a job that is not there, ForeignJobError for one that another token has made."""
    job_of(db, job_id)
    if not is_of(db, job_id, token):
        raise ForeignJobError(f"job {job_id} was made by another token: this needs the scope operate")


def list_jobs(
    db: Database, *, state: str = "", after: int = 0, limit: int = MOST_LISTED, count: CountWaiting = waiting_counts
) -> JobList:
    """The jobs after a number, perhaps those in a state alone. Raises UsageError for a state that does not exist."""
    if state and state not in set(JobState):
        raise UsageError(f"there is no state {state[:60]!r}; the states are {', '.join(JobState)}")
    if after > MOST_NUMBER:
        return JobList([], None)
    found = job_views(db, state=state, after=after, limit=limit, count=count)
    return JobList(found, found[-1].id if len(found) == limit else None)


def view(db: Database, job_id: int, count: CountWaiting = waiting_counts) -> JobView:
    """How a job stands; raises NotFoundError."""
    return job_view(db, job_of(db, job_id).job_id, count)


def whole_view(db: Database, job_id: int, kept: AnswerCache | None = None) -> JobView:
    """The same with its counts, perhaps as they were."""
    found = view(db, job_id)
    counts = kept.of(("counts", job_id), lambda: job_summary(db, job_id)) if kept else job_summary(db, job_id)
    return structs.replace(found, counts=counts)


def changes(db: Database, job_id: int, *, after: int = 0, limit: int = MOST_LISTED) -> ChangeList:
    """Changes of a job, the oldest first; raises NotFoundError."""
    job_of(db, job_id)
    found = job_changes_after(db, job_id, min(after, MOST_NUMBER), limit)
    return ChangeList([one for _, one in found], found[-1][0] if len(found) == limit else None)


def change(db: Database, job_id: int, patch: JobPatch, who: str) -> ChangesMade:
    """Change settings and terms of a job; raises UsageError, and then nothing was changed."""
    job = job_of(db, job_id)
    made: list[Change] = []
    if patch.settings:
        made.append(SetValues(who, changed_values(patch.settings)))
    terms = JobTerms(
        nice=patch.nice,
        concurrency=patch.max_slots,
        tags=UNSET if patch.tags is UNSET else frozenset(patch.tags),
        drip=patch.drip,
        explanation=patch.explanation,
    )
    if terms != JobTerms():
        made.append(SetTerms(who, checked_terms(terms)))
    return all_made(db, job, made)


def ignores(db: Database, job_id: int, call: IgnoresCall, who: str) -> ChangesMade:
    """Add and remove ignore patterns and sets of a job; raises UsageError, and then nothing was changed."""
    job = job_of(db, job_id)
    made: list[Change] = [
        *(AddIgnore(who, pattern) for pattern in call.add),
        *(RemoveIgnore(who, pattern) for pattern in call.remove),
        *(AddSet(who, name) for name in call.add_sets),
        *(RemoveSet(who, name) for name in call.remove_sets),
    ]
    return all_made(db, job, made)


def effect_of_ignore(db: Database, job_id: int, pattern: str) -> IgnoreEffect:
    """What an ignore pattern would take of the pages that wait, and of the last captures; nothing changes."""
    mine = job_of(db, job_id).job_id
    recent = [line.url for _, line in lines_until(db, mine, None, _RECENT) if line.kind == "capture"]
    return ignore_effect(db, mine, pattern, recent)


def pause(db: Database, job_id: int, who: str) -> JobView:
    """Pause a job: it gets no slots until it is resumed. Raises UsageError for one that has ended."""
    return _seen_after(db, job_id, [PauseJob(who)])


def resume(db: Database, job_id: int, who: str) -> JobView:
    """Have a paused or aborted job go on."""
    return _seen_after(db, job_id, [ResumeJob(who)])


def abort(db: Database, job_id: int, who: str) -> JobView:
    """End a job; what is out may still be finished. Raises UsageError for one that is finished."""
    return _seen_after(db, job_id, [AbortJob(who)])


def fail(db: Database, job_id: int, reason: str, who: str) -> JobView:
    """End a job that has failed, for a reason in words. Raises UsageError for one that is finished."""
    check_line(reason, "the reason", _MOST_REASON)
    if not reason.strip():
        raise UsageError("a reason is necessary: say why the job has failed")
    return _seen_after(db, job_id, [FailJob(who, reason)])


def _seen_after(db: Database, job_id: int, made: Iterable[Change]) -> JobView:
    all_made(db, job_of(db, job_id), made)
    return job_view(db, job_id)


def all_made(db: Database, job: store.Job, made: Iterable[Change]) -> ChangesMade:
    """Carry out changes, all or none; raises UsageError."""
    results = amend_all(db, job, list(made), now_ms())
    return ChangesMade([one for result in results for one in result.changes], settings_age(db, job.job_id))


def job_of(db: Database, job_id: int) -> store.Job:
    """A job by its number; raises NotFoundError, also for one of an output directory, which is not a fleet's."""
    if not 0 < job_id <= MOST_NUMBER or job_place(db, job_id) != db.place_id:
        raise NotFoundError(f"there is no job {job_id}; `muniment job list` shows them")
    return store.load_job(db, job_id)
