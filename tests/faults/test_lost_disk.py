"""A machine whose disk is gone in the middle of a job: what it captured is fetched again, and nothing refers to it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest
from fleet_round import ServerSite
from tests.support.fleet import Fleet, wait_for
from tests.support.postgres import Postgres

from forked import ForkedWithChildren

PAGES = 20
"""Of each of six hosts."""
IN_HAND = 300
"""What the other machine may have had when the sessions ended, at most."""


def written(directory: Path) -> int:
    """Bytes of a pipeline's records."""
    return sum(path.stat().st_size for path in directory.glob("*/*.warc.gz*"))


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_what_a_lost_machine_captured_is_fetched_again(kind: str, tmp_path: Path, postgres: Postgres) -> None:
    site = ServerSite(tmp_path / "site", PAGES)
    place = ("--state", str(tmp_path / "state")) if kind == "sqlite" else ("--database", postgres.create("lost_disk"))
    with site.server, Fleet(tmp_path / "work", place, lease_s=5, launch=ForkedWithChildren) as fleet:
        fleet.serve()
        for _ in range(2):
            fleet.pipeline("--workers", "1")
        options = ("--no-robots", "--no-sitemaps", "--per-host", "2")
        job = fleet.ask("job", "add", *site.server.urls, *options)

        def captured() -> int:
            return int(json.loads(fleet.ask("job", "show", job, "--json"))["pages"]["captured"])

        wait_for(lambda: captured() > 2 * PAGES, "a third of the pages", 240)
        number = max((0, 1), key=lambda one: written(fleet.directory(one)))
        lost = fleet.pipelines[number]
        assert lost.process is not None
        started = psutil.Process(lost.process.pid).children(recursive=True)
        lost.kill()
        assert psutil.wait_procs(started, 60)[1] == []
        shutil.rmtree(fleet.directory(number))
        again = json.loads(fleet.ask("pipelines", "lost", f"p{number}", "--json"))["pending"]
        assert again > PAGES
        lost.start()
        fleet.run("job", "wait", job, "--timeout", "240", "--server", fleet.url(0), seconds=300)
        view = json.loads(fleet.ask("job", "show", job, "--json"))
        assert (view["state"], view["outcome"]) == ("FINISHED", "completed")
        for pipeline in fleet.pipelines:
            assert pipeline.stop() == 0, pipeline.said()
        outs = [fleet.directory(number) / job for number in (0, 1)]
        outs = [out for out in outs if out.exists()]
        for out in outs:
            fleet.run("check", str(out), seconds=120)
        rows = [row for out in outs for row in pq.read_table(out / "captures.parquet").to_pylist()]
    expected = site.expected()
    assert {row["url"] for row in rows} == set(expected)
    assert {row["status"] for row in rows} == {200}
    assert len(rows) - len(expected) <= IN_HAND
    assert view["pages"]["captured"] + view["pages"]["requisites"] == len(expected)
