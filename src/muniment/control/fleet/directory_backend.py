"""The backend of a crawl in a directory: its run that is under way, or its tracker. It has no number."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import UNSET

from muniment.control.fleet import jobs as fleet_jobs
from muniment.control.fleet import pages as fleet_pages
from muniment.control.fleet.values import written_values
from muniment.control.verbs.delivery import JobDirectory
from muniment.control.verbs.ignores import add_ignore, add_ignore_set, remove_ignore, remove_ignore_set
from muniment.control.verbs.job import abort, change_terms, fail, pause, resume
from muniment.control.verbs.rules import replace_rules
from muniment.control.verbs.settings import set_values
from muniment.control.verbs.stash import stash, unstash
from muniment.errors import UsageError
from muniment.model.change import ChangeMade
from muniment.model.job import JobTerms
from muniment.model.network.jobs import (
    ChangesMade,
    IgnoresCall,
    JobPatch,
    JobSpec,
    JobView,
    LinesAnswer,
    LinesCall,
    NiceCall,
    PagesMoved,
    RulesCall,
    RulesEffect,
    RulesView,
    StashCall,
    UnstashCall,
)
from muniment.model.network.lists import ChangeList, JobList, PageList
from muniment.tracker.connect import tracker_to_read
from muniment.tracker.db.database import Database
from muniment.tracker.jobs import store
from muniment.tracker.jobs.audit import settings_age

__all__ = ["DirectoryBackend"]


class DirectoryBackend:
    """Asks the crawl of a directory; the numbers of jobs that it is given mean nothing."""

    def __init__(self, job: JobDirectory) -> None:
        self._job = job

    def add(self, spec: JobSpec) -> JobView:
        """Jobs are made by `muniment crawl` there."""
        raise _not_here("make a job", "give `muniment crawl URL... -o DIR`")

    def lines(self, job_id: int, call: LinesCall) -> LinesAnswer:
        """Lists are read by `muniment fetch` there."""
        raise _not_here("send lines of a list", "give `muniment fetch SEED -o DIR` again")

    def list_jobs(self, state: str, after: int) -> JobList:
        """There is one."""
        raise _not_here("list jobs", "it holds one crawl; give `muniment job show -o DIR`")

    def view(self, job_id: int) -> JobView:
        """How the crawl stands."""
        with self._opened() as (db, mine):
            return fleet_jobs.whole_view(db, mine)

    def changes(self, job_id: int, after: int) -> ChangeList:
        """Its changes."""
        with self._opened() as (db, mine):
            return fleet_jobs.changes(db, mine, after=after)

    def pages(self, job_id: int, url: str) -> PageList:
        """The page of a URL."""
        with self._opened() as (db, mine):
            return fleet_pages.pages(db, mine, url=url)

    def change(self, job_id: int, patch: JobPatch) -> ChangesMade:
        """Change settings and terms."""
        if patch.nice is not UNSET or patch.tags is not UNSET or patch.max_slots is not UNSET:
            raise _not_here("set nice, tags and max_slots", "they divide pipelines over the jobs of a fleet")
        made: list[ChangeMade] = []
        if patch.settings:
            made += set_values(self._job, written_values(patch.settings))
        terms = JobTerms(drip=patch.drip, explanation=patch.explanation)
        if terms != JobTerms():
            made += change_terms(self._job, terms)
        return self._made(made)

    def ignores(self, job_id: int, call: IgnoresCall) -> ChangesMade:
        """Add and remove ignore patterns and sets, one after the other."""
        made: list[ChangeMade] = []
        for names, verb in (
            (call.add, add_ignore),
            (call.remove, remove_ignore),
            (call.add_sets, add_ignore_set),
            (call.remove_sets, remove_ignore_set),
        ):
            for name in names:
                made += verb(self._job, name)
        return self._made(made)

    def pause(self, job_id: int) -> JobView:
        """Pause the crawl."""
        pause(self._job)
        return self.view(0)

    def resume(self, job_id: int) -> JobView:
        """Have a paused or aborted crawl go on."""
        resume(self._job)
        return self.view(0)

    def abort(self, job_id: int) -> JobView:
        """End the crawl, as Ctrl-C does."""
        abort(self._job)
        return self.view(0)

    def fail(self, job_id: int, reason: str) -> JobView:
        """End a crawl that has failed."""
        fail(self._job, reason)
        return self.view(0)

    def rules(self, job_id: int, version: int | None = None) -> RulesView:
        """The rules in force, or an older version of them."""
        with self._opened() as (db, mine):
            return fleet_pages.rules(db, mine, version)

    def set_rules(self, job_id: int, call: RulesCall) -> ChangesMade:
        """Put other rules in place of those in force."""
        if self.rules(0).rules == call.rules:
            return self._made([])
        return self._made(replace_rules(self._job, call.rules))

    def rules_effect(self, job_id: int, call: RulesCall) -> RulesEffect:
        """What other rules would change."""
        with self._opened() as (db, mine):
            return fleet_pages.rules_effect(db, mine, call)

    def nice(self, job_id: int, call: NiceCall) -> PagesMoved:
        """The nice values of a crawl are settings of it."""
        raise _not_here("set a nice value", "give `muniment set nice=N --host H -o DIR`")

    def stash(self, job_id: int, call: StashCall) -> PagesMoved:
        """Put pages aside."""
        return _moved(stash(self._job, host=call.host.lower(), prefix=call.prefix))

    def unstash(self, job_id: int, call: UnstashCall) -> PagesMoved:
        """Take pages out of the stash."""
        return _moved(unstash(self._job, call.most))

    def _made(self, changes: list[ChangeMade] | tuple[ChangeMade, ...]) -> ChangesMade:
        with self._opened() as (db, mine):
            return ChangesMade(list(changes), settings_age(db, mine))

    @contextmanager
    def _opened(self) -> Iterator[tuple[Database, int]]:
        with tracker_to_read(self._job.tracker) as db:
            found = store.find_job(db)
            if found is None:
                raise UsageError(f"{self._job.out} has no crawl yet")
            yield db, found.job_id


def _moved(changes: tuple[ChangeMade, ...]) -> PagesMoved:
    # the audit has the number as text: `12 pages`
    return PagesMoved(sum(int(one.after.partition(" ")[0]) for one in changes))


def _not_here(what: str, remedy: str) -> UsageError:
    return UsageError(f"a crawl in a directory cannot {what}: {remedy}")
