"""Changes of a job: kept in the tracker, with its audit, before anybody acts on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import msgspec
from msgspec import Struct, structs

from muniment.model.change import (
    AbortJob,
    AddIgnore,
    AddSet,
    AmendPatterns,
    Change,
    ChangeMade,
    FailJob,
    PauseJob,
    RemoveIgnore,
    RemoveSet,
    ResumeJob,
    RuleChange,
    SetNice,
    SetRules,
    SetTerms,
    SetValues,
    StashPages,
    UnstashPages,
)
from muniment.model.job import JobState
from muniment.model.rule import Rule
from muniment.rules.changes import change_settings, written_values
from muniment.rules.guards.family import TRAPS
from muniment.rules.ignore_sets import set_of
from muniment.rules.job_rules import (
    Rules,
    add_ignore,
    add_set,
    amend_patterns,
    remove_ignore,
    remove_set,
    replace_rules,
    set_nice,
)
from muniment.rules.rule_engine import Ruleset
from muniment.settings.option_table import Settings
from muniment.tracker.db.database import Database, retrying_transaction
from muniment.tracker.jobs import store as jobs
from muniment.tracker.jobs.audit import AuditEntry, made_since, note
from muniment.tracker.jobs.stash import apply_stash, apply_unstash
from muniment.tracker.jobs.terms import (
    FAILED,
    PAUSED,
    apply_abort,
    apply_fail,
    apply_pause,
    apply_resume,
    apply_terms,
    terms_texts,
)
from muniment.tracker.stores.families import FamilyRow, FamilyStore, pages_released, set_aside, with_patterns

__all__ = ["ChangeResult", "amend", "amend_all"]

_UNSTASH = "unstash"


class ChangeResult(Struct, frozen=True):
    """The result of a change of a job."""

    changes: tuple[ChangeMade, ...]
    settings: Settings | None = None
    """The settings in force now, secrets left out; None when they are as before."""
    ruleset: Ruleset | None = None
    """The patterns in force now; None when they are as before. Pages that wait are still to be judged by them."""
    pending: dict[int, int] = {}
    """Pages newly pending, or fewer, per host number."""
    repeated: bool = False
    """The changes were made before, when the same request came for the first time."""


def amend(db: Database, job: jobs.Job, change: Change, now: int) -> ChangeResult:
    """Keep a change, in one transaction; a repeat changes nothing. Raises UsageError when it makes no sense."""
    return amend_all(db, job, (change,), now)[0]


@retrying_transaction
def amend_all(db: Database, job: jobs.Job, changes: Sequence[Change], now: int) -> list[ChangeResult]:
    """Keep changes, all in one transaction or none; raises UsageError for the first that makes no sense."""
    with db.transaction():
        # who admits pages meanwhile does so by the version before, and is done before all are judged again
        db.take_turns(job.job_id, alone=True)
        return [_amended(db, job, change, now) for change in changes]


def _amended(db: Database, job: jobs.Job, change: Change, now: int) -> ChangeResult:
    if made := _made_before(db, job.job_id, change):
        return ChangeResult(made, repeated=True)
    result = _apply(db, job, change, now)
    # terms and settings of a finished job change nothing that it captured
    if job.over and (result.ruleset is not None or result.pending):
        jobs.apply_reopen(db, job.job_id)
    note(db, job.job_id, change.who, result.changes, now)
    return result


def _apply(db: Database, job: jobs.Job, change: Change, now: int) -> ChangeResult:
    match change:
        case SetValues():
            result = _set(db, job, change)
        case SetTerms(_, terms):
            result = ChangeResult(apply_terms(db, job.job_id, terms))
        case AbortJob():
            result = ChangeResult(apply_abort(db, job.job_id, now))
        case FailJob(_, reason):
            result = ChangeResult(apply_fail(db, job.job_id, reason, now))
        case PauseJob():
            result = ChangeResult(apply_pause(db, job.job_id))
        case ResumeJob():
            result = ChangeResult(apply_resume(db, job.job_id))
        case StashPages(_, host, prefix):
            put = apply_stash(db, job.job_id, host=host, prefix=prefix)
            result = _moved(_stash_name(change), put, {host_id: -count for host_id, count in put.items()})
        case UnstashPages(_, most):
            taken = apply_unstash(db, job.job_id, most)
            result = _moved(_UNSTASH, taken, dict(taken))
        case RemoveIgnore(_, pattern) if aside := with_patterns(db, job.job_id, [pattern]):
            result = _released(db, job, aside)
        case RemoveSet(_, name) if name == TRAPS and (aside := set_aside(db, job.job_id)):
            result = _released(db, job, aside)
        case AmendPatterns(_, _, removed) if aside := with_patterns(db, job.job_id, removed):
            result = _released(db, job, aside)
            others = _change_rules(db, job, change, now)
            result = structs.replace(others, changes=others.changes + result.changes, pending=result.pending)
        case _:
            result = _change_rules(db, job, change, now)
    return result


def _released(db: Database, job: jobs.Job, aside: Sequence[FamilyRow]) -> ChangeResult:
    """Let families go on for good that were set aside."""
    pending: Counter[int] = Counter()
    for one in aside:
        pending += pages_released(db, job.job_id, one.family)
        one.family.release(for_good=True)
    FamilyStore(db, job.job_id).save({one.key: one for one in aside})
    return ChangeResult(_patterns_changes((), [one.re for one in aside]), pending=dict(pending))


def _moved(what: str, pages: Counter[int], pending: dict[int, int]) -> ChangeResult:
    changes = (ChangeMade(what, "", f"{pages.total()} page{'s' * (pages.total() != 1)}"),) if pages else ()
    return ChangeResult(changes, pending=pending)


def _set(db: Database, job: jobs.Job, change: SetValues) -> ChangeResult:
    settings, changes = change_settings(jobs.settings_of(jobs.load_job(db, job.job_id)), change.values)
    if not changes:
        return ChangeResult(())
    jobs.save_settings(db, job.job_id, settings)
    return ChangeResult(changes, settings=settings)


def _change_rules(db: Database, job: jobs.Job, change: RuleChange | AmendPatterns, now: int) -> ChangeResult:
    version, known = jobs.latest_rules(db, job.job_id)
    if isinstance(change, AmendPatterns):
        rules, added, removed = amend_patterns(known, change.added, change.removed)
        changes = _patterns_changes(added, removed)
    else:
        rules, changed = _changed_rules(known, change)
        changes = (changed,)
    if rules == known:
        return ChangeResult(())
    ruleset = jobs.ruleset_of(db, job.job_id, version + 1, rules)
    jobs.save_rules(db, job.job_id, rules, now)
    return ChangeResult(changes, ruleset=ruleset)


def _patterns_changes(added: Sequence[str], removed: Sequence[str]) -> tuple[ChangeMade, ...]:
    made = [ChangeMade("ignores", "", one) for one in added] + [ChangeMade("ignores", one, "") for one in removed]
    return tuple(made)


def _changed_rules(known: Rules, change: RuleChange) -> tuple[Rules, ChangeMade]:
    """The rules after a change, and what it is called before and after."""
    match change:
        case SetRules(_, in_order):
            return replace_rules(known, in_order), ChangeMade("rules", _text(known.in_order), _text(in_order))
        case SetNice(_, host, prefix, nice):
            rules, was = set_nice(known, host, prefix, nice)
            return rules, ChangeMade(_nice_name(change), _nice_text(was), _nice_text(nice))
        case AddIgnore(_, pattern):
            return add_ignore(known, pattern), _ignores_change(change)
        case RemoveIgnore(_, pattern):
            return remove_ignore(known, pattern), _ignores_change(change)
        case AddSet(_, name):
            return add_set(known, set_of(name)), _ignores_change(change)
        case RemoveSet(_, name):
            return remove_set(known, name), _ignores_change(change)


# -- repeats: what was cut off before its answer, or comes late


def _made_before(db: Database, job_id: int, change: Change) -> tuple[ChangeMade, ...]:
    """What a change made when it came before, by the age of the job that its asker knew; nothing for a new one."""
    if change.age is None:
        return ()
    return made_since(db, job_id, change.age, change.who, lambda entry: _is_of(entry, change))


def _is_of(entry: AuditEntry, change: Change) -> bool:
    match change:
        case SetValues(_, values):
            marks: Collection[tuple[str, str]] = written_values(values)
        case SetTerms(_, terms):
            marks = terms_texts(terms).items()
        case SetRules(_, rules):
            marks = [("rules", _text(rules))]
        case SetNice(_, _, _, nice):
            marks = [(_nice_name(change), _nice_text(nice))]
        case AbortJob():
            marks = [("state", JobState.ABORTED.value)]
        case FailJob(_, reason):
            marks = [("state", JobState.ABORTED.value), (FAILED, reason)]
        case PauseJob():
            marks = [(PAUSED, "yes")]
        case ResumeJob():
            marks = [("state", JobState.ACTIVE.value), (PAUSED, "no")]
        case AmendPatterns(_, added, removed):
            return ChangeMade(entry.what, entry.before, entry.after) in _patterns_changes(added, removed)
        case StashPages() | UnstashPages():
            marks = [(_UNSTASH if isinstance(change, UnstashPages) else _stash_name(change), entry.after)]
        case _:
            return ChangeMade(entry.what, entry.before, entry.after) == _ignores_change(change)
    return (entry.what, entry.after) in marks


# -- names in the audit


def _ignores_change(change: AddIgnore | RemoveIgnore | AddSet | RemoveSet) -> ChangeMade:
    one = change.pattern if isinstance(change, AddIgnore | RemoveIgnore) else f"set {change.name}"
    return ChangeMade("ignores", "", one) if isinstance(change, AddIgnore | AddSet) else ChangeMade("ignores", one, "")


def _nice_name(change: SetNice) -> str:
    return f"nice of {_about(change.host, change.prefix)}"


def _stash_name(change: StashPages) -> str:
    return f"stash of {_about(change.host, change.prefix) or 'all'}"


def _about(host: str, prefix: str) -> str:
    return " and ".join(filter(None, (host.lower(), prefix)))


def _nice_text(nice: int | None) -> str:
    return "" if nice is None else str(nice)


def _text(rules: tuple[Rule, ...]) -> str:
    return msgspec.json.encode(rules).decode() if rules else ""
