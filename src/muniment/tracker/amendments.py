"""Amendments: changes of a job's settings and patterns, kept in the tracker before anybody acts on them."""

from __future__ import annotations

from msgspec import Struct

from muniment.model.change import AddIgnore, Change, Changed, RemoveIgnore, SetValues
from muniment.rules.changes import change_settings
from muniment.rules.rulesets import Rules, add_ignore, compile_ignores, compile_include, remove_ignore
from muniment.settings import Settings
from muniment.tracker import jobs
from muniment.tracker.admission import Ruleset
from muniment.tracker.engine import Database

__all__ = ["Amended", "amend", "ruleset_of"]


class Amended(Struct, frozen=True):
    """What a change made of a job."""

    changes: tuple[Changed, ...]
    settings: Settings | None = None
    """The settings in force now, secrets left out; None when they are as before."""
    ruleset: Ruleset | None = None
    """The patterns in force now; None when they are as before. Pages that wait are still to be judged by them."""


def ruleset_of(db: Database, job_id: int, version: int, rules: Rules) -> Ruleset:
    """A version of the patterns, compiled for the start URLs of its job; raises UsageError when one is none."""
    urls = jobs.start_urls(db, job_id)
    return Ruleset(version, compile_include(rules, urls), compile_ignores(rules, urls))


def amend(db: Database, job: jobs.Job, change: Change, now: int) -> Amended:
    """Keep a change, in one transaction; raises UsageError when it makes no sense."""
    match change:
        case SetValues(_, values):
            return _set(db, job, values)
        case AddIgnore(_, pattern):
            version, rules = jobs.latest_rules(db, job.job_id)
            return _keep(db, job, version, add_ignore(rules, pattern), Changed("ignores", "", pattern), now)
        case RemoveIgnore(_, pattern):
            version, rules = jobs.latest_rules(db, job.job_id)
            return _keep(db, job, version, remove_ignore(rules, pattern), Changed("ignores", pattern, ""), now)


def _set(db: Database, job: jobs.Job, values: tuple[tuple[str, str], ...]) -> Amended:
    settings, changes = change_settings(jobs.settings_of(job), values)
    if not changes:
        return Amended(())
    with db.transaction():
        jobs.save_settings(db, job.job_id, settings)
    return Amended(changes, settings=settings)


def _keep(db: Database, job: jobs.Job, version: int, rules: Rules, changed: Changed, now: int) -> Amended:
    ruleset = ruleset_of(db, job.job_id, version + 1, rules)
    with db.transaction():
        jobs.save_rules(db, job.job_id, rules, now)
    return Amended((changed,), ruleset=ruleset)
