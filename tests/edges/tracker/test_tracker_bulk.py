"""What SQLite keeps back and writes in bulk, URLs and payloads, is known all the same: before, after, after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import pytest
from msgspec import structs
from sqlalchemy import Table, func, select
from test_tracker_lost_captures import capture
from tests.support.pages import finish_batch, finished
from tracker_harness import A, Tracker, site

from muniment.control.why import why
from muniment.errors import ProtocolError
from muniment.model.capture import EarlierCapture
from muniment.model.place import TrackerPlace
from muniment.tracker.queue import page_keys, payloads
from muniment.tracker.queue.lost_captures import wait_again
from muniment.tracker.schema.tables import fresh_payloads, pages
from muniment.tracker.schema.tables import page_keys as keys_table
from muniment.tracker.schema.tables import payloads as payloads_table

START = site("")
SITES = [site(str(n)) for n in range(20)]
Make = Callable[..., Tracker]


@pytest.fixture(params=[1, 3, 1000])
def together(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many are kept back."""
    monkeypatch.setattr(page_keys, "_TOGETHER", request.param)
    monkeypatch.setattr(payloads, "_TOGETHER", request.param)
    return int(request.param)


def count(job: Tracker, table: Table) -> int:
    return job.db.connection.execute(select(func.count()).select_from(table).where(job.mine(table))).scalar_one()


def digest(number: int) -> bytes:
    return number.to_bytes(20, "little")


def record(number: int) -> bytes:
    return UUID(int=number).bytes


def captured(job: Tracker, *numbers: int, by: int | None = None) -> None:
    """Finish the pages of these numbers, each with its own payload, or with that of another page."""
    claims = {claim.url: claim for claim in job.claim()}
    made = [
        finished(claims.pop(SITES[n]), payload=digest(n if by is None else by), record_id=record(n)) for n in numbers
    ]
    job.frontier.finish(finish_batch(made), 0, 0)
    job.frontier.release([(claim.page_id, claim.claim_id) for claim in claims.values()])


def records(job: Tracker) -> dict[int, tuple[str, int]]:
    """The URL and the record's number of each payload that is known."""
    known = job.frontier.payloads.known([digest(n) for n in range(40)])
    return {int.from_bytes(d, "little"): (one.url, UUID(bytes=one.record_id).int) for d, one in known.items()}


@pytest.mark.parametrize("killed", [False, True])
def test_no_url_becomes_two_pages(tracker: Make, together: int, killed: bool) -> None:
    job = tracker(START)
    way = [START, *SITES]
    web = {url: [(other, A) for other in way[: at + 2]] for at, url in enumerate(way)}
    for url in way:
        job.finish(job.take(url), web)
        if killed:
            job.reopen()
    assert list(job.states()) == way
    assert count(job, pages) == len(way)


def test_keys_follow_their_pages_in_order(tracker: Make, together: int) -> None:
    """Which are missing after a kill is told by the last page whose key is there."""
    job = tracker(START)
    job.finish(job.take(START), {START: [(SITES[0], A)]})
    for page, new in pairwise(SITES):
        job.finish(job.take(page), {page: [(new, A)]})
        written = sorted(job.db.connection.execute(select(keys_table.c.page_id).where(job.mine(keys_table))).scalars())
        assert written == list(range(1, len(written) + 1))
        behind = count(job, pages) - len(written)
        assert behind <= together if job.db.in_bulk else behind == 0


def test_hops_of_a_url_are_known_wherever_its_key_is(tracker: Make, together: int) -> None:
    job = tracker(START, SITES[0])
    for page, new in pairwise([START, SITES[1], SITES[2], SITES[3]]):
        job.finish(job.take(page), {page: [(new, A)]})
        job.reopen()
    assert [job.hops(SITES[n])[0] for n in (1, 2, 3)] == [1, 2, 3]
    job.finish(job.take(SITES[0]), {SITES[0]: [(SITES[n], A) for n in (1, 2, 3)]})
    assert [job.hops(SITES[n])[0] for n in (1, 2, 3)] == [1, 1, 1]


def test_why_finds_a_url_beside_the_run_that_keeps_its_key_back(tracker: Make, together: int) -> None:
    job = tracker(START)
    job.finish(job.take(START), {START: [(url, A) for url in SITES]})
    assert why(job.place.directory, job.place, START).verdict == "captured"
    assert {why(job.place.directory, job.place, url).verdict for url in SITES} == {"queued"}


def test_a_batch_that_is_refused_makes_no_url_known(tracker: Make, together: int) -> None:
    job = tracker(START)
    claim = job.take(START)
    links = [(SITES[0], A), (SITES[1], A)]
    with pytest.raises(ProtocolError, match="was not sent"):
        job.frontier.finish(finish_batch([finished(claim, links)], links[:1]), 0, 0)
    report = job.finish(claim, {START: links})
    assert sum(report.pending.values()) == 2
    assert list(job.states()) == [START, *SITES[:2]]


def test_a_transaction_that_is_undone_makes_no_url_known(
    tracker: Make, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = tracker(START)
    claim, web = job.take(START), {START: [(START, A), (SITES[0], A), (SITES[1], A)]}

    def fail(*_: object) -> None:
        raise ProtocolError("garbage")

    with monkeypatch.context() as broken:
        broken.setattr(job.frontier.cookies, "keep", fail)
        with pytest.raises(ProtocolError, match="garbage"):
            job.finish(claim, web, payload=digest(1), record_id=record(1))
    assert records(job) == {}
    assert sum(job.finish(claim, web).pending.values()) == 2
    assert list(job.states()) == [START, *SITES[:2]]


def test_payloads_are_known_wherever_they_lie(tracker: Make, together: int) -> None:
    job = tracker(*SITES)
    for at in range(0, 20, 2):
        captured(job, at, at + 1)
        expected = {n: (SITES[n], n) for n in range(at + 2)}
        assert records(job) == expected
        job.reopen()
        assert records(job) == expected
    fresh = count(job, fresh_payloads)
    assert fresh + count(job, payloads_table) == len(SITES)
    assert fresh < together if job.db.in_bulk else fresh == 0


def test_the_first_capture_of_a_payload_counts(tracker: Make, together: int) -> None:
    job = tracker(*SITES)
    captured(job, 0, 1, 2, by=30)
    for later in range(3, 11):
        captured(job, later, by=30)
        captured(job, later + 9, by=31)
    assert records(job) == {30: (SITES[0], 0), 31: (SITES[12], 12)}
    job.reopen()
    assert records(job) == {30: (SITES[0], 0), 31: (SITES[12], 12)}


def test_the_first_capture_counts_though_it_lies_with_the_others(
    tracker: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payloads, "_TOGETHER", 2)
    job = tracker(*SITES)
    for page, by in ((0, 30), (1, 31), (2, 30), (3, 32)):
        # the third was under way beside the first, which was moved with the second
        captured(job, page, by=by)
        assert records(job)[30] == (SITES[0], 0)


def test_a_lost_payload_is_forgotten_wherever_it_lies(tracker: Make, together: int) -> None:
    job = tracker(*SITES)
    captured(job, 0, 1)
    captured(job, 2, 3)
    lost = [structs.replace(capture(SITES[n], record=UUID(int=n)), digest=digest(n).hex()) for n in (0, 2)]
    of_another = structs.replace(capture(SITES[3], record=UUID(int=77)), digest=digest(3).hex())
    job.frontier.fetch_again([*lost, of_another])
    assert records(job) == {1: (SITES[1], 1), 3: (SITES[3], 3)}
    job.reopen()
    assert records(job) == {1: (SITES[1], 1), 3: (SITES[3], 3)}
    captured(job, 0, 2)
    assert sorted(records(job)) == [0, 1, 2, 3]


def test_payloads_of_what_pages_asked_for_have_their_own_urls(tracker: Make, together: int) -> None:
    job = tracker(*SITES)
    beside = EarlierCapture("http://cdn.example/app.js", 7, record(99))
    claim = job.take(SITES[0])
    batch = finish_batch([finished(claim, payload=digest(0), record_id=record(0))])
    job.frontier.finish(structs.replace(batch, payloads=[(digest(9), beside)]), 0, 0)
    assert job.frontier.payloads.known([digest(9)]) == {digest(9): beside}
    # a page that brings it later is not its first capture
    captured(job, 1, by=9)
    captured(job, 2, 3)
    assert records(job)[9] == (beside.url, 99)
    job.reopen()
    assert records(job) == {0: (SITES[0], 0), 2: (SITES[2], 2), 3: (SITES[3], 3), 9: (beside.url, 99)}
    lost = structs.replace(capture(beside.url, record=UUID(int=99)), digest=digest(9).hex())
    job.frontier.fetch_again([lost])
    assert sorted(records(job)) == [0, 2, 3]


def test_pages_that_wait_again_have_no_payload(tracker: Make, together: int) -> None:
    job = tracker(*SITES)
    captured(job, 0, 1, 2, 3)
    beside = EarlierCapture("http://cdn.example/app.js", 7, record(99))
    job.frontier.finish(structs.replace(finish_batch([]), payloads=[(digest(9), beside)]), 0, 0)
    wait_again(job.db, job.job_id, [1, 3], 3)
    job.reopen()
    assert sorted(records(job)) == [1, 3]


KILLED_AFTER = """
import os, signal, sys
from pathlib import Path
from sqlalchemy import Engine, event
from test_tracker_bulk import SITES, the_fourth
from tracker_harness import Tracker
from muniment.model.place import TrackerPlace
from muniment.tracker.queue import page_keys
from muniment.tracker.queue import payloads

directory, words = sys.argv[1:]
page_keys._TOGETHER = payloads._TOGETHER = 4

@event.listens_for(Engine, "after_cursor_execute")
def look(connection, cursor, statement, *rest):
    if statement.startswith(words):
        os.kill(os.getpid(), signal.SIGKILL)

the_fourth(Tracker(TrackerPlace(Path(directory)), *SITES[:4]))
"""


def the_fourth(job: Tracker) -> None:
    """The fourth of four pages is captured, and leads to a new one."""
    job.finish(job.take(SITES[3]), {SITES[3]: [(SITES[4], A)]}, payload=digest(3), record_id=record(3))


@pytest.mark.parametrize("words", ["INSERT INTO page_keys", "INSERT OR IGNORE INTO payloads"])
def test_a_kill_while_they_are_written_loses_nothing(tmp_path: Path, words: str) -> None:
    place = TrackerPlace(tmp_path)
    with closing(Tracker(place, *SITES[:4])) as job:
        captured(job, 0, 1, 2)
    command = [sys.executable, "-c", KILLED_AFTER, str(tmp_path), words]
    killed = subprocess.run(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False)
    assert killed.returncode == -signal.SIGKILL
    with closing(Tracker(place, *SITES[:4])) as job:
        assert records(job) == {n: (SITES[n], n) for n in range(3)}
        the_fourth(job)
        assert list(job.states()) == SITES[:5]
        assert records(job) == {n: (SITES[n], n) for n in range(4)}
