"""What pages ask of a fleet's jobs, and have changed: by the tracker, for one visitor."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from pathlib import Path

from msgspec import structs
from msgspec.json import encode

from muniment.clock import monotonic, now_ms
from muniment.control.fleet import jobs, pages, pipelines
from muniment.control.fleet.follow import JobFollower, followed
from muniment.control.fleet.processes import list_processes
from muniment.control.process_pages import ProcessPage
from muniment.control.processes import ProcessView, views_of
from muniment.control.queue import job_waits, queue_view
from muniment.control.runs.answer_cache import AnswerCache
from muniment.control.runs.log import LogNews, log_filter
from muniment.control.settings_in_force import settings_in_force
from muniment.errors import NotFoundError
from muniment.model.network.captures import TimeBucket
from muniment.model.network.dashboard import (
    HostStanding,
    IgnoreEffect,
    JobCard,
    LogPart,
    LogText,
    QueueView,
    RestartView,
    SettingValue,
    UrlStanding,
    card_of,
)
from muniment.model.network.jobs import ChangesMade, IgnoresCall, JobPatch, JobSpec, JobView
from muniment.model.network.lists import MOST_LISTED, ChangeList, ChangeView, PageList, PageView, ResultView
from muniment.model.network.pipelines import PipelineView
from muniment.model.page import PageState
from muniment.model.process import Machine
from muniment.rules.retry import is_failed
from muniment.tracker.db.database import Database
from muniment.tracker.jobs import store
from muniment.tracker.jobs.submissions import Submission
from muniment.tracker.views.attempt_search import newest_by_host, newest_over_time
from muniment.tracker.views.jobs import newest_changes, waiting_counts
from muniment.tracker.views.log_lines import lines_until
from muniment.tracker.views.waiting import first_url, host_standings

__all__ = ["DashboardBackend", "FleetMemory"]

_RATE_S = 10.0
_FRESH_S = 1.0
_MOST_JOBS = 5_000


class FleetMemory:
    """What is kept between looks: shared by all visitors of a server."""

    def __init__(self) -> None:
        self.cards: tuple[float, list[JobCard]] = (-_FRESH_S, [])
        self.urls: dict[int, str] = {}
        self.marks: dict[int, deque[tuple[float, int]]] = {}
        self.followers: OrderedDict[int, JobFollower] = OrderedDict()
        self.kept = AnswerCache()

    def count(self, db: Database, job: int) -> dict[str, int]:
        """The pages of a job that are not done, perhaps as they were."""
        return self.kept.of(("waiting", job), lambda: waiting_counts(db, job))

    def rate(self, job: int, done: int) -> float:
        """Pages a second over the last ten seconds of looking."""
        now, marks = monotonic(), self.marks.setdefault(job, deque())
        while marks and now - marks[0][0] > _RATE_S:
            marks.popleft()
        marks.append((now, done))
        since, before = marks[0]
        return max(0.0, (done - before) / (now - since)) if now > since else 0.0


class DashboardBackend:
    """Answers for all jobs of a tracker; made for each question."""

    def __init__(self, db: Database, memory: FleetMemory, who: str, *, allow_private: bool, all_jobs: bool) -> None:
        """`all_jobs`: the visitor may change jobs of others, too."""
        self._db, self._memory, self._who = db, memory, who
        self._allow_private, self._all = allow_private, all_jobs

    # -- looking

    def jobs(self) -> list[JobCard]:
        """All jobs, the newest first."""
        at, found = self._memory.cards
        if monotonic() - at >= _FRESH_S:
            found = [self._card(view) for view in self._views()][::-1]
            self._memory.cards = monotonic(), found
        return found

    def _views(self) -> Iterator[JobView]:
        after: int | None = 0
        while after is not None and after < _MOST_JOBS * 1000:
            part = jobs.list_jobs(self._db, after=after, limit=MOST_LISTED, count=self._memory.count)
            yield from part.jobs
            after = part.next

    def card(self, job: int) -> JobCard:
        """A job in one line."""
        return self._card(jobs.view(self._db, job, self._memory.count))

    def _card(self, view: JobView) -> JobCard:
        memory = self._memory
        url = memory.urls.get(view.id) or first_url(self._db, view.id)
        if url:
            memory.urls[view.id] = url
        card = card_of(view, url, running=True, rate=memory.rate(view.id, view.pages.captured + view.pages.failed))
        return card if card.reason or card.state != "running" else structs.replace(card, reason=self._waits(view))

    def _waits(self, view: JobView) -> str:
        """What a job waits for, in words."""
        if not view.pipelines:
            tags = f" with one of the tags {', '.join(view.tags)}" if view.tags else ""
            return f"it waits: no pipeline{tags} works at it"
        return job_waits(self._db, view, now_ms())

    def view(self, job: int) -> JobView:
        """How a job stands."""
        return jobs.view(self._db, job)

    def changes(self, job: int, after: int) -> ChangeList:
        """What was changed, the oldest first."""
        return jobs.changes(self._db, job, after=after)

    def newest_changes(self, job: int, most: int) -> list[ChangeView]:
        """What was changed last, the newest first."""
        return newest_changes(self._db, jobs.job_of(self._db, job).job_id, most)

    def restart(self, job: int) -> RestartView | None:
        """Pipelines take it up."""
        return None

    def settings(self, job: int) -> list[SettingValue]:
        """The settings that may be changed, after the job's turn and its share of the fleet."""
        view = jobs.view(self._db, job, self._memory.count)
        slots = "none" if view.max_slots is None else str(view.max_slots)
        terms = [SettingValue("max-slots", slots, _SLOTS_HELP), SettingValue("nice", str(view.nice), _NICE_HELP)]
        return terms + settings_in_force(self._db, view.id, of_machine=False)

    def pages(self, job: int, url: str) -> PageList:
        """The page of a URL."""
        return pages.pages(self._db, job, url=url)

    def why(self, job: int, url: str) -> UrlStanding:
        """What became of a URL, by the tracker."""
        found = pages.pages(self._db, job, url=url).pages
        if not found:
            return UrlStanding(url=url, verdict="never seen", text="no page whose links are followed leads to it")
        [page] = found
        told = page.reason or page.error or (f"status {page.status}" if page.status else "waits for its turn")
        tries = f"{page.attempts} {'try' if page.attempts == 1 else 'tries'} made, {page.attempts_remaining} remain"
        where = f", by {page.pipeline}" if page.pipeline else ""
        return UrlStanding(url=page.url, verdict=_verdict(page), text=f"{told}; {tries}{where}")

    def queue(self, job: int, pattern: str) -> QueueView:
        """What is in flight and what comes next."""
        return queue_view(self._db, jobs.job_of(self._db, job).job_id, pattern)

    def hosts(self, job: int, after: str, most: int) -> list[HostStanding]:
        """Hosts after a name."""
        mine = jobs.job_of(self._db, job).job_id
        return self._memory.kept.of(("hosts", mine, after), lambda: host_standings(self._db, mine, after, most))

    def host_sums(self, job: int, names: list[str]) -> dict[str, tuple[int, int]]:
        """Attempts and bad ones of hosts, of the newest of the job."""
        mine = jobs.job_of(self._db, job).job_id
        found = self._memory.kept.of(("sums", mine), lambda: newest_by_host(self._db, mine))
        return {name: found[name] for name in names if name in found}

    def ignores(self, job: int) -> list[tuple[str, str]]:
        """The set and the text of each pattern in force."""
        mine = jobs.job_of(self._db, job).job_id
        return list(store.latest_rules(self._db, mine)[1].all_ignores())

    def ignore_effect(self, job: int, pattern: str) -> IgnoreEffect:
        """What an ignore pattern would take."""
        return jobs.effect_of_ignore(self._db, job, pattern)

    def buckets(self, job: int) -> tuple[int, list[TimeBucket]]:
        """What came in last, over time."""
        mine = jobs.job_of(self._db, job).job_id
        return self._memory.kept.of(("plots", mine), lambda: newest_over_time(self._db, mine))

    def results(self, job: int, url: str) -> list[ResultView]:
        """What the attempts at a URL saved."""
        return pages.results(self._db, job, url=url).results

    # -- the log

    def log(self, job: int, level: str, pattern: str, before: int | None, most: int) -> LogPart:
        """Attempts and changes; `before` is a moment."""
        wanted, mine = log_filter(level, pattern), jobs.job_of(self._db, job).job_id
        found = lines_until(self._db, mine, before, most * 5)
        shown = [(place, line) for place, line in found if wanted(line)][:most]
        # what ended at the moment of the last one is not cut apart
        oldest = shown[-1][0][0] if len(shown) == most else (found[-1][0][0] if len(found) >= most * 5 else None)
        if oldest is not None and shown and shown[0][0][0] != oldest and len(shown) == most:
            shown = [one for one in shown if one[0][0] != oldest]
            oldest += 1
        end = followed(self._memory.followers, mine).end(self._db, mine) if before is None else 0
        return LogPart([line for _, line in reversed(shown)], oldest, end)

    def log_end(self, job: int) -> int:
        """Where the log ends now."""
        mine = jobs.job_of(self._db, job).job_id
        return followed(self._memory.followers, mine).end(self._db, mine)

    def news(self, job: int, at: int, level: str, pattern: str, most: int) -> LogNews:
        """What came after a place of the log."""
        mine = jobs.job_of(self._db, job).job_id
        return followed(self._memory.followers, mine).news(self._db, mine, at, log_filter(level, pattern), most)

    def log_file(self, job: int) -> Path | None:
        """There is none."""
        return None

    def log_text(self, job: int, after: str) -> LogText:
        """Attempts, one a line, in the order of their ends."""
        found = pages.attempts(self._db, job, after=after)
        return LogText(b"".join(encode(one) + b"\n" for one in found.attempts), found.next)

    # -- changing

    def pause(self, job: int) -> None:
        """Pause a job."""
        jobs.pause(self._db, self._mine(job), self._who)

    def resume(self, job: int) -> None:
        """Have a paused or aborted job go on."""
        jobs.resume(self._db, self._mine(job), self._who)

    def abort(self, job: int) -> None:
        """End a job."""
        jobs.abort(self._db, self._mine(job), self._who)

    def change(self, job: int, patch: JobPatch) -> ChangesMade:
        """Change settings and terms."""
        return jobs.change(self._db, self._mine(job), patch, self._who)

    def change_ignores(self, job: int, call: IgnoresCall) -> ChangesMade:
        """Add and remove ignore patterns and sets."""
        return jobs.ignores(self._db, self._mine(job), call, self._who)

    def begin(self, urls: list[str], note: str, options: list[tuple[str, str]]) -> int:
        """Make a job."""
        settings = {name: value for name, value in options if value.strip() and name not in ("ignore", "ignore-sets")}
        given = {name: [value for one, value in options if one == name and value.strip()] for name in _PATTERNS}
        sets = [name for text in given["ignore-sets"] for name in text.split(",")]
        spec = JobSpec(urls=urls, settings=settings, ignores=given["ignore"], ignore_sets=sets, explanation=note)
        made, _ = jobs.submit(self._db, spec, Submission(self._who, None), allow_private=self._allow_private)
        return made.id

    def _mine(self, job: int) -> int:
        if not self._all:
            jobs.check_own(self._db, job, self._who)
        self._memory.cards = -_FRESH_S, []
        self._memory.kept.forget()
        return job

    # -- processes and pipelines

    def pipelines(self) -> list[PipelineView]:
        """All pipelines."""
        return pipelines.list_pipelines(self._db).pipelines

    def processes(self, kind: str, status: str, machine: str, text: str) -> tuple[list[ProcessView], list[Machine]]:
        """The processes that pipelines report."""
        rows = list_processes(self._db, machine=machine, kind=kind, status=status).processes
        fitting = [row for row in rows if text in " ".join(row.cmd)]
        return [views_of([row])[0] for row in fitting], []

    def process(self, process_id: str) -> ProcessPage:
        """A process that a pipeline reports, in its tree."""
        rows = list_processes(self._db).processes
        found = [row for row in rows if row.id == process_id]
        if not found:
            raise NotFoundError(f"there is no process {process_id[:40]}")
        tree = views_of([row for row in rows if row.root_id == found[0].root_id])
        return ProcessPage(process_id, tree, [], "its output is on the machine of its pipeline")


def _verdict(page: PageView) -> str:
    """In the words of `muniment why`."""
    if page.state != PageState.READY:
        return "in flight" if page.state == PageState.CLAIMED else page.state.lower()
    if page.attempts_remaining:
        return "queued" if page.in_scope else "out of scope"
    return "failed" if is_failed(page.status, page.error) else "captured"


_SLOTS_HELP = "Most slots of pipelines that work at it at once; 0 pauses it, none: no limit."
_NICE_HELP = "Jobs with a lower one go first."
_PATTERNS = ("ignore", "ignore-sets")
