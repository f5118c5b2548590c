"""How SQLite, which has no statistics, finds the rows of a batch: by their keys, in a job of any size."""

from __future__ import annotations

import json
import pkgutil
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path

import pytest
from tests.support.pages import finish_batch, finished

import muniment.tracker
from muniment.model.network.captures import CaptureFilter
from muniment.settings.option_table import Settings
from muniment.tracker.db.sqlite import SqliteDatabase
from muniment.tracker.db.statements import Lookup, Prepared
from muniment.tracker.fleet.dispatch import Dispatch
from muniment.tracker.open import StartPages, open_job, submit_job
from muniment.tracker.views import jobs
from muniment.tracker.views.attempt_search import search_attempts
from muniment.tracker.views.figures import fleet_figures
from muniment.tracker.views.jobs import job_view, waiting_counts
from muniment.tracker.views.log_lines import lines_from, lines_until
from muniment.tracker.views.pages import attempt_views
from muniment.tracker.views.waiting import claimed_pages, host_standings, next_pages

KEYS = [1, 2, 4, 8, 128]
KEYS_TOLD = "LIST SUBQUERY", "SCAN told VIRTUAL TABLE"
"""How the keys of a batch are read that come as JSON; their rows are sought as well."""


def statements(kind: type) -> Iterator[tuple[str, object]]:
    for module in pkgutil.walk_packages(muniment.tracker.__path__, "muniment.tracker."):
        if module.ispkg or "migrations" in module.name:
            continue
        for name, value in vars(import_module(module.name)).items():
            if isinstance(value, kind):
                yield f"{module.name.rpartition('.')[2]}.{name}", value


LOOKUPS = dict(statements(Lookup))
CHANGES = {name: prepared for name, prepared in statements(Prepared) if isinstance(prepared, Prepared)}


@pytest.fixture(scope="module")
def tracker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("plans") / "tracker.sqlite"
    SqliteDatabase.open(path).close()
    connection = sqlite3.connect(path)
    yield connection
    connection.close()


def plan(tracker: sqlite3.Connection, sql: str) -> list[str]:
    rows = tracker.execute(f"EXPLAIN QUERY PLAN {sql}", [1] * sql.count("?"))
    return [row[3] for row in rows if not row[3].startswith("USE TEMP")]


def test_each_key_of_a_lookup_is_sought(tracker: sqlite3.Connection) -> None:
    steps = {}
    for name, lookup in LOOKUPS.items():
        assert isinstance(lookup, Lookup)
        for count in KEYS:
            [(prepared, _)] = lookup.batches(1, list(range(count)))
            steps[name, count], *_ = plan(tracker, prepared.sql)
    assert steps
    sought = {asked for asked, first in steps.items() if first.startswith("SEARCH") and "(job_id=? AND " in first}
    assert {asked: first for asked, first in steps.items() if asked not in sought} == {}


def test_a_change_of_a_row_seeks_it(tracker: sqlite3.Connection) -> None:
    for name, prepared in CHANGES.items():
        if prepared.sql.startswith(("UPDATE", "DELETE")):
            for step in plan(tracker, prepared.sql):
                assert step.startswith(("SEARCH", *KEYS_TOLD)), f"{name}: {step}"


def test_what_is_asked_of_a_whole_job_reads_no_page_that_is_done(tmp_path: Path) -> None:
    """Settled or taken up again: a job of millions of pages, of which none waits and none is held."""
    with closing(SqliteDatabase.open(tmp_path / "tracker.sqlite")) as db:
        frontier = open_job(db, "job", Settings(), StartPages(["http://site.example/"]), 1).frontier
        frontier.finish(finish_batch([finished(claim) for claim in frontier.claim([(1, 1)], 1).claims]), 0, 1)
        asked: list[str] = []
        db._cursor.connection.set_trace_callback(asked.append)
        frontier.recover()
        assert frontier.settle(2) == "FINISHED"
        db._cursor.connection.set_trace_callback(None)
        plans = [step for sql in asked if " pages" in sql for step in plan(db._cursor.connection, sql)]
    assert len(plans) == 5
    assert [step for step in plans if "USING INDEX ix_pages_" not in step] == []


def test_a_sweep_asks_as_much_of_many_jobs_as_of_one(tmp_path: Path) -> None:
    with closing(SqliteDatabase.open(tmp_path / "tracker.sqlite")) as db:
        dispatch, asked = Dispatch(db), list[str]()
        db._cursor.connection.set_trace_callback(asked.append)
        counts = []
        for many in (1, 60):
            for number in range(many):
                submit_job(db, f"job {number}", Settings(), StartPages(["http://site.example/"]), 1)
            for _ in range(2):
                asked.clear()
                dispatch.sweep()
            counts.append(len(asked))
        assert counts[0] == counts[1] < 20
        db._cursor.connection.set_trace_callback(None)
        [found] = [sql for sql in asked if "ix_pages_pending" in sql]
        plans = plan(db._cursor.connection, found)
    assert [
        step for step in plans if step.startswith("SCAN") and not step.startswith(("SCAN jobs", "SCAN CONSTANT"))
    ] == []
    assert sum("USING INDEX ix_pages_" in step or "USING COVERING INDEX ix_pages_" in step for step in plans) >= 4


def test_what_is_shown_of_a_job_reads_none_of_its_other_pages_and_attempts(tmp_path: Path) -> None:
    """Figures, queue, hosts, the log and the newest captures, of a job of millions."""
    with closing(SqliteDatabase.open(tmp_path / "tracker.sqlite")) as db:
        frontier = open_job(db, "job", Settings(), StartPages(["http://site.example/"]), 1).frontier
        frontier.finish(finish_batch([finished(claim) for claim in frontier.claim([(1, 1)], 1).claims]), 0, 1)
        asked: list[str] = []
        db._cursor.connection.set_trace_callback(asked.append)
        job_view(db, 1)
        fleet_figures(db)
        host_standings(db, 1, "", 100)
        claimed_pages(db, 1, 100)
        next_pages(db, 1, 10, 10)
        lines_until(db, 1, None, 200)
        lines_from(db, 1, 1, 200)
        search_attempts(db, CaptureFilter(), 101, 0)
        attempt_views(db, 1, (0, 0, 0), 100)
        db._cursor.connection.set_trace_callback(None)
        steps = {sql: plan(db._cursor.connection, sql) for sql in asked if " pages" in sql or " attempts" in sql}
    assert len(steps) > 12
    rows = (
        r"(SCAN|SEARCH) (pages|attempts) USING (PRIMARY KEY \(job_id=\?\)|.*autoindex_\w+ \(job_id=\?\)|PRIMARY KEY$)"
    )
    read_whole = {sql: told for sql, told in steps.items() if any(re.match(rows, step) for step in told)}
    assert read_whole == {}


def test_many_pages_that_wait_are_counted_by_reading_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index by hosts leads to pages in the order of hosts, each of which is sought by itself."""
    with closing(SqliteDatabase.open(tmp_path / "tracker.sqlite")) as db:
        urls = [f"http://site{number}.example/" for number in range(20)]
        frontier = open_job(db, "job", Settings(), StartPages(urls), 1).frontier
        frontier.finish(finish_batch([finished(claim) for claim in frontier.claim([(1, 1)], 1).claims]), 0, 1)
        frontier.claim([(2, 1)], 1)
        assert waiting_counts(db, 1) == {"pending": 18, "claimed": 1, "skipped": 0, "stashed": 0}
        for few, sought in (19, True), (18, False):
            monkeypatch.setattr(jobs, "_FEW", few)
            asked: list[str] = []
            db._cursor.connection.set_trace_callback(asked.append)
            assert waiting_counts(db, 1)["pending"] == 18
            db._cursor.connection.set_trace_callback(None)
            assert any("NOT INDEXED" in sql for sql in asked) != sought


def test_rows_that_differ_in_nothing_but_their_key_are_one_statement() -> None:
    finish = CHANGES["frontier._FINISH"]
    done, again = ("READY", 0, 0, True, 1, "", 1), ("READY", 2, 50, False, 0, "", 1)
    told = finish.together([(*done, 7), (*again, 8), (*done, 9)])
    assert [(*row[:-1], json.loads(row[-1])) for row in told] == [(*done, [7, 9]), (*again, [8])]
