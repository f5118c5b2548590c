"""PostgreSQL's own faults: connections that end, commits without an answer, undone transactions, two runs at once."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support.postgres import Postgres
from tracker_harness import A, Tracker, site

from muniment.errors import BusyError, TrackerLostError
from muniment.model.place import TrackerPlace
from muniment.rules.robots.validity import RobotsAnswer
from muniment.tracker.connect import opened
from muniment.tracker.db import database as engine
from muniment.tracker.db.postgresql import PostgresDatabase

WEB = {site(""): [(site(str(number)), A) for number in range(40)]}


@pytest.fixture
def place(tracker_database: str, tmp_path: Path) -> TrackerPlace:
    return TrackerPlace(tmp_path, tracker_database, secrets.token_hex(16))


@pytest.fixture
def job(place: TrackerPlace) -> Iterator[Tracker]:
    with closing(Tracker(place)) as made:
        yield made


def end_connection(job: Tracker) -> None:
    """From another connection, as an administrator or a restart does."""
    with psycopg.connect(job.place.database, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (job.db._before[0],))


def commit_without_answer(job: Tracker, monkeypatch: pytest.MonkeyPatch, *, done: bool) -> None:
    """The next commit reaches the server, or does not, and the connection is gone in any case."""
    database, commit = job.db, job.db._commit

    def cut() -> None:
        monkeypatch.setattr(database, "_commit", commit)
        if done:
            commit()
            database._commits -= 1
        end_connection(job)
        commit()

    monkeypatch.setattr(database, "_commit", cut)


@pytest.mark.parametrize("done", [True, False])
def test_a_finish_whose_commit_got_no_answer_counts_once(
    job: Tracker, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    claim = job.take(site(""))
    commit_without_answer(job, monkeypatch, done=done)
    report = job.finish(claim, WEB)
    assert [page.page_id for page in report.accepted] == [claim.page_id]
    assert sum(report.pending.values()) == 40
    assert job.sums() == (1, 0, 1, 0, 100)
    assert len(job.states()) == 41
    assert job.attempts(site("")) == [(1, 200, "")]
    assert job.frontier.totals.captured == 1


@pytest.mark.parametrize("done", [True, False])
def test_a_claim_whose_commit_got_no_answer_is_given_out_once(
    job: Tracker, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    commit_without_answer(job, monkeypatch, done=done)
    claims = job.claim()
    assert {job.page(claim.url)["claim_id"] for claim in claims} == {claim.claim_id for claim in claims}
    assert job.claim() == []
    job.finish(claims, WEB)
    assert len(job.crawl(WEB)) == 40


@pytest.mark.parametrize("at", range(5))
def test_a_connection_that_ends_between_transactions_is_made_anew(job: Tracker, at: int) -> None:
    deeds: list[Callable[[], Any]] = [
        job.claim,
        lambda: job.frontier.payloads.known([b"d" * 20]),
        lambda: job.frontier.robots.keep("https://a.example", RobotsAnswer(200, "", 1)),
        job.frontier.pending,
        lambda: job.frontier.settle(1),
    ]
    end_connection(job)
    deeds[at]()
    job.reopen()
    assert len(job.crawl(WEB)) == 41


def test_what_was_undone_is_forgotten_and_done_again(job: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deadlock: two transactions, each with a row that the other one waits for."""
    claim = job.take(site(""))
    locked, met = threading.Event(), threading.Event()

    def rival() -> None:
        with psycopg.connect(job.place.database) as other:
            other.execute("SET deadlock_timeout = '10s'")
            other.execute("LOCK TABLE repairs IN EXCLUSIVE MODE")
            locked.set()
            met.wait(20)
            other.execute("SELECT 1 FROM pages WHERE job_id = %s AND id = 1 FOR UPDATE", (job.job_id,))
            other.rollback()

    sites = job.frontier.admission

    def met_rival(*arguments: Any) -> Any:
        monkeypatch.undo()
        met.set()
        sites.mark_dirty(1)  # waits for the rival, which waits for the page that this transaction has changed
        return sites.admit(*arguments)

    monkeypatch.setattr(sites, "admit", met_rival)
    thread = threading.Thread(target=rival)
    thread.start()
    locked.wait(20)
    report = job.finish(claim, WEB)
    thread.join()
    assert len(report.accepted) == 1
    assert job.sums() == (1, 0, 1, 0, 100)
    assert len(job.states()) == 41
    assert not job.repairs(), "the undone transaction left nothing"


def test_one_process_at_a_time_runs_a_job(job: Tracker) -> None:
    with pytest.raises(BusyError):
        Tracker(job.place)
    other = TrackerPlace(job.place.directory, job.place.database, secrets.token_hex(16))
    with closing(Tracker(other)) as beside:
        assert beside.job_id != job.job_id


def test_a_server_that_stays_away_ends_the_run_with_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(engine, "PATIENCE_S", 0.5)
    with Postgres() as server, closing(Tracker(TrackerPlace(tmp_path, server.url(), "p" * 32))) as job:
        claim = job.take(site(""))
        server.stop()
        with pytest.raises(TrackerLostError, match=r"^the tracker postgresql://.* cannot be reached .*again$") as lost:
            job.finish(claim)
        assert "\n" not in str(lost.value)
        server.start()
        with pytest.raises(TrackerLostError):
            job.claim()
        job.reopen()
        assert job.crawl(WEB)[0] == site("")


def test_two_runs_that_find_an_empty_database(postgres: Postgres, tmp_path: Path) -> None:
    url = postgres.create("empty_for_two")
    faults: list[Exception] = []

    def begin(name: str) -> None:
        try:
            opened(TrackerPlace(tmp_path, url, name * 32)).close()
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=begin, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []


def test_text_with_nul_is_kept_without(job: Tracker) -> None:
    job.frontier.robots.keep("https://a.example", RobotsAnswer(200, "User-agent: *\0", 1))
    answer = job.frontier.robots.find("https://a.example")
    assert answer is not None
    assert answer.text == "User-agent: *\ufffd"


@contextmanager
def plans(job: Tracker) -> Iterator[list[str]]:
    """The plans of all statements of this connection, as the server logged them."""
    messages: list[str] = []
    database = job.db
    assert isinstance(database, PostgresDatabase)
    database._driver.add_notice_handler(lambda notice: messages.append(notice.message_primary or ""))
    for setting in ("auto_explain.log_min_duration = 0", "auto_explain.log_level = 'notice'"):
        database._execute("LOAD 'auto_explain'")
        database._execute(f"SET {setting}")
    yield messages


def test_every_statement_of_a_crawl_finds_its_rows_by_a_key(job: Tracker) -> None:
    with plans(job) as found:
        job.crawl(WEB)
        job.frontier.pending()
    text = "\n".join(found)
    assert "Index" in text
    assert [plan for plan in found if "Seq Scan" in plan and "cost=10000000000" in plan] == []
    claims = [plan for plan in found if "SKIP LOCKED" in plan]
    assert claims
    assert [plan for plan in claims if "ix_pages_pending" not in plan or "Sort" in plan] == []
