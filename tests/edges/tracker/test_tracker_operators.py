"""What operators ask of a fleet, by the functions that routes and commands share; on both databases."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET, json

from muniment.control.fleet import jobs, lines, pages, pipelines, tokens
from muniment.errors import NotFoundError, PlaceError, PrivateTargetError, UsageError
from muniment.model.link import FoundAs
from muniment.model.network.counts import PageCounts
from muniment.model.network.jobs import (
    GivenCookie,
    IgnoresCall,
    JobPatch,
    JobPipeline,
    JobSpec,
    LinesCall,
    ListLine,
    NiceCall,
    PageSums,
    RuleExamples,
    RulesCall,
    StashCall,
    UnstashCall,
)
from muniment.model.network.pipelines import LockCall, LostDiskCall, NewPipeline, PipelinePatch, SlotView
from muniment.model.network.tokens import TokenOrder
from muniment.model.pipeline import SessionEnding, SlotLock
from muniment.model.rule import Rule
from muniment.tracker.stores.cookies import CookieStore

START, ONE, TWO = "https://a.example/", "https://a.example/one", "https://a.example/two"
WEB = {START: [(ONE, FoundAs.A), (TWO, FoundAs.A)]}


def add(fleet, *urls: str, **given: Any) -> int:
    return jobs.add(fleet.db, JobSpec(urls=list(urls or (START,)), **given), "ann", fleet.now).id


def test_a_job_begins_with_all_that_was_ordered(fleet):
    cookie = GivenCookie(domain="a.example", name="k", value="v\xe9", expires_at=0)
    order = JobSpec(
        urls=[START, "HTTPS://A.example:443/#x"], settings={"per-host": 2, "level": 1, "ignore": ["/i"]},
        ignores=["/x"], ignore_sets=["phpbb"], rules=[Rule(regex="/n", nice=5)], cookies=[cookie], nice=-3,
        tags=["b", "a"], max_slots=2, name="books", explanation="they close", paused=True,
    )  # fmt: skip
    made = jobs.add(fleet.db, order, "ann", 5_000, where="server")
    assert made.settings == {"level": 1, "ignore": ["/i", "/x"], "per-host": 2}
    assert (made.name, made.nice, made.tags, made.max_slots, made.paused) == ("books", -3, ["a", "b"], 2, True)
    assert (made.explanation, made.started_by, made.created_at) == ("they close", "ann", 5_000)
    assert (made.state, made.pages, made.settings_age) == ("ACTIVE", PageSums(pending=1), 0)
    assert pages.rules(fleet.db, made.id).rules == order.rules
    assert CookieStore(fleet.db, made.id).header(START, 0) == "k=v\xe9"
    assert jobs.view(fleet.db, made.id) == made
    assert fleet.job_row(made.id)["settings"].find('"out":""') > 0, "nothing of a machine"


def test_a_job_that_makes_no_sense_leaves_nothing_behind(fleet):
    for order, text in (
        (JobSpec(), "no start URL"),
        (JobSpec(urls=["ftp://a.example/"]), "not an http or https URL"),
        (JobSpec(urls=["https://ann:secret@a.example/"]), "has an account"),
        (JobSpec(urls=[START], ignores=["("]), "not a regular expression|missing"),
        (JobSpec(urls=[START], ignore_sets=["no-such"]), "there is no ignore set"),
        (JobSpec(urls=[START], rules=[Rule(regex="x")]), "sets nothing"),
        (JobSpec(urls=[START], tags=["A B"]), "cannot be a tag"),
        (JobSpec(urls=[START], max_slots=-1), "max_slots must be at least 0"),
        (JobSpec(urls=[START], nice=10**9), "nice must be between"),
        (JobSpec(urls=[START], name="a\nb"), "control character"),
        (JobSpec(urls=[START], explanation="x" * 20_000), "longer than"),
        (JobSpec(urls=[START], settings={"workers": 3}), "muniment pipeline"),
        (JobSpec(urls=[START], cookies=[GivenCookie(domain="com", name="a", value="b")]), "many owners"),
        (JobSpec(urls=[START], cookies=[GivenCookie(domain="a.example", name="a\t", value="b")]), "control character"),
        (JobSpec(urls=[START], is_list=True), "no start URLs"),
    ):
        with pytest.raises(UsageError, match=text) as refused:
            jobs.add(fleet.db, order, "ann")
        assert "secret" not in str(refused.value)
    for host in "127.0.0.1", "localhost", "x.localhost", "10.1.2.3", "[::1]", "[::ffff:10.0.0.1]", "2130706433", "0":
        with pytest.raises(PrivateTargetError, match="not a public address"):
            jobs.add(fleet.db, JobSpec(urls=[f"http://{host}/"]), "ann")
    assert jobs.list_jobs(fleet.db).jobs == []
    assert jobs.add(fleet.db, JobSpec(urls=["http://127.0.0.1/"]), "ann", allow_private=True).state == "ACTIVE"


def test_how_a_job_stands_while_a_pipeline_works_at_it(fleet):
    job, other = add(fleet), add(fleet, "https://b.example/", paused=True)
    fleet.pipeline("p", "x", slots=2)
    fleet.finish(fleet.claim("p"), WEB)
    held = fleet.claim("p", 1)
    seen = jobs.view(fleet.db, job)
    assert seen.pages == PageSums(captured=1, pending=1, claimed=1, site=PageCounts(captured=1))
    assert seen.pipelines == [JobPipeline("p", 2, 1)]
    assert [one.id for one in jobs.list_jobs(fleet.db, limit=1).jobs] == [job]
    assert jobs.list_jobs(fleet.db, limit=1).next == job
    assert [one.id for one in jobs.list_jobs(fleet.db, after=job).jobs] == [other]
    assert jobs.list_jobs(fleet.db, state="FINISHED").jobs == []
    with pytest.raises(UsageError, match="there is no state"):
        jobs.list_jobs(fleet.db, state="OVER")

    listed = pages.pages(fleet.db, job)
    assert [(one.url, one.state, one.attempts, one.status, one.depth, one.pipeline) for one in listed.pages] == [
        (START, "READY", 1, 200, 0, "p"), (ONE, "CLAIMED", 0, 0, 1, "p"), (TWO, "READY", 0, 0, 1, ""),
    ]  # fmt: skip
    assert listed.next is None
    part = pages.pages(fleet.db, job, limit=2)
    assert [one.url for one in pages.pages(fleet.db, job, after=part.next or 0).pages] == [TWO]
    assert [one.url for one in pages.pages(fleet.db, job, state="CLAIMED").pages] == [ONE]
    assert [one.id for one in pages.pages(fleet.db, job, url=f"{TWO}#x").pages] == [listed.pages[2].id]
    assert pages.pages(fleet.db, job, url="https://c.example/").pages == []

    fleet.now += 10
    fleet.finish(held)
    tried = pages.attempts(fleet.db, job)
    assert [(one.url, one.number, one.pipeline, one.status) for one in tried.attempts] == [
        (START, 1, "p", 200), (ONE, 1, "p", 200)
    ]  # fmt: skip
    first = pages.attempts(fleet.db, job, limit=1)
    assert pages.attempts(fleet.db, job, after=first.next or "").attempts == tried.attempts[1:]
    with pytest.raises(UsageError, match="after"):
        pages.attempts(fleet.db, job, after="x")

    [view] = pipelines.list_pipelines(fleet.db).pipelines
    assert view.session is not None
    assert (view.name, view.tags, view.session.slots[0]) == ("p", ["x"], SlotView(0, job, SlotLock.NONE))
    assert view.session.claimed == 0


def test_jobs_that_are_not_there(fleet):
    for number in 0, -1, 7, 1 << 31, 1 << 70:
        for ask in jobs.view, jobs.changes, pages.pages, pages.attempts, pages.rules:
            with pytest.raises(NotFoundError, match="there is no job"):
                ask(fleet.db, number)
        with pytest.raises(NotFoundError):
            jobs.pause(fleet.db, number, "ann")


def test_garbage_is_refused_and_reaches_no_database(fleet):
    job = add(fleet)
    fleet.pipeline("p")
    for ask in (
        lambda: pages.stash(fleet.db, job, StashCall(host="a\0"), "bob"),
        lambda: pages.stash(fleet.db, job, StashCall(prefix="\0"), "bob"),
        lambda: pages.nice(fleet.db, job, NiceCall(nice=1, host="a\0"), "bob"),
        lambda: pages.nice(fleet.db, job, NiceCall(nice=1), "bob"),
        lambda: pages.nice(fleet.db, job, NiceCall(nice=1 << 40, host="a"), "bob"),
        lambda: pages.unstash(fleet.db, job, UnstashCall(most=-1), "bob"),
        lambda: pages.unstash(fleet.db, job, UnstashCall(most=1 << 70), "bob"),
        lambda: pages.attempts(fleet.db, job, after="1-1-99999"),
        lambda: pages.results(fleet.db, job, url="\0"),
        lambda: pages.set_rules(fleet.db, job, RulesCall([Rule(regex="(", skip=True)]), "bob"),
        lambda: jobs.fail(fleet.db, job, "a\0", "bob"),
        lambda: jobs.change(fleet.db, job, JobPatch(explanation="a\0"), "bob"),
        lambda: jobs.change(fleet.db, job, JobPatch(drip=1 << 40), "bob"),
        lambda: jobs.ignores(fleet.db, job, IgnoresCall(add=["a", "("]), "bob"),
        lambda: pipelines.lock(fleet.db, "p", LockCall(slot=1 << 40, lock=SlotLock.NONE), "bob"),
        lambda: pipelines.lock(fleet.db, "p", LockCall(slot=0, lock=SlotLock.NONE, job=1 << 40), "bob"),
        lambda: pipelines.view(fleet.db, "a\0"),
        lambda: pipelines.add(fleet.db, NewPipeline(name="a\0")),
        lambda: tokens.revoke(fleet.db, "a\0"),
    ):
        with pytest.raises(UsageError):
            ask()
    assert jobs.view(fleet.db, job).settings_age == 0
    assert pages.pages(fleet.db, job, after=1 << 80).pages == []


def test_changes_are_made_once_all_or_none_and_are_in_the_audit(fleet):
    job = add(fleet)
    made = jobs.change(fleet.db, job, JobPatch(settings={"delay": 250}, nice=2, max_slots=3, tags=["t"]), "bob")
    assert [(one.what, one.before, one.after) for one in made.changes] == [
        ("delay", "0", "250"), ("nice", "0", "2"), ("max_slots", "none", "3"), ("tags", "", "t")
    ]  # fmt: skip
    assert made.settings_age == 4
    for patch in (
        JobPatch(settings={"delay": 300}, max_slots=-2), JobPatch(nice=7, settings={"per-host": 0}),
        JobPatch(nice=7, settings={"level": 3}), JobPatch(nice=7, drip=-1),
    ):  # fmt: skip
        with pytest.raises(UsageError):
            jobs.change(fleet.db, job, patch, "bob")
    with pytest.raises(UsageError, match="no ignore pattern '/none'"):
        jobs.ignores(fleet.db, job, IgnoresCall(add=["/a"], remove=["/none"]), "bob")
    seen = jobs.view(fleet.db, job)
    assert (seen.settings, seen.nice, seen.max_slots, seen.settings_age) == ({"delay": 250}, 2, 3, 4)
    call = IgnoresCall(add=["/a", "/b"], add_sets=["phpbb"])
    assert jobs.ignores(fleet.db, job, call, "bob").settings_age == 7
    assert jobs.change(fleet.db, job, JobPatch(nice=2), "bob").changes == []
    told = jobs.changes(fleet.db, job, limit=5)
    assert (told.next, len(told.changes), told.changes[4].who) == (5, 5, "bob")
    assert [one.after for one in jobs.changes(fleet.db, job, after=5).changes] == ["/b", "set phpbb"]


def test_pauses_ends_and_returns_given_twice(fleet):
    job = add(fleet)
    for _ in range(2):
        assert jobs.pause(fleet.db, job, "bob").paused
    for _ in range(2):
        assert not jobs.resume(fleet.db, job, "bob").paused
    for _ in range(2):
        assert jobs.abort(fleet.db, job, "bob").outcome == "aborted"
    with pytest.raises(UsageError, match="nothing to pause"):
        jobs.pause(fleet.db, job, "bob")
    assert jobs.resume(fleet.db, job, "bob").state == "ACTIVE"
    jobs.pause(fleet.db, job, "bob")
    for _ in range(2):
        failed = jobs.fail(fleet.db, job, "they block us", "bob")
        assert (failed.state, failed.outcome, failed.reason) == ("ABORTED", "failed", "they block us")
    with pytest.raises(UsageError, match="a reason is necessary"):
        jobs.fail(fleet.db, job, "  ", "bob")
    resumed = jobs.resume(fleet.db, job, "bob")
    assert (resumed.state, resumed.paused, resumed.outcome, resumed.reason) == ("ACTIVE", False, "", "")
    told = [(one.what, one.after) for one in jobs.changes(fleet.db, job).changes]
    assert told == [
        ("paused", "yes"), ("paused", "no"), ("state", "ABORTED"), ("state", "ACTIVE"), ("paused", "yes"),
        ("state", "ABORTED"), ("failed", "they block us"), ("state", "ACTIVE"), ("paused", "no"),
    ]  # fmt: skip


def test_rules_nice_and_the_stash(fleet):
    job = add(fleet)
    fleet.pipeline("p")
    fleet.finish(fleet.claim("p"), WEB)
    call = RulesCall([Rule(regex="/one", skip=True)])
    effect = pages.rules_effect(fleet.db, job, call)
    assert (effect.skipped, effect.queued, effect.changed) == (1, 0, 0)
    assert effect.examples == RuleExamples(skipped=[(ONE, "rule 1: skip is true")])
    assert pages.rules(fleet.db, job).rules == []
    pages.set_rules(fleet.db, job, call, "bob")
    assert pages.set_rules(fleet.db, job, call, "bob").changes == []
    fleet.dispatch.changed(job)
    fleet.dispatch.sweep()
    other = RulesCall([Rule(prefix=TWO, nice=7), Rule(host="*.example", ua="other")])
    effect = pages.rules_effect(fleet.db, job, other)
    assert (effect.skipped, effect.queued, effect.changed) == (0, 1, 1)
    assert effect.examples.queued == [(ONE, "rule 1: skip is true")]
    assert effect.examples.changed == [(TWO, "nice 0 -> 7, ua")]
    pages.set_rules(fleet.db, job, RulesCall([]), "bob")
    fleet.dispatch.changed(job)
    fleet.dispatch.sweep()
    assert pages.rules(fleet.db, job).version == 3
    assert pages.rules(fleet.db, job, 1).rules == []
    assert pages.rules(fleet.db, job, 2).rules == call.rules
    with pytest.raises(NotFoundError, match="no version 4"):
        pages.rules(fleet.db, job, 4)
    assert pages.nice(fleet.db, job, NiceCall(nice=-5, host="a.example"), "bob").pages == 2
    assert pages.nice(fleet.db, job, NiceCall(nice=-5, host="*.example", prefix=TWO), "bob").pages == 1
    assert pages.stash(fleet.db, job, StashCall(prefix="https://b.example/"), "bob").pages == 0
    assert pages.stash(fleet.db, job, StashCall(host="A.example"), "bob").pages == 2
    assert jobs.view(fleet.db, job).pages.stashed == 2
    assert pages.unstash(fleet.db, job, UnstashCall(most=1), "bob").pages == 1
    assert pages.unstash(fleet.db, job, UnstashCall(), "bob").pages == 1


def test_the_lines_of_a_list_come_in_parts(fleet):
    job = jobs.add(fleet.db, JobSpec(is_list=True), "ann", fleet.now).id
    first = [ListLine(url=START, meta_json='{"a":"b"}'), ListLine(url="no url"), ListLine(url=ONE, digest="x")]
    assert lines.add_lines(fleet.db, job, LinesCall(at=0, lines=first)).at == 3
    for at in 0, 2, 4:
        with pytest.raises(PlaceError) as refused:
            lines.add_lines(fleet.db, job, LinesCall(at=at, lines=first))
        assert refused.value.at == 3
    for line, text in (
        (ListLine(url="https://ann:secret@a.example/"), "line 4: .*account"),
        (ListLine(url=TWO, meta_json="[1]"), "line 4: meta_json"),
        (ListLine(url=TWO, etag="a\0b"), "line 4: .*control"),
    ):
        with pytest.raises(UsageError, match=text):
            lines.add_lines(fleet.db, job, LinesCall(at=3, lines=[line]))
    assert lines.add_lines(fleet.db, job, LinesCall(at=3, lines=[ListLine(url=TWO)], end=True)).at == 4
    assert lines.add_lines(fleet.db, job, LinesCall(at=4, end=True)).at == 4, "once more"
    with pytest.raises(UsageError, match="the list has ended"):
        lines.add_lines(fleet.db, job, LinesCall(at=4, lines=[ListLine(url=TWO)]))
    with pytest.raises(UsageError, match="has no list"):
        lines.add_lines(fleet.db, add(fleet), LinesCall(at=0))
    assert [one.url for one in pages.pages(fleet.db, job).pages] == [START, ONE, TWO]
    fleet.pipeline("p")
    [claim] = [claim for _, claim in fleet.claim("p") if claim.url == START]
    assert (claim.meta_json, claim.seed_url) == ('{"a":"b"}', START)


def test_pipelines_are_registered_and_steered(fleet):
    made = pipelines.add(fleet.db, NewPipeline(name="berlin-2", tags=["b", "a"]))
    with pytest.raises(UsageError, match="there is a pipeline berlin-2 already"):
        pipelines.add(fleet.db, NewPipeline(name="berlin-2"))
    assert pipelines.new_token(fleet.db, "berlin-2").token != made.token
    assert pipelines.change(fleet.db, "berlin-2", PipelinePatch(matchonly=True)).tags == ["a", "b"]
    changed = pipelines.change(fleet.db, "berlin-2", PipelinePatch(tags=[]))
    assert (changed.tags, changed.matchonly, changed.session) == ([], True, None)
    for ask in (
        lambda: pipelines.view(fleet.db, "x"), lambda: pipelines.remove(fleet.db, "x"),
        lambda: pipelines.new_token(fleet.db, "x"), lambda: pipelines.change(fleet.db, "x", PipelinePatch(tags=UNSET)),
        lambda: pipelines.lost(fleet.db, "x", LostDiskCall()),
    ):  # fmt: skip
        with pytest.raises(NotFoundError, match="there is no pipeline 'x'"):
            ask()
    job = add(fleet)
    fleet.greet("berlin-2")
    locked = pipelines.lock(fleet.db, "berlin-2", LockCall(slot=0, lock=SlotLock.INDEFINITELY, job=job), "bob")
    assert locked.session is not None
    assert locked.session.slots == [SlotView(0, job, SlotLock.INDEFINITELY)]
    with pytest.raises(UsageError, match="is at work"):
        pipelines.remove(fleet.db, "berlin-2")
    fleet.end("berlin-2", SessionEnding.GOODBYE)
    pipelines.remove(fleet.db, "berlin-2")
    assert pipelines.list_pipelines(fleet.db).pipelines == []


def test_what_was_on_a_lost_disk_is_fetched_again(fleet):
    job = add(fleet)
    fleet.pipeline("p")
    fleet.finish(fleet.claim("p"), WEB)
    fleet.end("p", SessionEnding.GOODBYE)
    fleet.pipeline("q")
    fleet.finish(fleet.claim("q"))
    assert fleet.state(job) == "FINISHED"
    answer, changed = pipelines.lost(fleet.db, "p", LostDiskCall())
    assert (answer.pending, changed) == (1, [job])
    assert (fleet.state(job), jobs.view(fleet.db, job).pages) == (
        "ACTIVE",
        PageSums(pending=1, captured=2, site=PageCounts(captured=2)),
    )
    assert pipelines.lost(fleet.db, "p", LostDiskCall(job=job))[0].pending == 0


def test_tokens_of_operators(fleet):
    made = tokens.add(fleet.db, TokenOrder(name="ann", scopes=["read", "submit"], expires_s=60), 1_000)
    assert len(made.token) > 40
    for order, text in (
        (TokenOrder(name="ann", scopes=["read"]), "there is a token ann already"),
        (TokenOrder(name="bob", scopes=["root"]), "there is no scope 'root'"),
        (TokenOrder(name="bob", scopes=[]), "at least one scope"),
        (TokenOrder(name="b b", scopes=["read"]), "cannot be a token's name"),
        (TokenOrder(name="bob", scopes=["read"], expires_s=-1), "must expire"),
    ):
        with pytest.raises(UsageError, match=text):
            tokens.add(fleet.db, order)
    listed = tokens.list_tokens(fleet.db)
    [one] = listed.tokens
    assert (one.name, one.scopes, one.expires_at) == ("ann", ("read", "submit"), 61_000)
    assert made.token not in json.encode(listed).decode()
    tokens.revoke(fleet.db, "ann")
    with pytest.raises(NotFoundError):
        tokens.revoke(fleet.db, "ann")
