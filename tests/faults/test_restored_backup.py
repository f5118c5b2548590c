"""A backup is restored over a tracker that went on: pipelines greet again, no page is lost, and all is counted."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fleet_round import ServerSite
from tests.support.fleet import Fleet, wait_for
from tests.support.postgres import Postgres

from forked import ForkedWithChildren

PAGES = 60
"""Of each of six hosts."""


class InFile:
    """A tracker in a directory."""

    def __init__(self, work: Path) -> None:
        self.place = ("--state", str(work / "state"))
        self._file, self._copy = work / "state" / "tracker.sqlite", work / "backup.sqlite"

    def back_up(self) -> None:
        """Beside a server that runs."""
        with closing(sqlite3.connect(self._file)) as db:
            db.execute("VACUUM INTO ?", (str(self._copy),))

    def restore(self) -> None:
        for beside in self._file.parent.glob("tracker.sqlite*"):
            beside.unlink()
        self._copy.rename(self._file)


class InDatabase:
    """A tracker in PostgreSQL."""

    def __init__(self, postgres: Postgres) -> None:
        self._server = postgres
        self.place = ("--database", postgres.create("backed_up"))

    def back_up(self) -> None:
        """Beside a server that runs."""
        self._file = self._server.dump("backed_up")

    def restore(self) -> None:
        self._server.restore("backed_up", self._file)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_restored_tracker_loses_no_page(kind: str, tmp_path: Path, postgres: Postgres) -> None:
    site = ServerSite(tmp_path / "site", PAGES)
    tracker = InFile(tmp_path) if kind == "sqlite" else InDatabase(postgres)
    with site.server, Fleet(tmp_path / "work", tracker.place, lease_s=10, launch=ForkedWithChildren) as fleet:
        server = fleet.serve()
        fleet.pipeline("--workers", "1")
        # so slow that most of it is left when the backup has been taken, however busy the machine is
        options = ("--no-robots", "--no-sitemaps", "--per-host", "2", "--delay", "500")
        job = fleet.ask("job", "add", *site.server.urls, *options)

        def captured(most: int) -> Callable[[], bool]:
            return lambda: shown(fleet, job)["pages"]["captured"] >= most

        wait_for(captured(20), "the job is under way", 240)
        tracker.back_up()
        # what the backup does not know: a pipeline with its session, pages, links
        fleet.pipeline("--workers", "1")
        done = shown(fleet, job)["pages"]["captured"]
        wait_for(captured(min(done + 30, 4 * PAGES)), "it went on", 240)
        assert server.stop() == 0, server.said()
        tracker.restore()
        server.start()
        wait_for(lambda: server.said().count("serving http") == 2, "it serves again", 120)
        fleet.ask("job", "set", job, "delay=0")
        fleet.run("job", "wait", job, "--timeout", "240", "--server", fleet.url(0), seconds=300)
        view = shown(fleet, job)
        first, second = fleet.pipelines
        assert first.stop() == 0, first.said()
        # of this one the restored tracker knows nothing: it says so, and its directory stays
        assert second.stop(30) == 2, second.said()
        outs = [out for number in (0, 1) if (out := fleet.directory(number) / job).exists()]
        for out in outs:
            fleet.run("check", str(out), seconds=120)
        rows = [row for out in outs for row in pq.read_table(out / "captures.parquet").to_pylist()]
    expected = site.expected()
    assert {row["url"] for row in rows} == set(expected)
    assert (view["state"], view["outcome"]) == ("FINISHED", "completed")
    assert view["pages"]["captured"] + view["pages"]["requisites"] == len(expected)
    twice = len(rows) - len({row["url"] for row in rows})
    assert twice > 0, "what was done after the backup was done again, and the directories have both"
    assert view["responses"]["2xx"] == len(expected), "the tracker counts what it knows of"


def shown(fleet: Fleet, job: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(fleet.ask("job", "show", job, "--json"))
    return value
