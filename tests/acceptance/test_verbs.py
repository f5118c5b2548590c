"""Each verb leaves one change when it is given twice, late, or cut off before its answer; at rest and in a run."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from crawled import wait_until
from tests.support.gated_site import GatedSite

from muniment.control.verbs import delivery
from muniment.control.verbs.delivery import JobDirectory, deliver, job_age
from muniment.control.verbs.ignores import add_ignore, add_ignore_set, remove_ignore, remove_ignore_set
from muniment.control.verbs.job import abort, change_terms, resume
from muniment.control.verbs.locks import lock, unlock
from muniment.control.verbs.nice import set_nice
from muniment.control.verbs.rules import replace_rules
from muniment.control.verbs.settings import set_values
from muniment.control.verbs.stash import stash, unstash
from muniment.errors import UsageError
from muniment.model.change import Change, ChangeMade, ChangeReply
from muniment.model.job import JobTerms
from muniment.model.pipeline import Pipeline, SlotLock
from muniment.model.place import TrackerPlace
from muniment.model.rule import Rule
from muniment.settings.option_table import Settings
from muniment.tracker.connect import tracker_at, tracker_to_read
from muniment.tracker.fleet.pipelines import add_pipeline
from muniment.tracker.jobs import store as jobs
from muniment.tracker.jobs.audit import AuditEntry, changes_of
from muniment.tracker.open import StartPages, open_job

Verb = Callable[..., tuple[ChangeMade, ...]]
PATHS = [f"/p{number}.html" for number in range(30)]
HOST = "127.0.0.1"
VERBS: list[tuple[str, Verb]] = [
    ("set", lambda job, **key: set_values(job, [("delay", "15000"), ("tries", "2")], **key)),
    ("nice", lambda job, **key: set_nice(job, -5, host=HOST, **key)),
    ("ignore", lambda job, **key: add_ignore(job, "/p7", **key)),
    ("unignore", lambda job, **key: remove_ignore(job, "/p7", **key)),
    ("ignore a set", lambda job, **key: add_ignore_set(job, "phpbb", **key)),
    ("unignore a set", lambda job, **key: remove_ignore_set(job, "phpbb", **key)),
    ("rules", lambda job, **key: replace_rules(job, [Rule(regex="/p8", ua="firefox")], **key)),
    ("terms", lambda job, **key: change_terms(job, JobTerms(nice=3, explanation="because"), **key)),
    ("stash", lambda job, **key: stash(job, host=HOST, **key)),
    ("unstash", lambda job, **key: unstash(job, 4, **key)),
    ("unstash the rest", unstash),
]
ENDS: list[tuple[str, Verb]] = [
    ("abort", abort),
    ("resume", resume),
]


def audit(job: JobDirectory) -> list[AuditEntry]:
    with tracker_to_read(job.tracker) as db:
        found = jobs.find_job(db)
        assert found is not None
        return changes_of(db, found.job_id)


def state(job: JobDirectory) -> str:
    with tracker_to_read(job.tracker) as db:
        found = jobs.find_job(db)
        assert found is not None
        return found.state


def changes(out: Path) -> list[tuple[str, str, str, str]]:
    lines = (out / "crawl.jsonl").read_text().splitlines()
    told = [event for line in lines if (event := json.loads(line))["event"] == "change"]
    return [(event["who"], event["what"], event["from"], event["to"]) for event in told]


def in_audit(job: JobDirectory) -> list[tuple[str, str, str, str]]:
    return [(entry.who, entry.what, entry.before, entry.after) for entry in audit(job)]


@pytest.fixture
def resting(tmp_path: Path) -> JobDirectory:
    """A job in a directory without a run."""
    place = TrackerPlace(tmp_path)
    with tracker_at(place) as db:
        starts = StartPages(tuple(f"http://{HOST}{path}" for path in PATHS))
        open_job(db, "job", Settings(out=str(tmp_path)), starts, 1_000)
    return JobDirectory(tmp_path, place, "Ada")


def one_change(job: JobDirectory, verb: Verb) -> None:
    """Give a verb twice and once late; there is one change, and one answer."""
    age, before = job_age(job), len(audit(job))
    first = verb(job, age=age)
    assert first
    made = audit(job)[before:]
    assert [(one.what, one.before, one.after) for one in made] == [(one.what, one.before, one.after) for one in first]
    assert {one.who for one in made} == {"Ada"}
    assert verb(job, age=age) == first
    change_terms(msgspec.structs.replace(job, who="Bob"), JobTerms(explanation=str(age)))
    assert verb(job, age=age) == first
    assert len(audit(job)) == before + len(made) + 1
    assert changes(job.out) == in_audit(job)


def test_a_verb_that_comes_twice_or_late_leaves_one_change_at_rest(resting: JobDirectory) -> None:
    for _, verb in (*VERBS, *ENDS):
        one_change(resting, verb)
    assert state(resting) == "ACTIVE"


def test_a_late_repeat_does_not_undo_what_came_after_it(resting: JobDirectory) -> None:
    age = job_age(resting)
    set_values(resting, [("delay", "100")], age=age)
    set_values(resting, [("delay", "200")])
    set_values(resting, [("delay", "100")], age=age)
    assert [(one.before, one.after) for one in audit(resting)] == [("0", "100"), ("100", "200")]
    set_values(resting, [("delay", "100")], age=job_age(resting))
    assert audit(resting)[-1].after == "100"


def test_a_lock_that_comes_twice_or_late_leaves_one_change(resting: JobDirectory) -> None:
    place, named = resting.tracker, ("Ada", "p", 0)
    with tracker_at(place) as db:
        add_pipeline(db, Pipeline("p"), 1_000)
    age = job_age(resting)
    locked = (ChangeMade("lock of p/0", "", "INDEFINITELY"),)
    for _ in range(2):
        assert lock(place, *named, SlotLock.INDEFINITELY, 1, age=age) == locked
    later = job_age(resting)
    for _ in range(2):
        assert unlock(place, *named, age=later) == (ChangeMade("lock of p/0", "INDEFINITELY", "NONE"),)
    assert lock(place, *named, SlotLock.INDEFINITELY, 1, age=age) == locked
    assert [one.after for one in audit(resting)] == ["INDEFINITELY", "NONE"]
    with pytest.raises(UsageError, match="has no job"):
        unlock(place, "Ada", "p", 1)


def test_what_makes_no_sense_leaves_nothing(resting: JobDirectory) -> None:
    wrong: list[Verb] = [
        lambda job, **key: set_values(job, [("delay", "fast")], **key),
        lambda job, **key: set_nice(job, 1, **key),
        lambda job, **key: add_ignore(job, "(", **key),
        lambda job, **key: remove_ignore(job, "never given", **key),
        lambda job, **key: change_terms(job, JobTerms(drip=-1), **key),
    ]
    for verb in wrong:
        for key in ({}, {"age": job_age(resting)}):
            with pytest.raises(UsageError):
                verb(resting, **key)
    assert resume(resting) == ()
    assert audit(resting) == []
    assert not (resting.out / "crawl.jsonl").read_text()


def cut_off(out: Path, line: bytes) -> bytes:
    """Ask the run for a change and go away before it answers."""
    directory = os.open(out / "parts", os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
            asking.connect(f"/proc/self/fd/{directory}/control")
            asking.sendall(line + b"\n")
    finally:
        os.close(directory)
    return msgspec.json.encode(ChangeReply())


def in_hand(out: Path, start: str) -> int:
    """The number of pages beside the first that are handed out."""
    with closing(sqlite3.connect(out / "tracker.sqlite")) as db:
        found = db.execute("SELECT count(*) FROM pages WHERE state = 'CLAIMED' AND url <> ?", (start,))
        return int(found.fetchone()[0])


def test_a_verb_leaves_one_change_in_a_run(
    muniment: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    job = JobDirectory(out, TrackerPlace(out), "Ada")
    index = "".join(f"<a href='{path}'>x</a>" for path in PATHS)
    with GatedSite({"/": index, **dict.fromkeys(PATHS, "x")}) as site:
        command = ("crawl", site.url, "-o", out, "--no-robots", "--no-sitemaps", "--quiet", "--workers", 1)
        # so long that the page in hand outlasts a slow machine: with all others stashed, the run would end with it
        process = muniment.start(*command, "--delay", 300_000)
        wait_until(lambda: "/" in site.counts() and '"capture"' in (out / "crawl.jsonl").read_text(), "a page")
        wait_until(lambda: in_hand(out, site.url), "a page in hand")
        for name, verb in VERBS:
            age, before = job_age(job), len(audit(job))
            with monkeypatch.context() as patched:
                patched.setattr(delivery, "ask", cut_off)
                verb(job, age=age)
            wait_until(lambda before=before: len(audit(job)) > before, name)
            made = [ChangeMade(one.what, one.before, one.after) for one in audit(job)[before:]]
            assert list(verb(job, age=age)) == made, name
            assert list(verb(job, age=age)) == made, name
            assert len(audit(job)) == before + len(made), name
        wait_until(lambda: changes(out) == in_audit(job), "their events")
        assert process.poll() is None
        age = job_age(job)
        assert abort(job, age=age) == (ChangeMade("state", "ACTIVE", "ABORTED"),)
        process.communicate(timeout=30)
        assert process.returncode == 3
        assert '"reason":"aborted","exit":3' in (out / "crawl.jsonl").read_text()
        assert abort(job, age=age) == (ChangeMade("state", "ACTIVE", "ABORTED"),)
        assert state(job) == "ABORTED"
        one_change(job, resume)
        assert muniment(*command, "--delay", 0).code == 0
    assert set(site.counts().values()) == {1}
    assert len(site.counts()) == 31


def test_a_change_without_a_key_is_made_once_when_its_answer_is_lost(
    resting: JobDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was made while nobody waited for the answer any more is found by the next try of the same command."""
    lost = []

    def ask_once(out: Path, line: bytes) -> None:
        if not lost:
            lost.append(line)
            with monkeypatch.context() as patched:
                patched.setattr(delivery, "ask", lambda *_: None)
                deliver(resting, msgspec.json.decode(line, type=Change))

    monkeypatch.setattr(delivery, "ask", ask_once)
    assert add_ignore(resting, "/p7") == (ChangeMade("ignores", "", "/p7"),)
    assert len(audit(resting)) == 1
