"""Sessions, leases, fences, deaths, audit, results and dry runs on a real tracker with pipelines."""

from __future__ import annotations

import contextlib
import os
import re
import tracemalloc

import pytest
from fleet_harness import Fleet
from sqlalchemy import func, select, text
from tracker_harness import A, site

from muniment.errors import NotFoundError, SessionEndedError, UsageError
from muniment.model.change import AddIgnore, ChangeMade, SetRules, SetValues
from muniment.model.job import JobOrigin, JobTerms
from muniment.model.network.sessions import GreetCall
from muniment.model.pipeline import HostReport, Pipeline, SessionEnding
from muniment.model.result import Result, ResultKind
from muniment.model.rule import Rule
from muniment.rules.job_rules import Rules, compile_ruleset
from muniment.settings.option_table import Settings
from muniment.tracker.fleet.pipelines import change_pipeline, find_pipeline, remove_pipeline
from muniment.tracker.jobs import store as jobs
from muniment.tracker.jobs import terms
from muniment.tracker.jobs.audit import changes_of
from muniment.tracker.jobs.changes import amend
from muniment.tracker.open import JobStart, StartPages, submit_job
from muniment.tracker.queue.rejudge import dry_run
from muniment.tracker.schema import tables
from muniment.tracker.schema.pipelines import assignments, sessions
from muniment.tracker.views.jobs import job_view

START, ONE, TWO = site(""), site("1"), site("2")


def everything(fleet: Fleet) -> object:
    return fleet.rows(tables.jobs, tables.pages, tables.attempts, tables.relations, tables.results, tables.hosts)


def test_a_job_at_hand_takes_little_memory(fleet):
    made = [fleet.job(site(f"of-{number}")) for number in range(10)]
    tracemalloc.start()
    try:
        for job in made:
            fleet.dispatch.changed(job)
        assert tracemalloc.get_traced_memory()[0] < 10 * 300_000
    finally:
        tracemalloc.stop()


# -- leases and fences


def test_a_lease_lasts_a_minute_and_a_heartbeat_renews_it(fleet):
    fleet.job(START)
    fleet.pipeline("p")
    answer = fleet.say_hello("p", instance="abc")
    assert (answer.lease_s, answer.heartbeat_s) == (60, 10)
    fleet.greet("p", instance="abc")
    for _ in range(8):
        fleet.serve(9_000)
        fleet.beat("p")
    fleet.serve(59_000)
    fleet.claim("p")
    fleet.serve(59_000)
    fleet.beat("p")
    fleet.serve(64_000)
    with pytest.raises(SessionEndedError) as ended:
        fleet.beat("p")
    assert (ended.value.ending, fleet.ask("p")) == ("LAPSED", None)


def test_a_broken_connection_is_not_death(fleet):
    job = fleet.job(START)
    fleet.pipeline("p")
    epoch = fleet.greet("p", instance="abc")
    held = fleet.claim("p")
    fleet.now += 30_000
    assert fleet.greet("p", instance="abc") == epoch
    fleet.finish(held)
    assert fleet.state(job) == "FINISHED"


@pytest.mark.parametrize(
    "ending", [SessionEnding.GOODBYE, SessionEnding.EXITED, SessionEnding.LAPSED, SessionEnding.REPLACED]
)
def test_what_a_session_held_goes_back_and_its_finishes_change_nothing(fleet, ending):
    job = fleet.job(START, ONE)
    fleet.pipeline("p")
    held = fleet.claim("p")
    assert fleet.state(job) == "DRAINING"
    before = fleet.epochs["p"]
    if ending is SessionEnding.LAPSED:
        fleet.serve(64_000)
    elif ending is SessionEnding.REPLACED:
        assert fleet.greet("p") > before
    else:
        fleet.end("p", ending)
        fleet.end("p", ending)
    assert (fleet.state(job), fleet.states(job)) == ("ACTIVE", {START: "READY", ONE: "READY"})
    assert fleet.page(job, START)["deaths"] == ending.is_death
    rows = everything(fleet)
    [report] = fleet.finish(held, {START: [(TWO, A)]})
    assert report.accepted == []
    assert everything(fleet) == rows
    assert fleet.db.connection.execute(select(sessions.c.ending).where(sessions.c.epoch == before)).scalar() == ending


def test_a_page_given_to_another_pipeline_is_fenced(fleet):
    job = fleet.job(START)
    fleet.pipeline("p")
    fleet.pipeline("q")
    late = fleet.claim("p")
    fleet.end("p", SessionEnding.EXITED)
    [(_, claim)] = mine = fleet.claim("q")
    assert claim.claim_id > late[0][1].claim_id
    fleet.finish(late, {START: [(ONE, A)]})
    assert (fleet.states(job), fleet.page(job, START)["claim_id"]) == ({START: "CLAIMED"}, claim.claim_id)
    fleet.finish(mine)
    before = everything(fleet)
    fleet.finish(mine)
    assert everything(fleet) == before


def test_numbers_of_claims_go_on_when_the_tracker_begins_anew(fleet):
    fleet.job(START, ONE, TWO)
    fleet.pipeline("p")
    first = fleet.claim("p", 1)
    fleet.reopen()
    second = fleet.claim("p", 1)
    assert second[0][1].claim_id > first[0][1].claim_id
    fleet.finish(first)
    fleet.finish(second)
    assert fleet.urls("p") == [TWO]


def test_a_page_that_kills_three_is_given_up_with_the_reason(fleet):
    job = fleet.job(START, ONE)
    fleet.pipeline("p")
    for died in range(2):
        assert fleet.urls("p") == [START, ONE]
        fleet.end("p", SessionEnding.EXITED)
        fleet.greet("p")
        assert fleet.page(job, START)["deaths"] == died + 1
    assert fleet.urls("p") == [START]
    fleet.reopen()
    assert fleet.urls("p") == [], "nothing goes beside a suspect"
    fleet.end("p", SessionEnding.EXITED)
    fleet.greet("p")
    assert [(claim.url, claim.barred) for _, claim in fleet.claim("p", 1)] == [(START, "limit: 3 workers died of it")]
    assert fleet.claim("p") == [], "the other suspect waits until nothing is beside it"


def test_goodbye_and_a_released_page_are_no_deaths_and_a_dead_worker_is_one(fleet):
    job = fleet.job(START, ONE)
    fleet.pipeline("p")
    fleet.claim("p")
    fleet.end("p", SessionEnding.GOODBYE)
    fleet.greet("p")
    held = {claim.url: (job, claim) for _, claim in fleet.claim("p")}
    assert fleet.release([held[START]]) == 1
    assert fleet.release([held[ONE], held[START]], died=True) == 1
    assert [fleet.page(job, url)["deaths"] for url in (START, ONE)] == [0, 1]
    assert fleet.urls("p") == [START, ONE]


def test_a_greeting_that_makes_no_sense_is_refused(fleet):
    fleet.pipeline("p")
    for instance, slots, says in (
        ("xyz", 1, "not a hexadecimal"),
        ("", 1, "not a hexadecimal"),
        ("ab" * 33, 1, "not a hexadecimal"),
        ("ab", 0, "from 1 to 1000 slots"),
        ("ab", 1001, "from 1 to 1000 slots"),
    ):
        with pytest.raises(UsageError, match=says):
            fleet.dispatch.greet("p", GreetCall(instance=instance, slots=slots))
    with pytest.raises(NotFoundError, match="no pipeline 'q'"):
        fleet.dispatch.greet("q", GreetCall(instance="ab", slots=1))


def test_a_report_of_the_machine_is_kept(fleet):
    fleet.pipeline("p")
    report = HostReport(
        fqdn="p.example", python="3.11", disk_free=1, disk_total=2, memory_free=3, memory_total=4, load=(0.5, 0.25, 0)
    )
    fleet.beat("p", report=report, paused="disk")
    c = sessions.c
    kept, at, why = fleet.db.connection.execute(select(c.report, c.reported_at, c.paused)).one()
    assert '"fqdn":"p.example"' in kept
    assert (at, why) == (fleet.now, "disk")
    with pytest.raises(UsageError, match="'lunch' is not a reason"):
        fleet.beat("p", paused="lunch")


def test_a_job_that_renders_goes_to_pipelines_with_a_browser(fleet):
    fleet.pipeline("p")
    fleet.pipeline("q")
    job, plain = fleet.job(START, settings={"engine": "auto"}), fleet.job(START)
    assert [one.job for one in fleet.ask("p")] == [plain]
    assert job_view(fleet.db, job).reason == "it waits for a pipeline with a browser"
    assert not job_view(fleet.db, plain).reason
    fleet.beat("q", report=HostReport(browser="156.0.1.2"))
    assert not job_view(fleet.db, job).reason
    assert [one.job for one in fleet.ask("q")] == [job]
    # a rule makes a job one that renders, and is taken back
    ruled = fleet.job(START)
    for rules, renders in (((Rule(engine="browser"),), True), ((Rule(engine="http"),), False)):
        with fleet.db.transaction():
            jobs.save_rules(fleet.db, ruled, Rules(in_order=rules), fleet.now)
        found = select(tables.jobs.c.renders).where(tables.jobs.c.id == ruled)
        assert bool(fleet.db.connection.execute(found).scalar_one()) is renders


def test_tags_may_change_and_a_pipeline_may_go(fleet):
    job = fleet.job(START, tags=frozenset({"tor"}))
    fleet.pipeline("p")
    assert fleet.ask("p") == []
    change_pipeline(fleet.db, Pipeline("p", frozenset({"tor"})))
    assert [one.job for one in fleet.ask("p")] == [job]
    with pytest.raises(UsageError, match="at work"):
        remove_pipeline(fleet.db, "p")
    fleet.end("p", SessionEnding.GOODBYE)
    remove_pipeline(fleet.db, "p")
    assert fleet.db.connection.execute(select(func.count()).select_from(assignments)).scalar_one() == 0
    with pytest.raises(UsageError, match="no pipeline 'q'"):
        remove_pipeline(fleet.db, "q")
    assert find_pipeline(fleet.db, "q") is None


def test_pages_go_by_hosts_that_are_due_in_turn(fleet):
    urls = [site(str(n), host) for host in ("a.example", "b.example") for n in range(150)]
    job = fleet.job(*urls)
    fleet.pipeline("p")
    hosts = [claim.host for _, claim in fleet.claim("p", 150)]
    # which is the first to have its turn, chance decides where several processes share the job
    assert sorted(map(hosts.count, ("a.example", "b.example"))) == [50, 100]
    book = fleet.work(job).frontier.hosts
    waits = type(book.waits_of(1))(until=fleet.now + 5_000, reason="asked for it")
    book.keep_waits(1, waits)
    assert {claim.host for _, claim in fleet.claim("p", 150)} == {"b.example"}
    fleet.now += 5_000
    assert "a.example" in {claim.host for _, claim in fleet.claim("p", 150)}


# -- jobs


def test_who_started_a_job_where_and_why(fleet):
    origin = JobOrigin("ann", "#archive", "it closes on Friday")
    start = JobStart(origin=origin)
    made = submit_job(fleet.db, "job", Settings(), StartPages((START,)), fleet.now, start=start).job.job_id
    row = fleet.job_row(made)
    assert (row["started_by"], row["started_in"], row["explanation"]) == ("ann", "#archive", "it closes on Friday")


def test_every_change_is_in_the_audit_and_the_age_counts_them(fleet):
    job = fleet.job(START)
    fleet.pipeline("p")
    fleet.amend(job, SetValues("ann", (("delay", "250"), ("tries", "5"), ("tries", "5"))))
    fleet.now += 1
    fleet.amend(job, AddIgnore("bob", "x"))
    fleet.amend(job, SetRules("bob", (Rule(ua="u"),)))
    assert terms.change_terms(fleet.db, job, "cat", JobTerms(nice=0, concurrency=0), fleet.now) == (
        ChangeMade("max_slots", "none", "0"),
    )
    fleet.abort(job, "dan")
    noted = changes_of(fleet.db, job)
    assert [(n.age, n.who, n.what, n.before, n.after) for n in noted] == [
        (1, "ann", "delay", "0", "250"), (2, "ann", "tries", "3", "5"), (3, "bob", "ignores", "", "x"),
        (4, "bob", "rules", "", '[{"ua":"u"}]'), (5, "cat", "max_slots", "none", "0"),
        (6, "dan", "state", "ACTIVE", "ABORTED"),
    ]  # fmt: skip
    assert [n.at for n in noted] == [fleet.now - 1] * 2 + [fleet.now] * 4
    assert fleet.job_row(job)["settings_age"] == 6
    assert [n.age for n in changes_of(fleet.db, job, since=4)] == [5, 6]


def test_a_claim_tells_the_age_of_the_settings(fleet):
    job = fleet.job(START, ONE)
    fleet.pipeline("p")
    assert [one.settings_age for one in fleet.ask("p", 1)] == [0]
    terms.change_terms(fleet.db, job, "ann", JobTerms(explanation="why not"), fleet.now)
    assert [one.settings_age for one in fleet.ask("p", 1)] == [1]


def test_terms_that_make_no_sense_are_refused(fleet):
    job = fleet.job(START)
    for wrong in (JobTerms(concurrency=-1), JobTerms(drip=-1), JobTerms(tags=frozenset({"Two Words"}))):
        with pytest.raises(UsageError):
            terms.change_terms(fleet.db, job, "ann", wrong, fleet.now)
    with pytest.raises(UsageError, match="there is no job 99"):
        terms.change_terms(fleet.db, 99, "ann", JobTerms(nice=1), fleet.now)
    with pytest.raises(UsageError, match="there is no job 99"):
        fleet.abort(99, "ann")
    assert changes_of(fleet.db, job) == []


def test_a_finished_job_is_not_aborted(fleet):
    job = fleet.job(START)
    fleet.pipeline("p")
    fleet.finish(fleet.claim("p"))
    with pytest.raises(UsageError, match="nothing to abort"):
        fleet.abort(job, "ann")


# -- rules


def test_a_dry_run_says_what_would_change_and_changes_nothing(fleet):
    job = fleet.job(START, *(site(str(n)) for n in range(30)))
    fleet.amend(job, AddIgnore("ann", "/[0-4]$"))
    fleet.dispatch.sweep()
    before = everything(fleet)
    made = compile_ruleset(
        9, Rules(ignore=("/1.$",), in_order=(Rule(prefix=START, depth=(1, None), skip=True),)), [START]
    )
    in_force = compile_ruleset(8, Rules(ignore=("/[0-4]$",)), [START])
    found = dry_run(fleet.db, job, made, in_force)
    assert (found.skipped.count, found.ready.count, found.changed.count) == (10, 5, 0)
    assert found.ready.examples[0][0] == site("0")
    assert found.skipped.examples[0] == (site("10"), "ignore: /1.$")
    assert everything(fleet) == before


def test_a_page_that_comes_nearer_is_judged_by_its_new_depth(tracker):
    near, far, page = site("near"), site("far"), site("page")
    web = {START: [(near, A), (far, A)], far: [(site("farther"), A)], site("farther"): [(page, A)], near: [(page, A)]}
    job = tracker(START)
    job.frontier.amend(SetRules("ann", (Rule(depth=(3, None), accept=False),)), 0)
    job.finish(job.take(START), web)
    job.finish(job.take(far), web)
    job.finish(job.take(site("farther")), web)
    assert (job.page(page)["state"], job.page(page)["reason"]) == ("SKIPPED", "rule 1: accept is false")
    report = job.finish(job.take(near), web)
    assert (job.page(page)["state"], job.page(page)["reason"]) == ("READY", "")
    assert sum(report.pending.values()) == 1
    assert job.take(page).depth == 2


def test_a_walk_that_a_kill_cut_off_is_made_whole_and_no_job_ends_before(fleet):
    job = fleet.job(START, ONE)
    fleet.pipeline("p")
    # the server is killed before it looks at a page
    amend(fleet.db, jobs.load_job(fleet.db, job), SetRules("ann", (Rule(prefix=ONE, skip=True),)), fleet.now)
    fleet.reopen()
    fleet.finish(fleet.claim("p"))
    assert (fleet.states(job)[ONE], fleet.state(job)) == ("SKIPPED", "ACTIVE")
    assert jobs.load_job(fleet.db, job).judged == 1
    fleet.dispatch.sweep()
    assert (jobs.load_job(fleet.db, job).judged, fleet.state(job)) == (2, "FINISHED")


def test_a_rule_holds_for_the_first_pages_when_its_change_returns(fleet):
    job = fleet.job(START, ONE)
    fleet.pipeline("p")
    fleet.amend(job, SetRules("ann", (Rule(prefix=ONE, nice=-5),)))
    assert next(claim.url for _, claim in fleet.claim("p")) == ONE


# -- results


def test_large_results_are_files_by_digest_once(fleet, tmp_path):
    job = fleet.job(START, ONE)
    fleet.pipeline("p")
    large, small = Result(ResultKind.OUTLINKS, b'["' + b"x" * 5000 + b'"]'), Result(ResultKind.STATUS_CODE, b"200")
    held = fleet.claim("p")
    fleet.finish(held, results=(large, small))
    files = list((tmp_path / "results").iterdir())
    assert [file.read_bytes() for file in files] == [large.value]
    book = fleet.work(job).frontier.results
    for _, claim in held:
        assert {r.kind: r.value for r in book.of_page(claim.page_id)} == {
            "outlinks": large.value,
            "status_code": b"200",
        }


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (Result("weather", b"1"), "unknown result 'weather'"),
        (Result(ResultKind.STATUS_CODE, b'"200"'), "status_code is not what it should be"),
        (Result(ResultKind.FINAL_URL, b"{"), "final_url is not"),
        (Result(ResultKind.CUSTOM_JS, b"", status="perhaps"), "invalid status 'perhaps'"),
    ],
)
def test_a_result_that_is_none_of_its_kind_is_refused_whole(fleet, result, says):
    job = fleet.job(START)
    fleet.pipeline("p")
    held = fleet.claim("p")
    before = everything(fleet)
    with pytest.raises(UsageError, match=says):
        fleet.finish(held, results=(result,))
    assert everything(fleet) == before
    fleet.finish(held)
    assert fleet.state(job) == "FINISHED"


# -- plans


def test_indexes_serve_what_they_say(fleet):
    fleet.job(START)

    def plan(sql: str) -> str:
        how = "EXPLAIN" if fleet.place.database else "EXPLAIN QUERY PLAN"
        return " ".join(row[-1] for row in fleet.db.connection.execute(text(f"{how} {sql}")))

    of_session = "SELECT id FROM pages WHERE job_id IN (SELECT id FROM jobs WHERE state != 'FINISHED') AND "
    assert "ix_pages_claimed" in plan(of_session + "pages.state = 'CLAIMED' AND claim_id BETWEEN 1 AND 9")
    stashed = "SELECT id FROM pages WHERE job_id = 1 AND state = 'STASHED' ORDER BY nice, id LIMIT 9"
    assert "ix_pages_stashed" in plan(stashed)
    assert not re.search("TEMP B-TREE|Sort", plan(stashed))
    assert "ix_sessions_live" in plan("SELECT epoch FROM sessions WHERE pipeline_id = 'p' AND ended_at IS NULL")


def test_a_disk_that_takes_no_result_ends_in_one_line(fleet, tmp_path):
    fleet.job(START)
    fleet.pipeline("p")
    held = fleet.claim("p")
    (tmp_path / "results").write_text("in the way")
    with pytest.raises(Exception, match="a result cannot be kept in") as failed, contextlib.suppress(OSError):
        fleet.finish(held, results=(Result(ResultKind.SCREENSHOT, os.urandom(9000), media_type="image/png"),))
    assert type(failed.value).__name__ == "TrackerError"
    (tmp_path / "results").unlink()
    fleet.finish(held)
