"""Opening a job: a new one with its start pages, or one that an earlier run left."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct, structs

from muniment.rules.patterns import Patterns, expand
from muniment.rules.scope import Scope
from muniment.settings import Settings, redact
from muniment.tracker import jobs
from muniment.tracker.admission import Admission, Ruleset
from muniment.tracker.engine import Database
from muniment.tracker.frontier import Frontier
from muniment.tracker.hosts import Hosts
from muniment.tracker.rejudge import rejudge
from muniment.tracker.sites import Sites

__all__ = ["Opened", "job_settings", "open_job"]


class Opened(Struct, frozen=True):
    """A job ready to run."""

    job: jobs.Job
    frontier: Frontier
    resumed: bool
    given_back: int
    """Pages that a killed run held and that wait again."""


def job_settings(settings: Settings) -> str:
    """The settings as the tracker keeps them: JSON without secrets."""
    proxy = settings.proxy and redact(settings.proxy)
    headers = tuple(redact(header) for header in settings.header)
    return msgspec.json.encode(structs.replace(settings, proxy=proxy, header=headers)).decode()


def open_job(db: Database, name: str, settings: Settings, urls: Sequence[str], now: int) -> Opened:
    """Make or resume the one job of an embedded tracker; `urls` are normalised start URLs."""
    job = jobs.find_job(db)
    if job is None:
        return _create(db, name, settings, urls, now)
    rules = jobs.Rules(settings.include, settings.ignore)
    version, known = jobs.latest_rules(db, job.job_id)
    changed = known != rules
    ruleset = _ruleset(version + changed, rules, jobs.start_urls(db, job.job_id))
    if job.outcome == "failed":
        # before the sums of the job are read
        jobs.try_again(db, job.job_id, settings.tries)
    frontier, _, _ = _build(db, job.job_id, settings, ruleset)
    given_back = frontier.recover()
    if changed:
        # kept when every page is judged, those that a killed run held included: a crash in between judges again
        rejudge(db, job.job_id, ruleset)
        with db.transaction():
            jobs.save_rules(db, job.job_id, rules, now)
    jobs.save_settings(db, job.job_id, job_settings(settings))
    return Opened(job, frontier, True, given_back)


def _create(db: Database, name: str, settings: Settings, urls: Sequence[str], now: int) -> Opened:
    rules = jobs.Rules(settings.include, settings.ignore)
    ruleset = _ruleset(1, rules, urls)
    with db.transaction():
        job = jobs.create_job(db, name, job_settings(settings), jobs.start_digest(urls), now)
        jobs.save_rules(db, job.job_id, rules, now)
        frontier, admission, sites = _build(db, job.job_id, settings, ruleset)
        for url in urls:
            sites.add(url)
        admission.add_starts(urls)
    return Opened(job, frontier, False, 0)


def _ruleset(version: int, rules: jobs.Rules, urls: Sequence[str]) -> Ruleset:
    ignore = [made for pattern in rules.ignore for made in expand(pattern, urls)]
    include = [made for pattern in rules.include for made in expand(pattern, urls)]
    return Ruleset(version, Patterns(include), Patterns(ignore))


def _build(db: Database, job_id: int, settings: Settings, ruleset: Ruleset) -> tuple[Frontier, Admission, Sites]:
    scope = Scope(settings.level, settings.page_only, settings.offsite_links, settings.max_redirects)
    hosts = Hosts(db, job_id)
    admission = Admission(db, job_id, scope, ruleset, hosts, settings.tries)
    sites = Sites(db, job_id, scope, hosts, admission, no_parent=settings.no_parent)
    return Frontier(db, job_id, scope, admission, sites, hosts), admission, sites
