"""Several processes work on one job of a PostgreSQL tracker at once: killed, lapsed, and finding the same URLs."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from caller import HOSTS, address, links_of
from fleet_harness import Fleet
from sqlalchemy import func, select, text
from tests.support.pages import finish_batch, finished
from tracker_harness import A, site

from forked import Forked
from muniment.errors import BusyError, TrackerError
from muniment.model.change import AddIgnore, ResumeJob, SetValues
from muniment.model.pipeline import Pipeline, SessionEnding
from muniment.model.place import TrackerPlace
from muniment.tracker.connect import opened
from muniment.tracker.fleet.dispatch import Dispatch
from muniment.tracker.fleet.pipelines import add_pipeline
from muniment.tracker.jobs import store
from muniment.tracker.jobs.changes import amend
from muniment.tracker.schema.pipelines import sessions
from muniment.tracker.schema.tables import attempts, job_sums, pages, relations
from muniment.tracker.stores.children import unpack_children

CALLERS, SIZE = 8, 300


@pytest.fixture
def fleet(fleet_database: str, tmp_path: Path) -> Iterator[Fleet]:
    with closing(Fleet(TrackerPlace(tmp_path, fleet_database))) as made:
        yield made


class Callers:
    """Processes, each with the pipeline of its name."""

    def __init__(self, fleet: Fleet, directory: Path) -> None:
        self.fleet, self.directory = fleet, directory
        self.running: dict[str, subprocess.Popen[str]] = {}
        for number in range(CALLERS):
            add_pipeline(fleet.db, Pipeline(f"p{number}"), 1)

    def start(self, name: str) -> None:
        program = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import caller; caller.main()"
        arguments = self.fleet.place.database, str(self.directory), name, str(self.directory / f"{name}.log"), str(SIZE)
        self.running[name] = Forked(
            [sys.executable, "-c", program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.kill()
        process.communicate()

    def claims(self) -> list[str]:
        return [line for log in self.directory.glob("p*.log") for line in log.read_text().splitlines()]

    def wait_for(self, count: int) -> None:
        end = time.monotonic() + 120
        while len(self.claims()) < count:
            assert time.monotonic() < end, f"{len(self.claims())} claims"
            time.sleep(0.02)

    def complaints(self) -> list[str]:
        """What they said when they were done: nothing, if all went well."""
        said = [(process.communicate(timeout=120)[0], process.returncode) for process in self.running.values()]
        self.running.clear()
        return [text for text, code in said if text or code]


@pytest.fixture
def callers(fleet: Fleet, tmp_path: Path) -> Iterator[Callers]:
    made = Callers(fleet, tmp_path)
    yield made
    for name in list(made.running):
        made.kill(name)


def led_to(fleet: Fleet, job: int) -> dict[str, set[str]]:
    """URLs that each page leads to, as the relations have it."""
    execute = fleet.db.connection.execute
    urls = dict(map(tuple, execute(select(pages.c.id, pages.c.url).where(pages.c.job_id == job))))
    rows = execute(select(relations.c.parent_id, relations.c.children).where(relations.c.job_id == job))
    return {urls[parent]: {urls[word >> 8] for word in unpack_children(children)} for parent, children in rows}


def check_finished(fleet: Fleet, job: int) -> None:
    """All pages were captured once, each leads where it should, and the job is over."""
    found = select(pages.c.state, pages.c.attempts, pages.c.attempts_remaining, pages.c.counted, func.count())
    by_state = fleet.db.connection.execute(found.where(pages.c.job_id == job).group_by(*found.selected_columns[:4]))
    assert [tuple(row) for row in by_state] == [("READY", 1, 0, 1, SIZE)]
    assert led_to(fleet, job) == {
        address(number): {url for url, _ in links_of(address(number), SIZE)} for number in range(SIZE)
    }
    assert fleet.job_row(job)["state"] == "FINISHED"
    assert fleet.job_row(job)["outcome"] == "completed"
    captured = select(func.sum(job_sums.c.pages_captured)).where(job_sums.c.job_id == job)
    assert fleet.db.connection.execute(captured).scalar() == SIZE
    tries = select(func.count()).select_from(attempts).where(attempts.c.job_id == job)
    assert fleet.db.connection.execute(tries).scalar() == SIZE


def check_claims(callers: Callers) -> None:
    twice = [claim for claim, count in Counter(callers.claims()).items() if count > 1]
    assert twice == [], "epoch and page of claims that were made twice"


def test_eight_callers_take_each_page_once(fleet: Fleet, callers: Callers) -> None:
    job = fleet.job(*map(address, range(HOSTS)))  # all of them are sites, whose pages are followed
    for number in range(CALLERS):
        callers.start(f"p{number}")
    assert callers.complaints() == []
    check_finished(fleet, job)
    check_claims(callers)
    assert len(callers.claims()) == SIZE


def end_all(fleet: Fleet) -> None:
    """All leases run out, of those alive too: they greet again."""
    live = select(sessions.c.epoch).where(sessions.c.ended_at.is_(None))
    for epoch in fleet.db.connection.execute(live).scalars().all():
        fleet.dispatch.end(epoch, SessionEnding.GOODBYE)


def test_callers_that_are_killed_and_leases_that_end_lose_no_page(fleet: Fleet, callers: Callers) -> None:
    job = fleet.job(*map(address, range(HOSTS)))  # all of them are sites, whose pages are followed
    for number in range(CALLERS):
        callers.start(f"p{number}")
    callers.wait_for(SIZE // 6)
    for name in ("p0", "p1"):
        callers.kill(name)
    callers.start("p0")
    callers.wait_for(SIZE // 3)
    end_all(fleet)
    callers.wait_for(SIZE // 2)
    callers.kill("p2")
    end_all(fleet)
    assert callers.complaints() == []
    check_finished(fleet, job)
    check_claims(callers)


# -- the same, step by step


@pytest.fixture
def beside(fleet: Fleet) -> Iterator[Callable[[], Dispatch]]:
    """Makes dispatches with connections of their own, as other processes have."""
    made = []

    def another() -> Dispatch:
        made.append(opened(fleet.place))
        return Dispatch(made[-1], clock=fleet.clock)

    yield another
    for db in made:
        db.close()


def test_what_two_find_at_once_is_one_page(fleet: Fleet, beside: Callable[[], Dispatch], monkeypatch) -> None:
    """The second asks before the first has committed, and inserts after that."""
    job = fleet.job(site("one"), site("two"))
    fleet.pipeline("p")
    held = fleet.claim("p")
    other = beside()
    late = other._open_jobs.of(job).frontier.admission
    monkeypatch.setattr(late, "_recall", lambda keys: late._batch.clear())
    web = {site("one"): [(site("a"), A), (site("b"), A)], site("two"): [(site("b"), A), (site("c"), A)]}
    fleet.finish([one for one in held if one[1].url == site("one")], web)
    (claim,) = [claim for _, claim in held if claim.url == site("two")]
    links = web[site("two")]
    first, fleet.dispatch = fleet.dispatch, other
    assert fleet.send(job, finish_batch([finished(claim, links)], links)).accepted == [claim.page_id]
    fleet.dispatch = first
    assert sorted(fleet.states(job)) == [site(name) for name in ("a", "b", "c", "one", "two")]
    assert led_to(fleet, job) == {page: {url for url, _ in links} for page, links in web.items()}
    assert fleet.page(job, site("b"))["via_id"] == fleet.page(job, site("one"))["id"]


def test_rules_and_sites_that_another_process_changed_count_at_once(
    fleet: Fleet, beside: Callable[[], Dispatch]
) -> None:
    job = fleet.job(site("one"), site("two"))
    fleet.pipeline("p")
    held = fleet.claim("p", 1)
    with closing(opened(fleet.place)) as db:
        amend(db, store.load_job(db, job), AddIgnore("t", "/left-out$"), fleet.now)
    web = {claim.url: [(site("left-out"), A), (site("taken"), A)] for _, claim in held}
    fleet.finish(held, web)
    assert fleet.page(job, site("left-out"))["state"] == "SKIPPED"
    assert fleet.page(job, site("taken"))["state"] == "READY"


def test_a_limit_that_another_process_raised_pauses_the_job_no_more(fleet: Fleet) -> None:
    job = fleet.job(*(site(str(number)) for number in range(6)), settings={"max_pages": 2})
    fleet.pipeline("p")
    fleet.finish(fleet.claim("p"))
    assert fleet.claim("p") == []
    assert fleet.job_row(job)["reason"] == "limit: --max-pages 2"
    with closing(opened(fleet.place)) as db:
        for change in (SetValues("ann", (("max-pages", "5"),)), ResumeJob("ann")):
            amend(db, store.load_job(db, job), change, fleet.now)
    assert len(fleet.claim("p")) == 3
    assert not fleet.job_row(job)["paused"]


def test_a_session_that_another_process_ended_gets_and_changes_nothing(
    fleet: Fleet, beside: Callable[[], Dispatch]
) -> None:
    job = fleet.job(site("one"), site("two"))
    fleet.pipeline("p")
    held = fleet.claim("p", 1)
    beside().end(fleet.epochs["p"], SessionEnding.LAPSED)
    assert fleet.ask("p"), "its lease goes on"
    beside().end(fleet.epochs["p"], SessionEnding.EXITED)
    assert fleet.ask("p") is None
    (report,) = fleet.finish(held)
    assert report.accepted == []
    assert set(fleet.states(job).values()) == {"READY"}


def test_each_process_takes_the_pages_that_another_one_found(fleet: Fleet, beside: Callable[[], Dispatch]) -> None:
    job = fleet.job(site("one"))
    fleet.pipeline("p")
    other = beside()
    assert other._open_jobs.of(job).frontier.pending(), "it knows the job before there is anything else"
    fleet.finish(fleet.claim("p"), {site("one"): [(site("two", "b.example"), A)]})
    fleet.dispatch = other
    # it did not know of the host, and looks
    held = fleet.claim("p") or fleet.claim("p")
    assert [claim.url for _, claim in held] == [site("two", "b.example")]
    fleet.finish(held)
    assert fleet.state(job) == "FINISHED"


def test_a_server_that_is_frozen_within_a_transaction_holds_nobody_up_for_long(fleet: Fleet) -> None:
    fleet.job(site(""))
    fleet.pipeline("p")
    with closing(opened(fleet.place)) as frozen:
        frozen.connection.execute(text("SET idle_in_transaction_session_timeout = '1500ms'"))
        fleet.db.connection.execute(text("SET lock_timeout = '300ms'"))
        holding, go_on = threading.Event(), threading.Event()

        def hold() -> None:
            with pytest.raises(TrackerError, match="lost a transaction"), frozen.transaction() as connection:
                connection.execute(select(sessions.c.epoch).with_for_update())
                holding.set()
                go_on.wait(20)
                connection.execute(text("SELECT 1"))

        thread = threading.Thread(target=hold)
        thread.start()
        assert holding.wait(20)
        with pytest.raises(BusyError, match="ask again"):
            fleet.asked("p", 5)
        fleet.db.connection.execute(text("SET lock_timeout = '15s'"))
        assert [len(part.claims) for part in fleet.asked("p", 5, again=True).jobs] == [1]
        go_on.set()
        thread.join(20)
