"""Amendments: changes of a job's settings and patterns, kept in the tracker before anybody acts on them."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from muniment.model.change import (
    AddIgnore,
    AddSet,
    Change,
    ChangeMade,
    RemoveIgnore,
    RemoveSet,
    SetNice,
    SetRules,
    SetValues,
)
from muniment.model.rule import Rule
from muniment.rules.changes import change_settings
from muniment.rules.ignore_sets import set_of
from muniment.rules.rule_engine import Ruleset
from muniment.rules.rulesets import (
    Rules,
    add_ignore,
    add_set,
    remove_ignore,
    remove_set,
    replace_rules,
    set_nice,
)
from muniment.settings.table import Settings
from muniment.tracker.db.database import Database, retrying_transaction
from muniment.tracker.jobs import store as jobs
from muniment.tracker.jobs.audit import note

__all__ = ["ChangeResult", "amend"]


class ChangeResult(Struct, frozen=True):
    """The result of a change of a job."""

    changes: tuple[ChangeMade, ...]
    settings: Settings | None = None
    """The settings in force now, secrets left out; None when they are as before."""
    ruleset: Ruleset | None = None
    """The patterns in force now; None when they are as before. Pages that wait are still to be judged by them."""


@retrying_transaction
def amend(db: Database, job: jobs.Job, change: Change, now: int) -> ChangeResult:
    """Keep a change, in one transaction; raises UsageError when it makes no sense."""
    if isinstance(change, SetValues):
        return _set(db, job, change, now)
    with db.transaction():
        # who admits pages meanwhile does so by the version before, and is done before the walk through them begins
        db.take_turns(job.job_id, alone=True)
        version, known = jobs.latest_rules(db, job.job_id)
        rules, changed = _changed_rules(known, change)
        if rules == known:
            return ChangeResult(())
        ruleset = jobs.ruleset_of(db, job.job_id, version + 1, rules)
        jobs.save_rules(db, job.job_id, rules, now)
        note(db, job.job_id, change.who, (changed,), now)
    return ChangeResult((changed,), ruleset=ruleset)


def _changed_rules(
    known: Rules, change: AddIgnore | SetRules | SetNice | RemoveIgnore | AddSet | RemoveSet
) -> tuple[Rules, ChangeMade]:
    """The rules after a change, and what it is called before and after."""
    if isinstance(change, SetRules):
        rules = replace_rules(known, change.rules)
        return rules, ChangeMade("rules", _text(known.in_order), _text(rules.in_order))
    if isinstance(change, SetNice):
        rules, was = set_nice(known, change.host, change.prefix, change.nice)
        about = " and ".join(filter(None, (change.host.lower(), change.prefix)))
        before, after = ("" if value is None else str(value) for value in (was, change.nice))
        return rules, ChangeMade(f"nice of {about}", before, after)
    rules, before, after = _changed_ignores(known, change)
    return rules, ChangeMade("ignores", before, after)


def _text(rules: tuple[Rule, ...]) -> str:
    return msgspec.json.encode(rules).decode() if rules else ""


def _changed_ignores(rules: Rules, change: AddIgnore | RemoveIgnore | AddSet | RemoveSet) -> tuple[Rules, str, str]:
    match change:
        case AddIgnore(_, pattern):
            return add_ignore(rules, pattern), "", pattern
        case RemoveIgnore(_, pattern):
            return remove_ignore(rules, pattern), pattern, ""
        case AddSet(_, name):
            return add_set(rules, set_of(name)), "", f"set {name}"
        case RemoveSet(_, name):
            return remove_set(rules, name), f"set {name}", ""


def _set(db: Database, job: jobs.Job, change: SetValues, now: int) -> ChangeResult:
    settings, changes = change_settings(jobs.settings_of(job), change.values)
    if not changes:
        return ChangeResult(())
    with db.transaction():
        jobs.save_settings(db, job.job_id, settings)
        note(db, job.job_id, change.who, changes, now)
    return ChangeResult(changes, settings=settings)
