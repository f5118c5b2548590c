"""Jobs of ArchiveBot's queues: a job of the tracker as its own pipelines would run it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from msgspec import structs

from muniment.control.fleet.job_specs import checked_spec, checked_url
from muniment.control.fleet.values import settings_of_values
from muniment.errors import UsageError
from muniment.model.job import JobOrigin, JobTerms
from muniment.model.network.jobs import JobSpec
from muniment.model.network.live import QueuedJob
from muniment.rules.assignment import tags_for
from muniment.rules.patterns import Patterns, expand
from muniment.settings.option_table import Settings
from muniment.tracker.db.database import Database
from muniment.tracker.jobs.shown import LiveStart, TakenBeforeError
from muniment.tracker.open import JobStart, StartPages, submit_job
from muniment.tracker.views.machines import registered

__all__ = ["admit"]


def admit(db: Database, queued: QueuedJob, epoch: str, now: int, *, allow_private: bool) -> int | None:
    """Make the job; its number, or None when it was made before.

    Raises UsageError for one that makes no sense, PrivateTargetError for a target that is not public.
    """
    url = checked_url(queued.url)
    spec = JobSpec(urls=[url], settings=_values(queued), ignores=_patterns(queued, url), explanation=queued.note)
    checked = checked_spec(spec, now, allow_private=allow_private)
    start = JobStart(
        origin=JobOrigin(queued.started_by, queued.started_in, queued.note),
        # as there, a job takes one slot
        terms=JobTerms(concurrency=1, tags=tags_for(queued.queue, registered(db))),
        taken=LiveStart(ident=queued.ident, url=queued.url, queued=queued.queued, epoch=epoch),
    )
    settings = _settings(checked.settings, queued, url)
    with suppress(TakenBeforeError):
        made = submit_job(db, checked.name, settings, StartPages(checked.urls), now, checked.rules, start)
        return made.job.job_id
    return None


def _values(queued: QueuedJob) -> dict[str, Any]:
    values: dict[str, Any] = {
        "no-robots": True,
        "no-parent": True,
        # the bot adds its own set of global patterns
        "no-global-ignores": True,
        "page-only": queued.shallow,
        "offsite-links": queued.offsite_links,
        "ignore-reports": "on" if queued.ignore_reports else "off",
        "user-agent": queued.user_agent or None,
        "delay": None if queued.delay is None else "{}-{}".format(*queued.delay),
        "per-host": queued.per_host or None,
    }
    return {name: value for name, value in values.items() if value is not None and _makes_sense(name, value)}


def _makes_sense(name: str, value: object) -> bool:
    """Whether a value may be given; the live plane puts others back, and says so."""
    with suppress(UsageError):
        settings_of_values({name: value}, "crawl")
        return True
    return False


def _patterns(queued: QueuedJob, url: str) -> list[str]:
    """The patterns that make sense; the others are refused when the live plane reads them."""
    found = []
    for pattern in queued.ignores:
        with suppress(UsageError):
            Patterns(expand(pattern, [url]))
            found.append(pattern)
    return found


def _settings(settings: Settings, queued: QueuedJob, url: str) -> Settings:
    # what a network cannot ask for, ArchiveBot's pipelines do for all jobs
    return structs.replace(settings, insecure=True, start_list=url if queued.listed else "")
