"""Opening a job: a new one with its start pages, or one that an earlier run left."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct, structs

from muniment.model.cookie import Cookie
from muniment.model.job import JobOrigin, JobTerms
from muniment.model.link import FoundAs
from muniment.model.mask import masked_header, masked_proxy
from muniment.rules.changes import kept_settings
from muniment.rules.job_rules import IgnoreSet, Rules, compile_ruleset, keep_changes
from muniment.rules.rule_engine import Ruleset, check_rules
from muniment.rules.scope import Scope
from muniment.settings.option_table import Settings
from muniment.tracker.db.database import Database, retrying_transaction
from muniment.tracker.hooks.queue import JobHooks
from muniment.tracker.jobs import store as jobs
from muniment.tracker.jobs.shown import LiveStart, begin_taken
from muniment.tracker.jobs.submissions import Submission, check_new, note_submission
from muniment.tracker.jobs.terms import begin_terms
from muniment.tracker.queue import rounds
from muniment.tracker.queue.admission import Admission
from muniment.tracker.queue.frontier import Frontier
from muniment.tracker.queue.guards.judgement import Judgement
from muniment.tracker.queue.guards.traps import Traps, guards_of
from muniment.tracker.queue.rejudge import rejudge
from muniment.tracker.queue.seeds import SeedStore, begin_list
from muniment.tracker.queue.sites import Sites
from muniment.tracker.stores.families import FamilyStore
from muniment.tracker.stores.hooks import HookStore
from muniment.tracker.stores.hosts import Hosts

__all__ = ["JobStart", "OpenJob", "StartPages", "load_frontier", "load_list", "open_job", "submit_job"]


class OpenJob(Struct, frozen=True):
    """A job ready to run."""

    job: jobs.Job
    frontier: Frontier
    settings: Settings
    """Those in force: what the command line gives, and what was changed while an earlier run was under way."""
    resumed: bool
    given_back: int
    """Pages that a killed run held and that wait again."""
    seeds: SeedStore | None = None
    """The list of a fetch."""
    hooks: JobHooks | None = None
    """Its hooks, where they are on."""


class StartPages(Struct, frozen=True):
    """The start of a job: start URLs, or a list that is read while it runs."""

    urls: Sequence[str] = ()
    """Normalised."""
    list_digest: bytes = b""

    @property
    def digest(self) -> bytes:
        """The digest that a resumed run compares."""
        return self.list_digest or jobs.start_digest(self.urls)


class JobStart(Struct, frozen=True, kw_only=True):
    """What a job of a fleet begins with beside its settings and start pages."""

    origin: JobOrigin = jobs.NOBODY
    terms: JobTerms = JobTerms()
    paused: bool = False
    cookies: Sequence[Cookie] = ()
    submission: Submission | None = None
    """The request that it comes by, when that is one over a network."""
    taken: LiveStart | None = None
    """The queue of Redis that it comes from."""


_AS_USUAL = JobStart()


def open_job(
    db: Database,
    name: str,
    settings: Settings,
    starts: StartPages,
    now: int,
    sets: tuple[IgnoreSet, ...] = (),
    *,
    retry_failed: bool = False,
    hooked: Callable[[str], bool] | None = None,
) -> OpenJob:
    """Make or resume the one job of an embedded tracker; with `retry_failed`, pages that failed get new tries.

    `hooked` says for which URLs hooks run.
    """
    job = jobs.find_job(db)
    given = jobs.JobInput(_without_secrets(settings), Rules(settings.include, settings.ignore, sets))
    if job is None:
        return _create(db, name, settings, given, starts, now, hooked=hooked)
    db.hold(job.job_id)
    before = jobs.given_of(db, job)
    version, known = jobs.latest_rules(db, job.job_id)
    rules = keep_changes(known, before.rules, given.rules)
    settings = kept_settings(jobs.settings_of(job), before.settings, settings)
    ruleset = jobs.ruleset_of(db, job.job_id, version + (rules != known), rules)
    if job.outcome == "failed":
        # before the sums of the job are read
        rounds.try_again(db, job.job_id, settings.tries)
    if retry_failed:
        # before its pages wait again: a run that is killed then must not find a job that is over
        jobs.reopen(db, job.job_id)
        rounds.try_failed_again(db, job.job_id, settings.tries)
    rounds.revive(db, job.job_id, settings)
    frontier, admission, _ = _build(db, job.job_id, settings, ruleset)
    given_back = frontier.recover()
    _keep_given(db, job, given, settings, rules if rules != known else None, now)
    if job.judged != ruleset.version:
        rejudge(db, job.job_id, ruleset)
    seeds = _seeds(db, job.job_id, settings, admission)
    hooks = _hooks(db, job.job_id, frontier, admission, hooked)
    return OpenJob(job, frontier, settings, True, given_back, seeds, hooks)


def submit_job(
    db: Database,
    name: str,
    settings: Settings,
    starts: StartPages,
    now: int,
    rules: Rules | None = None,
    start: JobStart = _AS_USUAL,
) -> OpenJob:
    """Make one more job of a tracker that has many; `rules` are those of its settings, unless others are given.

    Its settings hold no secrets. Raises UsageError for an invalid pattern, rule or tag, and SubmittedBeforeError for a
    request that made its job before.
    """
    given = jobs.JobInput(settings, Rules(settings.include, settings.ignore) if rules is None else rules)
    check_rules(given.rules.in_order)
    return _create(db, name, settings, given, starts, now, start)


def load_frontier(db: Database, job_id: int) -> Frontier:
    """The frontier of a job that was made before, as it stands: what pipelines hold stays theirs."""
    job = jobs.load_job(db, job_id)
    ruleset = jobs.ruleset_of(db, job_id, *jobs.latest_rules(db, job_id))
    return _build(db, job_id, jobs.settings_of(job), ruleset)[0]


def load_list(db: Database, job_id: int) -> SeedStore | None:
    """The list of a job that was made before; None for a job without one."""
    job = jobs.load_job(db, job_id)
    settings = jobs.settings_of(job)
    ruleset = jobs.ruleset_of(db, job_id, *jobs.latest_rules(db, job_id))
    return _seeds(db, job_id, settings, _build(db, job_id, settings, ruleset)[1])


@retrying_transaction
def _keep_given(
    db: Database, job: jobs.Job, given: jobs.JobInput, settings: Settings, rules: Rules | None, now: int
) -> None:
    """Keep what this run was given; `rules` when they are others than before."""
    with db.transaction():
        if rules is not None:
            jobs.save_rules(db, job.job_id, rules, now)
        jobs.save_settings(db, job.job_id, _without_secrets(settings))
        jobs.save_given(db, job.job_id, given)


def _without_secrets(settings: Settings) -> Settings:
    proxy = tuple(map(masked_proxy, settings.proxy))
    return structs.replace(settings, proxy=proxy, header=tuple(map(masked_header, settings.header)))


@retrying_transaction
def _create(
    db: Database,
    name: str,
    settings: Settings,
    given: jobs.JobInput,
    starts: StartPages,
    now: int,
    start: JobStart = _AS_USUAL,
    *,
    hooked: Callable[[str], bool] | None = None,
) -> OpenJob:
    urls = starts.urls
    ruleset = compile_ruleset(1, given.rules, urls)
    with db.transaction():
        if start.submission is not None:
            check_new(db, start.submission, now)
        job = jobs.create_job(db, name, given, starts.digest, now, start.origin)
        if start.submission is not None:
            note_submission(db, job.job_id, start.submission, now)
        if start.taken is not None:
            begin_taken(db, job.job_id, start.taken, now)
        begin_terms(db, job.job_id, start.terms, paused=start.paused)
        jobs.save_rules(db, job.job_id, given.rules, now)
        frontier, admission, sites = _build(db, job.job_id, settings, ruleset)
        if settings.start_list:
            admission.add_listed([(url, FoundAs.START_LIST) for url in urls])
        else:
            sites.begin(urls)
            admission.add_starts(urls)
        if start.cookies:
            frontier.cookies.keep(start.cookies)
        if settings.seed:
            begin_list(db, job.job_id)
    db.hold(job.job_id)
    seeds = _seeds(db, job.job_id, settings, admission)
    hooks = _hooks(db, job.job_id, frontier, admission, hooked)
    return OpenJob(job, frontier, settings, False, 0, seeds, hooks)


def _hooks(
    db: Database, job_id: int, frontier: Frontier, admission: Admission, hooked: Callable[[str], bool] | None
) -> JobHooks | None:
    if hooked is None:
        return None
    frontier.hooks = HookStore(db, job_id, hooked)
    return JobHooks(db, job_id, frontier.hooks, admission)


def _seeds(db: Database, job_id: int, settings: Settings, admission: Admission) -> SeedStore | None:
    return SeedStore(db, job_id, admission) if settings.seed else None


def _build(db: Database, job_id: int, settings: Settings, ruleset: Ruleset) -> tuple[Frontier, Admission, Sites]:
    scope = Scope(
        settings.level, settings.page_only, settings.offsite_links, settings.max_redirects, listed=bool(settings.seed)
    )
    hosts = Hosts(db, job_id)
    guards = None
    if not scope.listed:
        families = FamilyStore(db, job_id)
        guards = Judgement(db, job_id, families, Traps(db, job_id, families, guards_of(settings)), settings)
    admission = Admission(db, job_id, scope, ruleset, hosts, settings.tries, guards.traps if guards else None)
    sites = Sites(db, job_id, scope, hosts, admission, no_parent=settings.no_parent)
    frontier = Frontier(db, job_id, scope, admission, sites, hosts, settings.rounds)
    frontier.guards = guards
    return frontier, admission, sites
