"""Seed 002, sentence by sentence: what it says of the tracker is so. Each test names what it is about."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from fleet_harness import Fleet
from sqlalchemy import func, select, update
from tracker_harness import IMG, A, site

import muniment.tracker
from muniment.errors import UsageError
from muniment.model.change import AddIgnore, RemoveIgnore, SetRules
from muniment.model.job import JobTerms
from muniment.model.page import PageState
from muniment.model.pipeline import Pipeline, SessionEnding, SlotLock
from muniment.model.result import Result, ResultKind
from muniment.model.rule import Rule
from muniment.rules.scope import FAR
from muniment.tracker.fleet import slot_assignments
from muniment.tracker.fleet.pipelines import add_pipeline, authenticate, new_token
from muniment.tracker.jobs import terms
from muniment.tracker.schema.changes import job_rulesets
from muniment.tracker.schema.pipelines import metadata
from muniment.tracker.schema.tables import attempts, pages, relations

SENTENCES = {
    "core": "SQLAlchemy's Core is a builder of queries here; nothing of its ORM is used",
    "pipeline": "a pipeline is a worker, and its slots let it have several pages at once",
    "job": "a job is a group of pages",
    "page": "a page is one URL of a job, whatever leads to it",
    "relation": "a link from page to page makes a relation",
    "attempt": "each try at a page is an attempt",
    "result": "what an attempt saves, a screenshot say, is a result",
    "nice": "lower nice values go first, for jobs as for pages",
    "identifier": "a pipeline has an identifier that people can read",
    "token": "a pipeline shows a random token, no signature",
    "tags": "a job may ask for a tag, and runs only on pipelines that have it",
    "matchonly": "a matchonly pipeline runs only jobs that name one of its tags",
    "queue": "jobs wait by priority, then first in first out",
    "active": "an ACTIVE job may be handed out",
    "draining": "a DRAINING job has pages out and none waiting, and is not handed out",
    "finished": "a FINISHED job has no page out and none waiting, and is not handed out",
    "aborted": "an ABORTED job is not handed out, and may be taken up again at any time",
    "paused": "concurrency 0 is how a job is paused",
    "sticks": "a pipeline stays with its job unless a better one shows up",
    "steady": "while no job changes state, no slot changes its job",
    "locks": "a lock holds indefinitely, or until the job is finished",
    "locked": "a locked pipeline gets no other job",
    "relations": "a page has one row, and any number of relations",
    "lowest": "the lowest depth over all relations decides, whatever the order of completion",
    "certain": "nothing is out of scope for certain while pages in scope are not completed",
    "kept": "pages that are too deep are in the queue all the same, for a shorter path may come",
    "repaired": "a shorter path is told to the relations of a page, and to theirs",
    "ready": "READY: may be handed out",
    "claimed": "CLAIMED: a pipeline has it, and nobody else gets it",
    "skipped": "SKIPPED: left out by a rule, and not handed out",
    "stashed": "STASHED: not handed out",
    "counters": "no state says that a page is finished: its attempts do",
    "complete": "a job is complete when no page is READY or CLAIMED",
    "order": "rules are applied in order, and the last value counts",
    "accept": "accept: whether a URL is added to the queue",
    "skip": "skip: a page becomes SKIPPED instead of being handed out",
    "custom_js": "custom_js: JavaScript to run",
    "ua": "ua: how the user agent behaves",
    "latest": "the latest ruleset when a page is handed out holds for that attempt",
    "old": "old rulesets are kept for old attempts",
}
_said: set[str] = set()


def says(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    assert set(names) <= set(SENTENCES)
    _said.update(names)
    return lambda test: test


START, ONE, TWO, THREE = site(""), site("1"), site("2"), site("3")
WEB = {START: [(ONE, A), (TWO, A)]}


def test_every_sentence_is_named_by_a_test():
    assert _said == set(SENTENCES)


@says("core")
def test_no_orm_anywhere():
    for path in Path(muniment.tracker.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not any(name.startswith("sqlalchemy.orm") for name in names), path


# -- pipelines


@says("pipeline", "job")
def test_slots_let_a_pipeline_work_at_several_jobs_and_pages(fleet):
    first, second = fleet.job(START, ONE, concurrency=1), fleet.job(TWO, THREE)
    fleet.pipeline("wide", slots=2)
    held = fleet.claim("wide")
    assert {job: [c.url for j, c in held if j == job] for job, _ in held} == {
        first: [START, ONE], second: [TWO, THREE]
    }  # fmt: skip


@says("identifier")
@pytest.mark.parametrize("name", ["", "Berlin 2", "-x", "a" * 65, "b\n"])
def test_a_pipeline_has_a_readable_name(fleet, name):
    with pytest.raises(UsageError, match="cannot be a pipeline's name"):
        add_pipeline(fleet.db, Pipeline(name), 0)
    fleet.pipeline("berlin-2")
    with pytest.raises(UsageError, match="already"):
        add_pipeline(fleet.db, Pipeline("berlin-2"), 0)


@says("token")
def test_a_pipeline_shows_a_random_token_that_is_not_kept(fleet):
    token = add_pipeline(fleet.db, Pipeline("p", frozenset({"a"})), 0)
    assert authenticate(fleet.db, "p", token) == Pipeline("p", frozenset({"a"}))
    assert authenticate(fleet.db, "p", token + "x") is None
    assert authenticate(fleet.db, "q", token) is None
    assert authenticate(fleet.db, "q", "") is None
    other = new_token(fleet.db, "p")
    assert other != token
    assert authenticate(fleet.db, "p", token) is None
    assert authenticate(fleet.db, "p", other)
    kept = repr(fleet.rows(*metadata.sorted_tables)).encode()
    fleet.close()
    kept += b"".join(path.read_bytes() for path in fleet.place.directory.glob("tracker.sqlite*"))
    assert repr(hashlib.sha256(other.encode()).digest()).encode() in kept
    assert token.encode() not in kept
    assert other.encode() not in kept


@says("tags")
def test_a_job_with_a_tag_runs_on_pipelines_that_have_it(fleet):
    tagged = fleet.job(START, tags=frozenset({"tor"}))
    fleet.pipeline("plain")
    fleet.pipeline("with-tor", "tor", "fast")
    assert fleet.ask("plain") == []
    assert [one.job for one in fleet.ask("with-tor")] == [tagged]


@says("matchonly")
def test_a_matchonly_pipeline_waits_for_jobs_with_its_tags(fleet):
    fleet.job(START)
    fleet.pipeline("picky", "tor", matchonly=True)
    assert fleet.ask("picky") == []
    tagged = fleet.job(START, tags=frozenset({"tor"}))
    assert [one.job for one in fleet.ask("picky")] == [tagged]


# -- jobs


@says("queue", "nice")
def test_jobs_wait_by_nice_value_then_first_in_first_out(fleet):
    late, first, _, urgent = (fleet.job(START, nice=nice) for nice in (5, 0, 0, -1))
    fleet.pipeline("p")
    order = []
    for _ in range(3):
        order.append(fleet.ask("p", 1)[0].job)
        terms.abort(fleet.db, order[-1], "tester", fleet.now)
    assert order[:2] == [urgent, first]
    assert late not in order


@says("nice")
def test_pages_wait_by_nice_value_too(fleet):
    job = fleet.job(START, ONE, TWO)
    with fleet.db.transaction() as connection:
        connection.execute(update(pages).where(pages.c.url == TWO).values(nice=-5))
    fleet.pipeline("p")
    assert fleet.urls("p") == [TWO, START, ONE]
    assert fleet.job_row(job)["nice"] == 0


@says("active", "draining", "finished", "complete", "ready", "claimed")
def test_a_job_is_active_then_draining_then_finished(fleet):
    job = fleet.job(START, ONE)
    other = fleet.job(TWO)
    fleet.pipeline("p")
    fleet.pipeline("q")
    assert (fleet.state(job), fleet.states(job)) == ("ACTIVE", {START: "READY", ONE: "READY"})
    held = fleet.claim("p")
    assert (fleet.state(job), fleet.states(job)) == ("DRAINING", {START: "CLAIMED", ONE: "CLAIMED"})
    assert [one.job for one in fleet.ask("q")] == [other]
    fleet.finish(held[:1])
    assert fleet.state(job) == "DRAINING"
    fleet.finish(held[1:])
    assert (fleet.state(job), fleet.job_row(job)["outcome"]) == ("FINISHED", "completed")
    assert fleet.job_row(job)["finished_at"] == fleet.now
    assert fleet.ask("p") == []


@says("active")
def test_outlinks_make_a_draining_job_active_again(fleet):
    job = fleet.job(START)
    fleet.pipeline("p")
    fleet.finish(fleet.claim("p"), WEB)
    assert fleet.state(job) == "ACTIVE"
    assert fleet.urls("p") == [ONE, TWO]


@says("finished")
def test_a_job_of_which_no_start_page_answered_has_failed(fleet):
    job = fleet.job(START, settings={"tries": 1})
    fleet.pipeline("p")
    fleet.finish(fleet.claim("p"), status=0, error="dns: no such name")
    assert (fleet.state(job), fleet.job_row(job)["outcome"]) == ("FINISHED", "failed")


@says("aborted")
def test_an_aborted_job_is_not_handed_out_until_it_is_taken_up_again(fleet):
    job = fleet.job(START, ONE)
    fleet.pipeline("p")
    held = fleet.claim("p", 1)
    fleet.abort(job, "ann")
    row = fleet.job_row(job)
    assert (row["state"], row["outcome"], row["finished_at"]) == ("ABORTED", "aborted", fleet.now)
    assert fleet.ask("p") == []
    fleet.finish(held, {START: [(THREE, A)]})
    assert fleet.state(job) == "ABORTED"
    assert fleet.ask("p") == []
    fleet.resume(job, "ann")
    assert (fleet.state(job), fleet.job_row(job)["outcome"]) == ("ACTIVE", "")
    assert fleet.urls("p") == [ONE, THREE]
    age = fleet.job_row(job)["settings_age"]
    fleet.resume(job, "ann")
    assert fleet.job_row(job)["settings_age"] == age, "once more changes nothing"


@says("aborted")
def test_an_aborted_job_whose_pages_are_done_is_finished_when_taken_up_again(fleet):
    job = fleet.job(START)
    fleet.pipeline("p")
    held = fleet.claim("p")
    fleet.abort(job, "ann")
    fleet.finish(held)
    fleet.resume(job, "ann")
    assert (fleet.state(job), fleet.job_row(job)["outcome"]) == ("FINISHED", "completed")


@says("paused")
def test_concurrency_0_pauses_and_does_not_abort(fleet):
    job = fleet.job(START, ONE)
    fleet.pipeline("p")
    fleet.claim("p", 1)
    terms.change_terms(fleet.db, job, "ann", JobTerms(concurrency=0), fleet.now)
    assert fleet.ask("p") == []
    assert fleet.state(job) == "ACTIVE"
    terms.change_terms(fleet.db, job, "ann", JobTerms(concurrency=None), fleet.now)
    assert fleet.urls("p") == [ONE]


@says("paused")
def test_concurrency_bounds_the_slots_of_all_pipelines(fleet):
    one, two = fleet.job(START, ONE, TWO, concurrency=1), fleet.job(THREE, START)
    for name in "pq":
        fleet.pipeline(name)
        fleet.claim(name, 1)
    assert (fleet.slots("p"), fleet.slots("q")) == ([one], [two])
    fleet.end("p", SessionEnding.GOODBYE)
    fleet.claim("q", 1)
    assert fleet.slots("q") == [one]


@says("sticks")
def test_a_slot_leaves_its_job_only_for_a_better_one(fleet):
    job = fleet.job(START, ONE, nice=1)
    fleet.pipeline("p")
    fleet.claim("p", 1)
    fleet.job(TWO, nice=1)
    fleet.claim("p", 0)
    assert fleet.slots("p") == [job]
    better = fleet.job(THREE, nice=0)
    assert fleet.urls("p", 1) == [THREE]
    assert fleet.slots("p") == [better]


@says("steady")
def test_slots_stay_while_no_job_changes(fleet):
    for number in range(4):
        fleet.job(*(site(f"{number}/{n}") for n in range(40)), concurrency=2, nice=-number)
    names = [fleet.pipeline(name, slots=2) for name in "abc"]
    for name in names:
        fleet.claim(name, 2)
    before = {name: fleet.slots(name, 2) for name in names}
    assert sorted(job for slots in before.values() for job in slots) == [2, 2, 3, 3, 4, 4]
    for name in "cabbac":
        fleet.claim(name, 2)
        assert {name: fleet.slots(name, 2) for name in names} == before


@says("locks", "locked")
@pytest.mark.parametrize("lock", [SlotLock.INDEFINITELY, SlotLock.UNTIL_FINISHED])
def test_a_locked_pipeline_gets_no_other_job(fleet, lock):
    job = fleet.job(START)
    fleet.pipeline("p", slots=2)
    held = fleet.claim("p", 1)
    slot_assignments.lock_slot(fleet.db, "p", 0, lock, fleet.now)
    better = fleet.job(TWO, nice=-10)
    assert fleet.ask("p") == []
    assert fleet.slots("p", 2) == [job, job], "the last pages of its job are out"
    fleet.finish(held)
    assert fleet.state(job) == "FINISHED"
    gets = [one.job for one in fleet.ask("p")]
    assert gets == ([] if lock is SlotLock.INDEFINITELY else [better])
    if lock is SlotLock.INDEFINITELY:
        slot_assignments.lock_slot(fleet.db, "p", 0, SlotLock.NONE, fleet.now)
        assert [one.job for one in fleet.ask("p")] == [better]


@says("locks")
def test_aborting_takes_a_lock_off_and_a_lock_outlives_the_session(fleet):
    job, other = fleet.job(START), fleet.job(TWO, nice=-1)
    fleet.pipeline("p")
    slot_assignments.lock_slot(fleet.db, "p", 0, SlotLock.UNTIL_FINISHED, fleet.now, job)
    fleet.end("p", SessionEnding.GOODBYE)
    fleet.greet("p")
    assert [one.job for one in fleet.ask("p", 1)] == [job]
    fleet.abort(job, "ann")
    assert [one.job for one in fleet.ask("p", 1)] == [other]
    with pytest.raises(UsageError, match="ABORTED already"):
        slot_assignments.lock_slot(fleet.db, "p", 0, SlotLock.UNTIL_FINISHED, fleet.now, job)


# -- pages and relations


@says("page", "relation", "relations")
def test_a_page_has_one_row_and_any_number_of_relations(tracker):
    job = tracker(START)
    job.crawl({url: [(other, A) for other in (START, ONE, TWO)] for url in (START, ONE, TWO)})
    for table in (pages, relations):
        counted = select(func.count()).where(table.c.job_id == job.job_id)
        assert job.db.connection.execute(counted).scalar_one() == 3
    assert all(len(job.children(url)) == 3 for url in (START, ONE, TWO))


@says("attempt")
def test_each_try_is_an_attempt_with_its_session_and_rules(fleet):
    job = fleet.job(START, settings={"tries": 2})
    epoch = fleet.epochs[fleet.pipeline("p")]
    fleet.finish(fleet.claim("p"), status=503, done=False)
    fleet.finish(fleet.claim("p"))
    found = select(attempts.c.number, attempts.c.session, attempts.c.ruleset, attempts.c.status)
    assert fleet.db.connection.execute(found.where(attempts.c.job_id == job)).all() == [
        (1, epoch, 1, 503), (2, epoch, 1, 200)
    ]  # fmt: skip


@says("result")
def test_a_screenshot_is_a_result(fleet):
    job = fleet.job(START)
    fleet.pipeline("p")
    [(_, claim)] = fleet.claim("p")
    picture = b"\x89PNG" + bytes(range(256)) * 50
    shot = Result(ResultKind.SCREENSHOT, picture, media_type="image/png")
    fleet.finish([(job, claim)], results=(shot,))
    [kept] = fleet.work(job).frontier.results.of_page(claim.page_id)
    assert (kept.kind, kept.status, kept.media_type, kept.value) == ("screenshot", "done", "image/png", picture)


@says("lowest", "repaired", "kept")
def test_a_page_beyond_the_level_comes_in_by_a_shorter_path(tracker):
    far = {START: [(ONE, A), (TWO, A)], ONE: [(THREE, A)], THREE: [(site("4"), A)], site("4"): [(site("5"), A)]}
    web = {**far, TWO: [(site("4"), A)]}
    job = tracker(START, level=3)
    job.finish(job.take(START), web)
    job.finish(job.take(ONE), web)
    job.finish(job.take(THREE), web)
    job.finish(job.take(site("4")), web)
    assert job.hops(site("5")) == (4, FAR)
    assert not job.page(site("5"))["in_scope"]
    assert job.page(site("5"))["state"] == "READY"
    job.finish(job.take(TWO), web)
    while job.frontier.updating_depths:
        job.frontier.update_depths()
    assert job.hops(site("5")) == (3, FAR)
    assert job.take(site("5")).depth == 3


@says("certain")
def test_a_job_is_not_finished_while_shorter_paths_are_to_be_told(fleet):
    job = fleet.job(START)
    fleet.pipeline("p")
    fleet.finish(fleet.claim("p"))
    assert fleet.state(job) == "FINISHED"
    with fleet.db.transaction() as connection:
        connection.execute(muniment.tracker.schema.tables.repairs.insert().values(job_id=job, page_id=1))
    assert muniment.tracker.jobs.store.settle(fleet.db, job, fleet.now) == "ACTIVE"
    fleet.reopen()
    fleet.dispatch.sweep()
    assert fleet.state(job) == "FINISHED"


@says("stashed")
def test_a_stashed_page_is_not_handed_out(fleet):
    job = fleet.job(START, ONE, TWO)
    fleet.pipeline("p")
    assert fleet.stash(job, prefix=ONE) == 1
    assert fleet.states(job)[ONE] == "STASHED"
    fleet.finish(fleet.claim("p"))
    assert (fleet.claim("p"), fleet.state(job)) == ([], "DRAINING")
    assert fleet.unstash(job) == 1
    assert fleet.state(job) == "ACTIVE"
    assert fleet.urls("p") == [ONE]


@says("stashed")
def test_a_stash_is_fed_back_some_pages_at_a_time(fleet):
    urls = [site(str(n)) for n in range(6)]
    job = fleet.job(START, *urls)
    fleet.pipeline("p")
    assert fleet.stash(job) == 7
    assert fleet.state(job) == "DRAINING"
    terms.change_terms(fleet.db, job, "ann", JobTerms(drip=3), fleet.now)
    assert fleet.unstash(job, 1) == 1
    rounds = []
    while held := fleet.claim("p"):
        rounds.append([claim.url for _, claim in held])
        fleet.finish(held)
    assert rounds == [[START], urls[:3], urls[3:]]
    assert fleet.state(job) == "FINISHED"


@says("counters")
def test_attempts_say_that_a_page_is_done(tracker):
    job = tracker(START, ONE, tries=2)
    job.finish(job.take(START))
    job.finish(job.take(ONE), status=503, done=False)
    job.finish(job.take(ONE), status=503)
    counters = {
        url: (p["state"], p["attempts"], p["attempts_remaining"]) for url in (START, ONE) if (p := job.page(url))
    }
    assert counters == {START: ("READY", 1, 0), ONE: ("READY", 2, 0)}
    assert job.claim() == []
    assert "FINISHED" not in set(PageState)


# -- rules


def steer(fleet: Fleet, job: int, *rules: Rule) -> None:
    fleet.amend(job, SetRules("ann", rules))
    for _ in range(3):
        fleet.dispatch.sweep()


@says("accept", "order")
def test_accept_decides_what_is_added_to_the_queue(fleet):
    job = fleet.job(START)
    fleet.pipeline("p")
    steer(fleet, job, Rule(prefix=START, accept=False), Rule(regex="2$", accept=True), Rule(prefix=THREE, accept=True))
    fleet.finish(fleet.claim("p"), {START: [(ONE, A), (TWO, A), (THREE, IMG)]})
    assert fleet.states(job) == {START: "READY", ONE: "SKIPPED", TWO: "READY", THREE: "READY"}
    assert fleet.page(job, ONE)["reason"] == "rule 1: accept is false"


@says("skip", "skipped", "order")
def test_skip_leaves_out_what_waits_and_brings_it_back(fleet):
    job = fleet.job(START, ONE, TWO)
    fleet.pipeline("p")
    fleet.amend(job, SetRules("ann", (Rule(skip=True), Rule(prefix=TWO, skip=False))))
    assert fleet.urls("p") == [TWO]
    assert fleet.states(job) == {START: "SKIPPED", ONE: "SKIPPED", TWO: "CLAIMED"}
    assert fleet.page(job, ONE)["reason"] == "rule 1: skip is true"
    steer(fleet, job, Rule(prefix=ONE, skip=True))
    assert fleet.urls("p") == [START]


@says("accept", "skip")
def test_an_ignore_pattern_is_accept_false_and_skip_true(fleet):
    job = fleet.job(START, ONE)
    fleet.pipeline("p")
    fleet.amend(job, AddIgnore("ann", "/[12]$"))
    held = fleet.claim("p")
    assert [claim.url for _, claim in held] == [START]
    fleet.finish(held, WEB)
    assert fleet.states(job) == {START: "READY", ONE: "SKIPPED", TWO: "SKIPPED"}
    steer(fleet, job, Rule(prefix=ONE, accept=True, skip=False))
    assert fleet.urls("p") == [ONE]
    fleet.amend(job, RemoveIgnore("ann", "/[12]$"))
    fleet.dispatch.sweep()
    assert fleet.urls("p") == [TWO]


@says("custom_js", "ua")
def test_orders_come_with_the_claim_and_are_not_run_until_somebody_did(fleet):
    job = fleet.job(START, ONE)
    fleet.pipeline("p")
    steer(fleet, job, Rule(custom_js="1", ua="stealth"), Rule(prefix=ONE, custom_js="2"), Rule(prefix=TWO, ua="x"))
    held = fleet.claim("p")
    assert [(c.url, c.orders.custom_js, c.orders.ua) for _, c in held] == [
        (START, "1", "stealth"),
        (ONE, "2", "stealth"),
    ]
    fleet.finish(held[:1])
    book = fleet.work(job).frontier.results
    assert [(r.kind, r.status) for r in book.of_page(held[0][1].page_id)] == [
        ("custom_js", "not-run"),
        ("ua", "not-run"),
    ]
    ran = Result(ResultKind.CUSTOM_JS, b'{"n":1}')
    fleet.finish(held[1:], results=(ran,))
    kept = {r.kind: (r.status, r.value) for r in book.of_page(held[1][1].page_id)}
    assert kept == {"custom_js": ("done", b'{"n":1}'), "ua": ("not-run", b"")}


@says("latest", "old")
def test_the_ruleset_at_the_claim_holds_for_the_attempt_and_older_ones_stay(fleet):
    job = fleet.job(START, ONE)
    fleet.pipeline("p")
    steer(fleet, job, Rule(ua="two"))
    held = fleet.claim("p", 1)
    steer(fleet, job, Rule(ua="three"))
    fleet.finish(held)
    fleet.finish(fleet.claim("p"))
    found = select(attempts.c.page_id, attempts.c.ruleset).where(attempts.c.job_id == job)
    assert dict(map(tuple, fleet.db.connection.execute(found))) == {1: 2, 2: 3}
    versions = select(job_rulesets.c.version).where(job_rulesets.c.job_id == job).order_by(job_rulesets.c.version)
    assert fleet.db.connection.execute(versions).scalars().all() == [1, 2, 3]
