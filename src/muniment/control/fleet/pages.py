"""The pages of a job: lists of them, of attempts and results; which go first, are put aside, or are left out."""

from __future__ import annotations

import re

from muniment.clock import now_ms
from muniment.control.fleet.job_specs import check_line
from muniment.control.fleet.jobs import MOST_NUMBER, all_made, job_of
from muniment.errors import NotFoundError, UsageError
from muniment.model.change import SetNice, SetRules, StashPages, UnstashPages
from muniment.model.network.jobs import (
    ChangesMade,
    NiceCall,
    PagesMoved,
    RuleExamples,
    RulesCall,
    RulesEffect,
    RulesView,
    StashCall,
    UnstashCall,
)
from muniment.model.network.lists import MOST_LISTED, AttemptList, PageList, ResultList
from muniment.model.page import PageState
from muniment.model.url import normalise_page
from muniment.rules.job_rules import replace_rules
from muniment.rules.rule_engine import MOST_NICE, Ruleset, check_rules
from muniment.tracker.db.database import Database
from muniment.tracker.jobs import store
from muniment.tracker.jobs.changes import amend_all
from muniment.tracker.queue.rejudge import dry_run
from muniment.tracker.views.pages import attempt_views, page_views, result_views, waiting_pages

__all__ = [
    "attempts",
    "nice",
    "pages",
    "results",
    "rules",
    "rules_effect",
    "set_rules",
    "stash",
    "tried_rules",
    "unstash",
]

_MOST_PAGE = (1 << 63) - 1
_PLACE = re.compile(r"([0-9]{1,18})-([0-9]{1,18})-([0-9]{1,4})")
_MOST_TEXT = 8_000


def pages(
    db: Database, job_id: int, *, url: str = "", state: str = "", after: int = 0, limit: int = MOST_LISTED
) -> PageList:
    """Pages of a job, in the order of their numbers; raises NotFoundError, and UsageError for an unknown state."""
    job_of(db, job_id)
    if state and state not in set(PageState):
        raise UsageError(f"there is no state {state[:60]!r}; the states are {', '.join(PageState)}")
    url = _normal(url) if url else ""
    found = page_views(db, job_id, url=url, state=state, after=min(after, _MOST_PAGE), limit=limit)
    return PageList(found, found[-1].id if len(found) == limit else None)


def attempts(db: Database, job_id: int, *, after: str = "", limit: int = MOST_LISTED) -> AttemptList:
    """Attempts of a job, in the order of their ends; raises NotFoundError."""
    job_of(db, job_id)
    match = _PLACE.fullmatch(after) if after not in ("", "0") else None
    if match is None and after not in ("", "0"):
        raise UsageError("after is not one that the list gave as next")
    place = (int(match[1]), int(match[2]), int(match[3])) if match else (0, 0, 0)
    found, last = attempt_views(db, job_id, place, limit)
    return AttemptList(found, "-".join(map(str, last)) if last else None)


def results(db: Database, job_id: int, *, url: str, attempt: int | None = None) -> ResultList:
    """Results of the page of a URL: of one attempt, or of all. Raises NotFoundError for the job."""
    job_of(db, job_id)
    return ResultList(result_views(db, job_id, _normal(url), attempt), None)


def rules(db: Database, job_id: int, version: int | None = None) -> RulesView:
    """The rules of a job, in order: those in force, or an older version. Raises NotFoundError."""
    job_of(db, job_id)
    newest, in_force = store.latest_rules(db, job_id)
    wanted = newest if version is None else version
    if not 0 < wanted <= newest:
        raise NotFoundError(f"job {job_id} has no version {wanted} of its rules: the latest is {newest}")
    if wanted == newest:
        return RulesView(newest, list(in_force.in_order))
    return RulesView(wanted, list(store.rules_of(db, job_id, wanted).in_order))


def set_rules(db: Database, job_id: int, call: RulesCall, who: str) -> ChangesMade:
    """Put other rules in place of those in force; ignore patterns stay. The same again changes nothing."""
    job = job_of(db, job_id)
    if store.latest_rules(db, job_id)[1].in_order == tuple(call.rules):
        return all_made(db, job, [])
    return all_made(db, job, [SetRules(who, tuple(call.rules))])


def tried_rules(db: Database, job_id: int, call: RulesCall) -> Ruleset:
    """The rules that are tried; raises NotFoundError without the job, and UsageError for rules that make no sense."""
    job_of(db, job_id)
    version, known = store.latest_rules(db, job_id)
    check_rules(in_order := tuple(call.rules))
    return store.ruleset_of(db, job_id, version + 1, replace_rules(known, in_order))


def rules_effect(db: Database, job_id: int, call: RulesCall) -> RulesEffect:
    """What other rules would change; nothing changes. Raises as `tried_rules`."""
    wanted = tried_rules(db, job_id, call)
    version, known = store.latest_rules(db, job_id)
    if known.in_order == tuple(call.rules):
        return RulesEffect(0, 0, 0, RuleExamples())
    found = dry_run(db, job_id, wanted, store.ruleset_of(db, job_id, version, known))
    examples = RuleExamples(found.skipped.examples, found.ready.examples, found.changed.examples)
    return RulesEffect(found.skipped.count, found.ready.count, found.changed.count, examples)


def nice(db: Database, job_id: int, call: NiceCall, who: str) -> PagesMoved:
    """Set the nice value of pages of a host, or whose URLs begin so; how many of these wait."""
    if call.nice is not None and abs(call.nice) > MOST_NICE:
        raise UsageError(f"nice must be between {-MOST_NICE:,} and {MOST_NICE:,}")
    _check_about(call.host, call.prefix)
    all_made(db, job_of(db, job_id), [SetNice(who, call.host, call.prefix, call.nice)])
    return PagesMoved(waiting_pages(db, job_id, call.host.lower(), call.prefix))


def stash(db: Database, job_id: int, call: StashCall, who: str) -> PagesMoved:
    """Put the pages aside that wait: of a host, or whose URLs begin so, or all."""
    _check_about(call.host, call.prefix)
    return _moved(db, job_id, StashPages(who, call.host.lower(), call.prefix))


def unstash(db: Database, job_id: int, call: UnstashCall, who: str) -> PagesMoved:
    """Take pages out of the stash: the first so many, or all."""
    if call.most is not None and not 0 <= call.most <= MOST_NUMBER:
        raise UsageError(f"most must be between 0 and {MOST_NUMBER:,}")
    return _moved(db, job_id, UnstashPages(who, call.most))


def _moved(db: Database, job_id: int, change: StashPages | UnstashPages) -> PagesMoved:
    [result] = amend_all(db, job_of(db, job_id), [change], now_ms())
    return PagesMoved(sum(map(abs, result.pending.values())))


def _check_about(host: str, prefix: str) -> None:
    check_line(host, "the host", _MOST_TEXT)
    check_line(prefix, "the prefix", _MOST_TEXT)


def _normal(text: str) -> str:
    url = normalise_page(text)
    if url is None:
        raise UsageError(f"{text[:200]!r} is not an http or https URL")
    return url
