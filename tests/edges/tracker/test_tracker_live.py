"""Logs of jobs in rows, jobs that queues of Redis bring, and who has the live plane: on both databases."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from fleet_harness import Fleet
from msgspec import structs
from sqlalchemy import select

from muniment.clock import iso_ms
from muniment.errors import SessionEndedError
from muniment.live.entries import ServerEntries
from muniment.model.change import PauseJob, ResumeJob
from muniment.model.network.live import LogEntry
from muniment.model.network.sessions import HostFacts, ReleaseCall
from muniment.model.page import FinishBatch, session_of
from muniment.settings.option_table import Settings
from muniment.tracker.connect import opened
from muniment.tracker.fleet.dispatch import Dispatch
from muniment.tracker.fleet.job_logs import JobLogs
from muniment.tracker.jobs import job_log, shown, store
from muniment.tracker.jobs.changes import amend
from muniment.tracker.jobs.live import live_job
from muniment.tracker.open import JobStart, StartPages, submit_job
from muniment.tracker.schema.live import live_jobs

TEXT = ServerEntries()


def entries(fleet: Fleet, job: int) -> list[dict[str, object]]:
    return [json.loads(entry) for entry in job_log.entries_after(fleet.db, job, 0, 1 << 30)]


def shown_job(fleet: Fleet, *urls: str) -> int:
    """A job that has a log, with a pipeline."""
    job = fleet.job(*urls)
    shown.begin_shown(fleet.db, [job], 1)
    serve_logs(fleet)
    fleet.pipeline("p")
    return job


def serve_logs(fleet: Fleet) -> None:
    """A server begins that writes logs."""
    fleet.dispatch = Dispatch(fleet.db, clock=fleet.clock, logs=JobLogs(lambda: TEXT, shows=False))


def messages(fleet: Fleet, job: int) -> list[object]:
    return [entry["message"] for entry in entries(fleet, job) if entry["type"] == "stdout"]


def test_writers_beside_each_other_leave_no_gap(fleet: Fleet) -> None:
    job = fleet.job("http://a.example/")
    shown.begin_shown(fleet.db, [job], 1)

    def write(name: str) -> None:
        db = opened(fleet.place)
        for number in range(25):
            lines = [LogEntry(number, f"{name} {number} {part}") for part in range(4)]
            job_log.add_lines(db, job, lines, TEXT)
        db.close()

    names = ["a", "b", "c"] if fleet.db.shared else ["a"]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, names))
    log = entries(fleet, job)
    assert [entry["seq"] for entry in log] == list(range(1, 100 * len(names) + 1))
    assert len({entry["message"] for entry in log}) == len(log)
    assert shown.shown_jobs(fleet.db, shown.ShownLook()).jobs[0].log.position.score == len(log)


def test_changes_and_ends_have_their_lines_once(fleet: Fleet) -> None:
    job = fleet.job("http://a.example/")
    shown.begin_shown(fleet.db, [job], 1)
    for change in (PauseJob("somebody"), ResumeJob("redis")):
        amend(fleet.db, store.load_job(fleet.db, job), change, 5)
        job_log.say_changes(fleet.db, job, TEXT)
        job_log.say_changes(fleet.db, job, TEXT)
    for _ in range(2):
        shown.say_end(fleet.db, job, [LogEntry(7, "the end")], TEXT)
    assert [entry["message"] for entry in entries(fleet, job)] == [
        "somebody changed paused: no -> yes",
        "redis changed paused: yes -> no",
        "the end",
    ]
    assert [(one.age, one.said, one.ending) for one in shown.shown_jobs(fleet.db, shown.ShownLook()).jobs] == [
        (2, 2, "SAID")
    ]


def test_a_job_that_did_not_change_is_the_same_object(fleet: Fleet) -> None:
    one, two = fleet.job("http://a.example/"), fleet.job("http://b.example/")
    shown.begin_shown(fleet.db, [one, two], 1)
    before = shown.shown_jobs(fleet.db, shown.ShownLook())
    assert [job.job_id for job in before.jobs] == [one, two]
    job_log.add_lines(fleet.db, two, [LogEntry(1, "a line")], TEXT)
    after = shown.shown_jobs(fleet.db, before)
    assert after.jobs[0] is before.jobs[0]
    assert [job.log.position.score for job in (before.jobs[1], after.jobs[1])] == [0, 1]
    shown.set_ending(fleet.db, one, shown.ShownEnding.SHOWN)
    assert [job.job_id for job in shown.shown_jobs(fleet.db, after).jobs] == [one, two]  # it runs


def test_a_transaction_that_is_undone_leaves_no_entry(fleet: Fleet) -> None:
    job = fleet.job("http://a.example/")
    shown.begin_shown(fleet.db, [job], 1)
    with pytest.raises(ZeroDivisionError), fleet.db.transaction():
        job_log.add_entries(fleet.db, job, [LogEntry(1, "never")], TEXT)
        raise ZeroDivisionError
    job_log.add_lines(fleet.db, job, [LogEntry(1, "first")], TEXT)
    assert [(entry["seq"], entry["message"]) for entry in entries(fleet, job)] == [(1, "first")]


def test_what_a_queue_brings_is_made_once(fleet: Fleet) -> None:
    start = shown.LiveStart(ident="x" * 25, url="http://a.example/#2", queued="1700000000", epoch="e")

    def take(taken: shown.LiveStart) -> int:
        starts = StartPages(("http://a.example/",))
        return submit_job(fleet.db, "a", Settings(), starts, 9, start=JobStart(taken=taken)).job.job_id

    job = take(start)
    for again in (start, shown.LiveStart(ident=start.ident, url=start.url, queued="1700000001", epoch="e")):
        with pytest.raises(shown.TakenBeforeError):
            take(again)
    assert fleet.db.connection.execute(select(live_jobs.c.job_id)).scalars().all() == [job]
    seen = live_job(fleet.db, job)
    assert (seen.ident, seen.url, seen.queued, seen.epoch) == (start.ident, start.url, start.queued, "e")
    assert shown.unshown_jobs(fleet.db) == []


def test_one_server_has_the_live_plane(fleet: Fleet) -> None:
    _ = fleet.dispatch.tracker_id
    asked = ("a", 1), ("b", 5), ("a", 9), ("b", 19), ("b", 20)
    held = [shown.hold_plane(fleet.db, name, now, 10) for name, now in asked]
    assert held == [True, False, True, False, True]
    assert shown.hold_plane(fleet.db, "b", 21, -1)
    assert shown.hold_plane(fleet.db, "a", 22, 10)


def test_a_pause_of_a_host_has_one_line(fleet: Fleet) -> None:
    job = shown_job(fleet, "http://a.example/")
    epoch = session_of(fleet.claim("p")[0][1].claim_id)
    until = iso_ms(fleet.now + 60_000)
    facts = HostFacts(wait_ms=60_000, reason="http 503", strikes=1)
    for told in (
        facts,
        structs.replace(facts, wait_ms=60_300),  # the same wait, as another pipeline reports it
        HostFacts(),
        HostFacts(wait_ms=2_000, reason="connect", strikes=1),
    ):
        fleet.send(job, FinishBatch([], []), epoch, hosts={"a.example": told})
    assert [entry["message"] for entry in entries(fleet, job)] == [f"Pause of a.example: http 503, until {until}."]


def test_an_origin_that_is_given_up_has_one_line(fleet: Fleet) -> None:
    """Whatever is sent again, late, by another pipeline or to another server."""
    urls = [f"http://{host}/{n}" for n in range(3) for host in ("a.example", "a.example:81", "b.example")]
    job = shown_job(fleet, *urls)
    why = "dead-host: given up after 5 failures, the last one timeout-connect: 10 s"
    held = sorted(fleet.claim("p"), key=lambda one: urls.index(one[1].url))
    fleet.finish(held[:1], refused=why)
    fleet.finish(held[:1], refused=why)
    fleet.finish(held[1:4], error=why, status=0)
    serve_logs(fleet)
    fleet.greet("p")  # another process: what the first one held waits again
    fleet.finish(held[4:], refused=why)  # late
    fleet.finish(fleet.claim("p"), refused=f"{why}, too")
    lines = [f"Pause of {host}: http://{origin}: {why}." for host, origin in (
        ("a.example", "a.example"), ("a.example", "a.example:81"), ("b.example", "b.example"),
    )]  # fmt: skip
    assert messages(fleet, job) == lines
    scores = [entry["seq"] for entry in entries(fleet, job)]
    assert scores == list(range(1, len(scores) + 1))


def test_a_line_that_was_undone_is_written_with_the_page(fleet: Fleet) -> None:
    job = shown_job(fleet, "http://a.example/")
    why = "dead-host: given up after 5 failures, the last one dns: nothing"
    held = fleet.claim("p")

    class Broken(ServerEntries):
        def encoded(self, seq: int, entry: LogEntry) -> bytes:
            raise RuntimeError("killed")

    fleet.dispatch = Dispatch(fleet.db, clock=fleet.clock, logs=JobLogs(Broken, shows=False))
    with pytest.raises(RuntimeError):
        fleet.finish(held, refused=why)
    fleet.reopen()
    serve_logs(fleet)
    assert messages(fleet, job) == []
    fleet.finish(held, refused=why)
    assert messages(fleet, job) == [f"Pause of a.example: http://a.example: {why}."]


def test_a_worker_that_died_has_one_line(fleet: Fleet) -> None:
    job = shown_job(fleet, *(f"http://a.example/{n}" for n in range(5)))
    other = fleet.job("http://b.example/")  # has no log
    held = fleet.claim("p")
    epoch = fleet.epochs["p"]
    claims = [(claim.page_id, claim.claim_id) for of, claim in held if of == job]
    died = ReleaseCall(job=job, claims=claims[:2], died=True)
    fleet.dispatch.release("p", epoch, died)
    fleet.dispatch.release("p", epoch, died)  # sent again
    serve_logs(fleet)
    fleet.dispatch.release("p", epoch, died)
    fleet.dispatch.release("p", epoch, ReleaseCall(job=job, claims=claims[2:3]))
    fleet.dispatch.release("p", epoch, ReleaseCall(job=job, claims=claims[2:4], died=True))
    fleet.greet("p")
    with pytest.raises(SessionEndedError):  # late
        fleet.dispatch.release("p", epoch, ReleaseCall(job=job, claims=claims[4:], died=True))
    assert messages(fleet, job) == [
        "A worker of p died; pages that it gives back: 2.",
        "A worker of p died; pages that it gives back: 1.",
    ]
    assert entries(fleet, other) == []
