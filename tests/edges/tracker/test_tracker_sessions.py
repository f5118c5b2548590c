"""What a pipeline says and is told: asks that come again, texts, hosts that are divided, limits, news, time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from fleet_harness import Fleet, Held, held_of
from msgspec import structs
from sqlalchemy import func, select
from tests.support.pages import finish_batch, finished
from tracker_harness import A, site

from muniment.errors import NotFoundError, SessionEndedError, UsageError, WrongAskError
from muniment.model.change import ResumeJob, SetValues
from muniment.model.network.sessions import (
    FinishCall,
    HeartbeatCall,
    HostFacts,
    LostCall,
    LostCapture,
    PermitsCall,
    ReleaseCall,
    RobotsFile,
    finished_page,
)
from muniment.model.page import first_claim, session_of
from muniment.model.pipeline import HostReport
from muniment.model.url import url_key
from muniment.tracker.connect import opened
from muniment.tracker.fleet.dispatch import Dispatch
from muniment.tracker.schema.pipelines import host_permits, sessions
from muniment.tracker.schema.tables import job_sums, jobs

START, ONE, TWO = site(""), site("1"), site("2")


def ids(answer: object) -> list[tuple[int, int]]:
    return sorted((claim.page_id, claim.claim_id) for part in answer.jobs for claim in part.claims)  # type: ignore[attr-defined]


def test_a_claim_that_is_asked_again_is_given_the_same(fleet: Fleet) -> None:
    fleet.job(*(site(str(n), f"{n % 3}.example") for n in range(30)))
    fleet.pipeline("p", slots=2)
    first = fleet.asked("p", 5, 5)
    assert [len(part.claims) for part in first.jobs] == [5, 5]
    assert ids(fleet.asked("p", 5, 5, again=True)) == ids(first)
    fleet.reopen()
    assert ids(fleet.asked("p", 5, 5, again=True)) == ids(first)
    assert {part.slot: ids(type(first)(1, [part])) for part in first.jobs} == {
        part.slot: ids(type(first)(1, [part])) for part in fleet.asked("p", 5, 5, again=True).jobs
    }
    held = held_of(first.jobs)
    fleet.finish(held[:3])
    fleet.release(held[3:5])
    assert len(ids(fleet.asked("p", 5, 5, again=True))) == 5, "what it holds no more is left out"
    assert not set(ids(fleet.asked("p", 5, 5))) & set(ids(first))


def test_a_session_of_which_the_tracker_holds_more_than_its_pipeline_ends(fleet: Fleet) -> None:
    """A backup was restored: what the pipeline has finished since is held for it, and would be for ever."""
    job = fleet.job(START, ONE)
    fleet.pipeline("p")
    held = fleet.claim("p")
    report = HostReport()
    fleet.beat("p", report=report)  # a pipeline that does not say what it has
    fleet.beat("p", report=report, ask=1)  # what was given last may be on its way
    fleet.beat("p", report=report, ask=2, jobs=[job])
    with pytest.raises(SessionEndedError):
        fleet.beat("p", report=report, ask=2)
    fleet.greet("p")
    assert sorted(claim.url for _, claim in fleet.claim("p")) == sorted(claim.url for _, claim in held)


def test_an_ask_that_is_out_of_turn_is_refused_and_an_empty_one_is_not_used_up(fleet: Fleet) -> None:
    job = fleet.job(START)
    fleet.pipeline("p")
    held = fleet.claim("p")
    assert fleet.asked("p", 9).jobs == []
    fleet.release(held)
    assert len(ids(fleet.asked("p", 9, again=True))) == 1, "there was nothing before"
    epoch = fleet.epochs["p"]
    for wrong in (0, 1, 4, -1):
        fleet.asks[epoch] = wrong
        with pytest.raises(WrongAskError):
            fleet.asked("p", 9, again=True)
    with pytest.raises(UsageError, match="slots of this session are 0 to 0"):
        fleet.asks[epoch] = 3
        fleet.asked("p", 1, 1, again=True)
    assert fleet.state(job) == "DRAINING"


def test_a_page_waits_for_the_texts_that_it_leads_to(fleet: Fleet) -> None:
    job = fleet.job(START, ONE)
    fleet.pipeline("p")
    held = {claim.url: claim for _, claim in fleet.claim("p")}
    leads = [finished(held[START], [(TWO, A), (ONE, A)]), finished(held[ONE], [(START, A)])]
    told = fleet.send(job, finish_batch(leads))
    assert (told.accepted, told.stale, told.untold) == ([held[ONE].page_id], [], [url_key(TWO)])
    assert fleet.page(job, START)["state"] == "CLAIMED"
    told = fleet.send(job, finish_batch(leads, [(TWO, A)]))
    assert (sorted(told.accepted), told.untold) == (sorted(claim.page_id for claim in held.values()), [])
    sums = fleet.rows(job_sums)
    assert fleet.send(job, finish_batch(leads)).accepted == told.accepted, "the same once more"
    assert fleet.rows(job_sums) == sums


def test_garbage_is_refused_and_changes_nothing(fleet: Fleet) -> None:
    job = fleet.job(START)
    fleet.pipeline("p")
    fleet.pipeline("q")
    [(_, claim)] = fleet.claim("p")
    good, epoch = finished_page(finished(claim)), fleet.epochs["p"]
    before = fleet.rows(jobs, job_sums)
    wrong = [
        {"attempt": 0}, {"status": 1 << 20}, {"page_id": -1}, {"finished_at": 1 << 63}, {"outlinks": b"12345"},
        {"outlinks": b"k" * 16 + b"\xff"}, {"payload": b"x"}, {"exchanges": (("u", -1, "", 0, 0),)},
    ]  # fmt: skip
    for fields in wrong:
        page = type(good)(**{name: getattr(good, name) for name in good.__struct_fields__} | fields)
        with pytest.raises(UsageError, match="makes no sense"):
            fleet.dispatch.finish("p", epoch, FinishCall(job=job, pages=[page]))
    for call in (
        FinishCall(job=job, pages=[good, good]),
        FinishCall(job=job, urls=[(b"k" * 16, TWO)]),
        FinishCall(job=job, hosts={"a.example": HostFacts(wait_ms=1 << 40)}),
        FinishCall(job=job, hosts={"a.example": HostFacts(rests={"http://a.example": 1 << 40})}),
        FinishCall(job=job, hosts={"a.example": HostFacts(rests={"http://a.example" + "x" * (1 << 16): 1})}),
        FinishCall(job=job, robots={"https://a.example": RobotsFile(200, "", -1)}),
    ):
        with pytest.raises(UsageError):
            fleet.dispatch.finish("p", epoch, call)
    # a number that was guessed, and a session of somebody else
    other = fleet.epochs["q"]
    assert fleet.dispatch.finish("q", other, FinishCall(job=job, pages=[good])).stale == [claim.page_id]
    guess = ReleaseCall(job=job, claims=[(claim.page_id, claim.claim_id), (claim.page_id, first_claim(other) + 1)])
    assert fleet.dispatch.release("q", other, guess).released == 0
    for epoch_of, job_of in ((epoch, job), (99, job), (1 << 40, job)):
        with pytest.raises(NotFoundError):
            fleet.dispatch.finish("q", epoch_of, FinishCall(job=job_of))
    with pytest.raises(NotFoundError):
        fleet.dispatch.finish("q", other, FinishCall(job=99))
    assert fleet.rows(jobs, job_sums) == before


# -- hosts


def permits(fleet: Fleet) -> dict[str, int]:
    c = host_permits.c
    rows = fleet.db.connection.execute(select(c.epoch, c.permits).where(c.host == "a.example"))
    return {fleet.names[int(epoch)]: int(count) for epoch, count in rows}


def test_a_host_is_divided_over_pipelines_and_jobs(fleet: Fleet) -> None:
    fleet.job(*(site(str(n)) for n in range(300)), settings={"per_host": 6})
    fleet.job(*(site(str(n)) for n in range(300)), settings={"per_host": 4}, tags=frozenset({"t"}))
    fleet.pipeline("p")
    [part] = fleet.asked("p", 5).jobs
    assert part.permits == {"a.example": 6}
    fleet.pipeline("q", "t", matchonly=True)
    assert fleet.asked("q", 5).jobs == [], "the other has them all"
    assert fleet.news("p").permits == {"a.example": 2}, "four for both, by the stricter job"
    assert permits(fleet) == {"p": 6, "q": 0}
    answer = fleet.dispatch.permits("p", fleet.epochs["p"], PermitsCall(back={"a.example": 4}))
    assert answer.permits == {"a.example": 2}
    assert fleet.news("p").permits == {}
    [part] = fleet.asked("q", 5).jobs
    assert (part.permits, permits(fleet)) == ({"a.example": 2}, {"p": 2, "q": 2})
    fleet.dispatch.goodbye("p", fleet.epochs["p"])
    assert fleet.asked("q", 5).jobs[0].permits == {"a.example": 4}


def test_the_lower_limit_of_a_job_that_is_left_holds_until_its_pages_are_back(fleet: Fleet) -> None:
    strict = fleet.job(*(site(str(n)) for n in range(300)), settings={"per_host": 2})
    fleet.pipeline("p")
    held = fleet.claim("p", 5)
    better = fleet.job(*(site(str(n)) for n in range(300)), settings={"per_host": 6}, nice=-1)
    [part] = fleet.asked("p", 5).jobs
    assert (part.job, part.permits) == (better, {"a.example": 2})
    assert {job for job, _ in held} == {strict}
    fleet.release(held)
    assert fleet.asked("p", 5).jobs[0].permits == {"a.example": 6}


def test_a_host_with_a_gap_or_a_back_off_belongs_to_one(fleet: Fleet) -> None:
    job = fleet.job(*(site(str(n)) for n in range(300)))
    fleet.pipeline("p")
    fleet.pipeline("q")
    held = fleet.claim("p", 2)
    facts = {"a.example": HostFacts(wait_ms=5_000, reason="http 503", strikes=1)}
    fleet.send(job, finish_batch([finished(held[0][1])]), hosts=facts)
    assert fleet.claim("p") == []
    assert fleet.asked("q", 5).jobs == []
    fleet.serve(6_000)
    assert fleet.asked("q", 5).jobs == [], "it is the other's, who has a page of it"
    [part] = fleet.asked("p", 500).jobs
    assert len(part.claims) == 100
    fleet.amend(job, SetValues("ann", (("delay", "2000"),)))
    [part] = fleet.asked("p", 500).jobs
    assert (part.gaps, len(part.claims)) == ({"a.example": 2_000}, 30), "as many as a lease has room for"
    assert fleet.asked("q", 5).jobs == []


def test_pages_of_an_origin_that_rests_go_to_nobody_and_those_of_others_do(fleet: Fleet) -> None:
    other = [f"http://a.example:81/{n}" for n in range(3)]
    job = fleet.job(START, *other, ONE, TWO)
    fleet.pipeline("p")
    fleet.pipeline("q")
    held = fleet.claim("p", 2)
    assert [claim.url for _, claim in held] == [START, other[0]]
    fleet.release(held[1:])
    facts = {"a.example": HostFacts(answered="https", rests={"http://a.example:81": 5_000})}
    fleet.send(job, finish_batch([finished(held[0][1])]), hosts=facts)
    assert fleet.urls("p", 1) == [ONE]
    assert fleet.urls("q") == [TWO]
    assert fleet.urls("p") == []
    fleet.serve(6_000)
    assert fleet.urls("p") == other


def test_what_nobody_asks_any_more_is_asked_back(fleet: Fleet) -> None:
    fleet.job(START, ONE, settings={"delay": {"low": 500, "high": 500}})
    fleet.pipeline("p")
    fleet.finish(fleet.claim("p", 1))
    fleet.pipeline("q")
    assert fleet.asked("q", 1).jobs == []
    assert fleet.news("p").permits == {}, "it wanted pages a moment ago"
    fleet.serve(12_000)
    assert fleet.asked("q", 1).jobs == []
    assert fleet.news("p").permits == {"a.example": 0}
    fleet.give_way("q")
    assert [len(part.claims) for part in fleet.asked("q", 1).jobs] == [1]


# -- limits, sums


def test_limits_count_over_all_pipelines_and_pause_the_job(fleet: Fleet) -> None:
    job = fleet.job(*(site(str(n), f"{n % 9}.example") for n in range(60)), settings={"max_pages": 10})
    fleet.pipeline("p")
    fleet.pipeline("q")
    held = fleet.claim("p", 7) + fleet.claim("q", 7)
    assert len(held) == 10
    assert fleet.claim("p") == []
    fleet.finish(held[:4], status=0, error="reset: gone")
    held = held[4:] + fleet.claim("q")
    assert len(held) == 10, "what failed does not count"
    assert not fleet.job_row(job)["paused"]
    fleet.finish(held)
    assert fleet.claim("p") == []
    assert (fleet.job_row(job)["paused"], fleet.job_row(job)["reason"]) == (True, "limit: --max-pages 10")
    assert [(one.job, one.paused) for one in fleet.news("q").jobs] in ([], [(job, True)])
    fleet.amend(job, SetValues("ann", (("max-pages", "12"),)))
    fleet.amend(job, ResumeJob("ann"))
    assert len(fleet.claim("p")) == 2


def test_bytes_over_all_pipelines_pass_their_limit_by_what_was_out(fleet: Fleet) -> None:
    job = fleet.job(*(site(str(n), f"{n % 9}.example") for n in range(60)), settings={"max_bytes": 100})
    fleet.pipeline("p")
    fleet.pipeline("q")
    held = fleet.claim("p", 7) + fleet.claim("q", 7)
    _finish_sized(fleet, held[:9], 10)
    held = held[9:] + fleet.claim("q", 3)
    assert len(held) == 8, "90 bytes are less than 100"
    _finish_sized(fleet, held[:1], 10)
    assert fleet.claim("p") == fleet.claim("q") == []
    assert (fleet.job_row(job)["paused"], fleet.job_row(job)["reason"]) == (True, "limit: --max-bytes 100")
    _finish_sized(fleet, held[1:], 10)
    received = select(func.sum(job_sums.c.payload_bytes)).where(job_sums.c.job_id == job)
    assert fleet.db.connection.execute(received).scalar() == 170, "what was out is taken in"
    fleet.amend(job, ResumeJob("ann"))
    assert fleet.claim("p") == []
    assert fleet.job_row(job)["paused"], "it is still reached"
    fleet.amend(job, SetValues("ann", (("max-bytes", "171"),)))
    fleet.amend(job, ResumeJob("ann"))
    assert len(fleet.claim("p", 2)) == 2


def _finish_sized(fleet: Fleet, held: Held, size: int) -> None:
    """Finish pages, each with one row of the index of so many bytes."""
    for job, claim in held:
        page = structs.replace(finished_page(finished(claim)), exchanges=((claim.url, 200, "", size, 1),))
        epoch = session_of(claim.claim_id)
        answer = fleet.dispatch.finish(fleet.names[epoch], epoch, FinishCall(job=job, pages=[page]))
        assert answer.accepted == [claim.page_id]


def test_rows_of_the_index_are_added_up_once(fleet: Fleet) -> None:
    job = fleet.job(START)
    fleet.pipeline("p")
    [(_, claim)] = fleet.claim("p")
    page = finished_page(finished(claim))
    rows = ((START, 302, "", 5, 1), (START, 404, "", 7, 1), (START, 0, "reset: x", 0, 1), (START, 206, "", 1, 1))
    page = type(page)(**{name: getattr(page, name) for name in page.__struct_fields__} | {"exchanges": rows})
    for _ in range(2):
        fleet.dispatch.finish("p", fleet.epochs["p"], FinishCall(job=job, pages=[page]))
    c = job_sums.c
    names = "payload_bytes", "errors", "responses_2xx", "responses_3xx", "responses_4xx", "responses_unknown"
    sums = fleet.db.connection.execute(select(*(func.sum(c[name]) for name in names)).where(c.job_id == job)).one()
    assert tuple(map(int, sums)) == (13, 1, 1, 1, 1, 1)


def test_captures_that_are_lost_wait_again_and_no_other_ones(fleet: Fleet) -> None:
    job = fleet.job(START, ONE)
    fleet.pipeline("p")
    fleet.pipeline("q")
    fleet.finish(fleet.claim("p", 1))
    fleet.finish(fleet.claim("q", 1))
    assert fleet.state(job) == "FINISHED"
    call = LostCall(job=job, captures=[LostCapture(url=url, attempt=1) for url in (START, ONE, TWO)])
    assert fleet.dispatch.lost("p", fleet.epochs["p"], call).pending == 1
    assert (fleet.state(job), fleet.job_row(job)["outcome"]) == ("ACTIVE", "")
    assert fleet.urls("p") == [START]


# -- news, time


def test_news_have_a_higher_number_when_they_say_something_else(fleet: Fleet) -> None:
    job = fleet.job(START, ONE)
    fleet.pipeline("p")
    first = fleet.news("p")
    assert (first.news, first.slots, fleet.news("p", 1).news) == (1, [], 1)
    fleet.claim("p", 1)
    told = fleet.news("p", 1)
    assert (told.news, [(one.slot, one.job) for one in told.slots]) == (2, [(0, job)])
    assert fleet.beat("p") == 2
    fleet.db.connection.execute(jobs.update().where(jobs.c.id == job).values(paused=True))
    fleet.db.connection.execute(sessions.update().values(stopping=True))
    told = fleet.news("p", 2)
    assert (told.news, told.stop, told.jobs[0].paused) == (3, True, True)
    fleet.claim("p")
    told = fleet.news("p", 3)
    assert (told.slots, [one.job for one in told.jobs]) == ([], [job]), "it has a page of it still"


def test_a_time_in_which_nobody_serves_costs_no_session(fleet: Fleet) -> None:
    job = fleet.job(START)
    fleet.pipeline("p")
    fleet.serve(4_000)
    held = fleet.claim("p")
    for _ in range(3):
        fleet.now += 200_000
        fleet.dispatch.sweep()
        fleet.serve(10_000)
        fleet.beat("p")
    fleet.now += 10_000_000
    fleet.reopen()
    fleet.dispatch.sweep()
    assert fleet.finish(held)[0].accepted
    assert (fleet.state(job), fleet.page(job, START)["deaths"]) == ("FINISHED", 0)
    fleet.serve(70_000)
    with pytest.raises(SessionEndedError):
        fleet.beat("p")


def test_a_heartbeat_renews_the_lease_of_its_own_session_alone(fleet: Fleet) -> None:
    fleet.pipeline("p")
    fleet.pipeline("q")
    for _ in range(3):
        fleet.serve(50_000)
        fleet.beat("p")
        with pytest.raises(NotFoundError):
            fleet.dispatch.heartbeat("p", fleet.epochs["q"], HeartbeatCall())
    with pytest.raises(SessionEndedError):
        fleet.beat("q")
    fleet.beat("p", paused="disk")
    paused = select(sessions.c.paused).where(sessions.c.epoch == fleet.epochs["p"])
    assert fleet.db.connection.execute(paused).scalar_one() == "disk"
    fleet.serve(50_000)
    fleet.beat("p", paused="disk")
    fleet.serve(50_000)
    fleet.beat("p")
    assert fleet.db.connection.execute(paused).scalar_one() == ""


def test_the_shortest_lease_counts(fleet: Fleet) -> None:
    fleet.job(START)
    fleet.dispatch = Dispatch(fleet.db, lease_s=5, clock=fleet.clock)
    fleet.serve(4_000)
    fleet.pipeline("p")
    assert (fleet.dispatch.lease_s, fleet.say_hello("p").lease_s) == (5, 5)
    fleet.greet("p")
    assert fleet.dispatch.tracker_id == fleet.dispatch.tracker_id != ""
    fleet.serve(8_000)
    with pytest.raises(SessionEndedError):
        fleet.beat("p")


# -- servers beside each other


@pytest.fixture
def beside(fleet: Fleet) -> Iterator[Dispatch]:
    """A second server of the same tracker."""
    if not fleet.place.database:
        yield fleet.dispatch
        return
    with closing(opened(fleet.place)) as db:
        yield Dispatch(db, clock=fleet.clock)


def test_two_servers_give_a_host_to_no_more_than_its_limit(fleet: Fleet, beside: Dispatch) -> None:
    fleet.job(*(site(str(n), f"{n % 5}.example") for n in range(200)), settings={"per_host": 3})
    names = [fleet.pipeline(f"p{n}") for n in range(4)]
    own, given = fleet.dispatch, []
    for turn in range(6):
        held = []
        for at, name in enumerate(names):
            fleet.dispatch = own if (at + turn) % 2 else beside
            held += fleet.claim(name, 7)
            rows = fleet.db.connection.execute(
                select(host_permits.c.host, func.sum(host_permits.c.permits)).group_by(host_permits.c.host)
            )
            assert all(int(total) <= 3 for _, total in rows)
        fleet.finish(held)
        given += [claim.page_id for _, claim in held]
    assert given
    assert len(set(given)) == len(given)
