"""What can be asked of runs in directories, and changed about them, by their numbers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import structs

from muniment.clock import monotonic, now_ms
from muniment.control.captures import (
    host_sums,
    payload_of,
    recent_urls,
    record_of,
    search_captures,
    time_buckets,
)
from muniment.control.fleet import jobs as fleet_jobs
from muniment.control.fleet import pages as fleet_pages
from muniment.control.fleet.directory_backend import DirectoryBackend
from muniment.control.ignore_effect import ignore_effect
from muniment.control.ignores import in_force
from muniment.control.process_pages import ProcessPage, end_process, process_page, processes_that_fit
from muniment.control.processes import ProcessView
from muniment.control.queue import job_waits, queue_view
from muniment.control.runs.answer_cache import AnswerCache
from muniment.control.runs.folder import RunFolder, is_running
from muniment.control.runs.known_runs import command_of_run
from muniment.control.runs.log import (
    LogNews,
    ended_in_words,
    lines_before,
    log_filter,
    log_size,
    news_since,
    standing_pause,
)
from muniment.control.runs.page_artifacts import HooksOfPage, artifacts_of_page, hook_file, picture_of
from muniment.control.runs.replays import Replays
from muniment.control.runs.run_files import owner_of, stamp_of, unread_card
from muniment.control.runs.start import go_on, start_crawl
from muniment.control.settings_in_force import settings_in_force
from muniment.control.tracker_location import tracker_place
from muniment.control.verbs.delivery import JobDirectory
from muniment.control.why import why
from muniment.errors import MunimentError, NotFoundError, TrackerError, UsageError
from muniment.model.network.captures import CaptureFilter, CaptureRow, PageArtifacts, TimeBucket
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
from muniment.model.network.jobs import ChangesMade, IgnoresCall, JobPatch, JobView
from muniment.model.network.lists import ChangeList, ChangeView, PageList, ResultView
from muniment.model.network.pipelines import PipelineView
from muniment.model.process import Machine
from muniment.model.url import url_key
from muniment.procs.lock import EVENTS_FILE
from muniment.tracker.connect import tracker_to_read
from muniment.tracker.db.database import Database
from muniment.tracker.jobs import store
from muniment.tracker.stores.hooks import HookStore
from muniment.tracker.views.jobs import CountWaiting, newest_changes, waiting_counts
from muniment.tracker.views.waiting import first_url, host_standings

__all__ = ["RunsBackend"]

_RATE_S = 10.0
_PLOTS_S = 5.0
_RECENT = 1_000
_BUDGET_S = 0.3
"""For runs that were never looked at."""
_FRESH_S = 0.9
"""How long what was seen of a run that goes on is shown again."""


_NO_ROW = "no row of its process is kept"


class _Seen:
    """A run as it was when it was looked at last."""

    def __init__(self) -> None:
        self.card: JobCard | None = None
        self.at = -_FRESH_S
        self.mark: object = None
        self.marks: deque[tuple[float, int]] = deque()

    def rate(self, now: float, done: int) -> float:
        """Pages a second over the last ten seconds of looking."""
        while self.marks and now - self.marks[0][0] > _RATE_S:
            self.marks.popleft()
        self.marks.append((now, done))
        since, before = self.marks[0]
        return max(0.0, (done - before) / (now - since)) if now > since else 0.0


class RunsBackend:
    """Answers for all runs of a folder; used by one thread at a time."""

    def __init__(self, folder: RunFolder, who: str, home: Path) -> None:
        """`home`: where the rows of processes are."""
        self.folder, self._who, self._home = folder, who, home
        self._seen: dict[int, _Seen] = {}
        self._replays, self._kept = Replays(), AnswerCache()
        self._buckets: dict[int, tuple[float, object, tuple[int, list[TimeBucket]]]] = {}

    # -- looking

    def jobs(self) -> list[JobCard]:
        """All runs, the newest first."""
        runs = self.folder.runs()
        for gone in set(self._seen) - set(runs):
            del self._seen[gone]
        until = monotonic() + _BUDGET_S
        return [self._card_in_time(number, out, until) for number, out in reversed(runs.items())]

    def _card_in_time(self, number: int, out: Path, until: float) -> JobCard:
        """A run in one line; one that was never looked at is looked at the next time, when there are too many."""
        if number in self._seen or monotonic() < until:
            return self._card(number, out)
        return unread_card(number, out, "it is looked at in a moment", running=is_running(out))

    def card(self, job: int) -> JobCard:
        """A run in one line; raises NotFoundError."""
        return self._card(job, self.folder.find(job))

    def view(self, job: int) -> JobView:
        """How a run stands."""
        found = self.door(job).view(0)
        return structs.replace(found, id=job)

    def changes(self, job: int, after: int) -> ChangeList:
        """What was changed, the oldest first."""
        return self.door(job).changes(0, after)

    def newest_changes(self, job: int, most: int) -> list[ChangeView]:
        """What was changed last, the newest first."""
        with self._opened(job) as (db, mine):
            return newest_changes(db, mine, most)

    def restart(self, job: int) -> RestartView | None:
        """How a run that ended goes on; None while it runs."""
        out = self.folder.find(job)
        if is_running(out):
            return None
        command = command_of_run(self._home, out)
        return RestartView(command.text, command.lack) if command else RestartView("", _NO_ROW)

    def settings(self, job: int) -> list[SettingValue]:
        """The settings that may be changed."""
        with self._opened(job) as (db, mine):
            return settings_in_force(db, mine, of_machine=True)

    def pages(self, job: int, url: str) -> PageList:
        """The page of a URL."""
        return self.door(job).pages(0, url)

    def why(self, job: int, url: str) -> UrlStanding:
        """What `muniment why` says."""
        out = self.folder.find(job)
        found = why(out, tracker_place(out), url, parents=False)
        return UrlStanding(found.url, found.verdict, found.text)

    def queue(self, job: int, pattern: str) -> QueueView:
        """What is in flight and what comes next; with a pattern, what of it matches."""
        with self._opened(job) as (db, mine):
            return queue_view(db, mine, pattern)

    def hosts(self, job: int, after: str, most: int) -> list[HostStanding]:
        """Hosts after a name."""
        with self._opened(job) as (db, mine):
            return self._kept.of(("hosts", job, after), lambda: host_standings(db, mine, after, most))

    def host_sums(self, job: int, names: list[str]) -> dict[str, tuple[int, int]]:
        """Rows and bad rows of hosts."""
        out = self.folder.find(job)
        return self._kept.of(("sums", job, *names), lambda: host_sums(out, names))

    def ignore_effect(self, job: int, pattern: str) -> IgnoreEffect:
        """What an ignore pattern would take."""
        recent = recent_urls(self.folder.find(job), _RECENT)
        with self._opened(job) as (db, mine):
            return ignore_effect(db, mine, pattern, recent)

    def buckets(self, job: int) -> tuple[int, list[TimeBucket]]:
        """What came in, over time; of a run that goes on, as it was some seconds ago at most."""
        out, now = self.folder.find(job), monotonic()
        at, mark, found = self._buckets.get(job, (-_PLOTS_S, None, (0, [])))
        fresh = stamp_of(out / EVENTS_FILE)
        if mark != fresh and now - at >= _PLOTS_S:
            found = time_buckets(out)
            self._buckets[job] = now, fresh, found
        return found

    def captures(self, wanted: CaptureFilter) -> list[CaptureRow]:
        """A page of captures, and one more."""
        runs = self.folder.runs() if wanted.job is None else {wanted.job: self.folder.find(wanted.job)}
        return search_captures(list(runs.items()), wanted)

    def record(self, job: int, file: str, offset: int) -> Iterator[bytes]:
        """A record as it is stored."""
        return record_of(self.folder.find(job), file, offset)

    def payload(self, job: int, file: str, offset: int) -> Iterator[bytes]:
        """The payload of a capture."""
        return payload_of(self.folder.find(job), file, offset)

    def made(self, job: int, url: str) -> PageArtifacts:
        """What a browser and hooks made of a page."""
        return artifacts_of_page(self.folder.find(job), url, self._hooks(job, url))

    def picture(self, job: int, file: str, offset: int) -> tuple[str, Iterator[bytes]]:
        """The media type and the bytes of a picture that a browser made."""
        return picture_of(self.folder.find(job), file, offset)

    def hook_file(self, job: int, path: str, url: str) -> Iterator[bytes]:
        """The bytes of a file that hooks of a page left."""
        return hook_file(self.folder.find(job), path, self._hooks(job, url))

    def _hooks(self, job: int, url: str) -> HooksOfPage | None:
        """What hooks of a page did, while the run goes on."""
        if not is_running(self.folder.find(job)):
            return None
        with self._opened(job) as (db, mine):
            return HookStore(db, mine).of_page(url_key(url))

    def view_address(self, job: int, url: str, at: int) -> str:
        """Where the capture of a URL nearest to a moment is shown."""
        return self._replays.address(self.folder.find(job), url, at)

    def close(self) -> None:
        """End what was started to look at captures."""
        self._replays.close()

    def results(self, job: int, url: str) -> list[ResultView]:
        """What the attempts at a URL saved."""
        with self._opened(job) as (db, mine):
            return fleet_pages.results(db, mine, url=url).results

    # -- the log

    def log(self, job: int, level: str, pattern: str, before: int | None, most: int) -> LogPart:
        """A part of the log."""
        return lines_before(self.folder.find(job), before, log_filter(level, pattern), most)

    def log_end(self, job: int) -> int:
        """Where the log ends now."""
        return log_size(self.folder.find(job))

    def news(self, job: int, at: int, level: str, pattern: str, most: int) -> LogNews:
        """What came after a place of the log."""
        return news_since(self.folder.find(job), at, log_filter(level, pattern), most)

    def log_file(self, job: int) -> Path:
        """The log as a file."""
        return self.folder.find(job) / EVENTS_FILE

    def log_text(self, job: int, after: str) -> LogText:
        """It is a file."""
        raise NotFoundError(f"the log of job {job} is a file")

    # -- changing

    def pause(self, job: int) -> None:
        """Pause a run."""
        self.door(job).pause(0)
        self._forget(job)

    def resume(self, job: int) -> None:
        """Have a paused or aborted run go on; one that ended begins again by its own command, if that is kept."""
        go_on(self.folder.find(job), self.door(job), self._home)
        self._forget(job)

    def abort(self, job: int) -> None:
        """End a run, and its job."""
        self.door(job).abort(0)
        self._forget(job)

    def change(self, job: int, patch: JobPatch) -> ChangesMade:
        """Change settings and the note."""
        made = self.door(job).change(0, patch)
        self._forget(job)
        return made

    def change_ignores(self, job: int, call: IgnoresCall) -> ChangesMade:
        """Add and remove ignore patterns and sets."""
        made = self.door(job).ignores(0, call)
        self._forget(job)
        return made

    def ignores(self, job: int) -> list[tuple[str, str]]:
        """The set and the text of each pattern in force."""
        return [(one.set, one.pattern) for one in in_force(self._directory(job).tracker)]

    def begin(self, urls: list[str], note: str, options: list[tuple[str, str]]) -> int:
        """Begin a crawl in a directory of its own; its number."""
        return self.folder.number_of(start_crawl(self.folder.home, urls, note, options))

    # -- processes

    def pipelines(self) -> list[PipelineView]:
        """There are none."""
        return []

    def processes(self, kind: str, status: str, machine: str, text: str) -> tuple[list[ProcessView], list[Machine]]:
        """The newest processes that fit, and all machines."""
        return processes_that_fit(self._home, kind, status, machine, text)

    def process(self, process_id: str) -> ProcessPage:
        """A process with its tree and output."""
        return process_page(self._home, process_id)

    def kill(self, process_id: str) -> None:
        """End a process and all below it."""
        end_process(self._home, process_id)

    # -- inside

    def _forget(self, job: int) -> None:
        self._kept.forget()
        if job in self._seen:
            self._seen[job].mark = None
            self._seen[job].at = -_FRESH_S

    def _directory(self, job: int) -> JobDirectory:
        out = self.folder.find(job)
        return JobDirectory(out, tracker_place(out), self._who)

    def door(self, job: int) -> DirectoryBackend:
        """The run itself, for what operators alone ask of it."""
        return DirectoryBackend(self._directory(job))

    @contextmanager
    def _opened(self, job: int) -> Iterator[tuple[Database, int]]:
        place, out = self._directory(job).tracker, self.folder.find(job)
        if not place.database and not place.file.is_file() and is_running(out):
            raise TrackerError("the run begins: its tracker is not there yet; look again in a moment")
        with tracker_to_read(place) as db:
            found = store.find_job(db)
            if found is None:
                raise UsageError(f"{out} has no crawl yet")
            yield db, found.job_id

    def _card(self, number: int, out: Path) -> JobCard:
        seen, now = self._seen.setdefault(number, _Seen()), monotonic()
        if seen.card is not None and now - seen.at < _FRESH_S:
            return seen.card
        running = is_running(out)
        mark = (
            running,
            stamp_of(out / EVENTS_FILE),
            stamp_of(out / "tracker.sqlite"),
            stamp_of(out / "tracker.sqlite-wal"),
        )
        if seen.card is None or running or mark != seen.mark:
            seen.card, seen.mark = self._looked(number, out, seen, running=running), mark
        seen.at = now
        return seen.card

    def _counted(self, number: int) -> CountWaiting:
        return lambda db, mine: self._kept.of(("waiting", number), lambda: waiting_counts(db, mine))

    def _looked(self, number: int, out: Path, seen: _Seen, *, running: bool) -> JobCard:
        try:
            with self._opened(number) as (db, mine):
                view, url = fleet_jobs.view(db, mine, self._counted(number)), first_url(db, mine)
                waits = job_waits(db, view, now_ms(), standing_pause(out)) if running else ended_in_words(out)
        except NotFoundError:
            raise
        except (MunimentError, OSError) as error:
            return unread_card(number, out, str(error), running=running)
        card = card_of(view, url, running=running, rate=seen.rate(monotonic(), view.pages.captured + view.pages.failed))
        reason = card.reason or (waits if card.state in ("running", "stopped") else "")
        return structs.replace(card, id=number, reason=reason, by=card.by or owner_of(out))
