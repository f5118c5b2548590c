"""Pipelines that render: pages of a server's jobs in the real Chromium, with records here and results there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest
from tests.support.api_server import ApiServer
from tests.support.pipeline_runs import PipelineRun, ended, until
from tests.support.script_site import ScriptSite, script_site

from muniment.model.place import TrackerPlace

_names = (f"render{number}" for number in count())
QUICK = {"engine": "browser", "behaviors": "none", "screenshots": "view", "tries": 1, "rounds": 0, "no-sitemaps": True}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    place = TrackerPlace(tmp_path_factory.mktemp("tracker"))
    with ApiServer(place, lease_s=20, allow_private=True).make_tokens() as running:
        yield running


@pytest.fixture
def pipe(server: ApiServer, muniment: Any, tmp_path: Path) -> PipelineRun:
    muniment.patience = 180
    return PipelineRun(server, muniment, tmp_path / "out", next(_names))


@pytest.fixture
def site() -> Iterator[ScriptSite]:
    with script_site() as served:
        yield served


def browsers_of(directory: Path) -> list[psutil.Process]:
    running = [(process, process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    return [process for process, words in running if any(f"user-data-dir={directory}" in word for word in words)]


def test_a_pipeline_renders_pages_of_its_jobs(pipe: PipelineRun, site: ScriptSite) -> None:
    job = pipe.add_job(f"{site.base}/", settings=QUICK)
    process = pipe.start("--tabs", 2, "--browser-memory", "1GiB")
    until(lambda: pipe.job(job)["state"] == "FINISHED", "the job does not end", 120)
    session = pipe.session()
    assert session is not None
    assert session["report"]["browser"].partition(".")[0].isdigit()
    process.terminate()
    assert ended(process, 90)[0] == 0

    out = pipe.out / str(job)
    rows = pq.read_table(out / "captures.parquet").to_pylist()
    home = next(row for row in rows if row["url"] == f"{site.base}/" and row["page_id"])
    mine = {row["url"] for row in rows if row["page_id"] == home["page_id"]}
    assert {f"{site.base}/{name}" for name in ("app.js", "data.json", "echo", "red.svg")} <= mine
    assert {f"urn:{kind}:{site.base}/" for kind in ("view", "dom", "text", "pageinfo")} <= mine
    # found by scripts alone
    assert {f"{site.base}/{name}" for name in ("two.html", "shadow.html", "window.html", "route")} <= {
        row["url"] for row in rows
    }
    assert site.asked["GET /"] == site.asked["GET /two.html"] == 1
    told = pipe.server.call("GET", f"/v1/jobs/{job}/results?url={site.base}/").value
    results = {one["kind"]: one["value"] for one in told["results"]}
    assert results["title"] == "Built"
    assert results["screenshot"]["view"]
    assert f"{site.base}/shadow.html" in results["outlinks"]
    pipe.check(job)
    assert not browsers_of(pipe.out)
    assert not list(out.glob("parts/browser-*"))


def test_without_a_browser_a_job_that_renders_waits_and_says_why(
    pipe: PipelineRun, site: ScriptSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    process = pipe.start()
    until(pipe.session, "it does not greet")
    job = pipe.add_job(f"{site.base}/", settings=QUICK)
    plain = pipe.add_job(f"{site.base}/two.html")
    pipe.finished(plain)
    assert pipe.job(job)["state"] == "ACTIVE"
    assert pipe.job(job)["reason"] == "it waits for a pipeline with a browser"
    assert not (pipe.out / str(job)).exists()
    assert pipe.server.call("POST", f"/v1/jobs/{job}/abort").status == 200
    process.terminate()
    assert ended(process, 90)[0] == 0


def test_a_browser_that_is_named_and_of_no_use_ends_a_pipeline(pipe: PipelineRun) -> None:
    process = pipe.start("--browser-path", "/bin/true")
    code, said = ended(process)
    assert (code, said.count("\n")) == (2, 1)
    assert "/bin/true" in said


def test_a_script_of_job_add_runs_in_the_pages(
    pipe: PipelineRun, site: ScriptSite, muniment: Any, tmp_path: Path
) -> None:
    script, state = tmp_path / "own.js", tmp_path / "state.json"
    script.write_text("document.title + window.said")
    state.write_text('{"cookies": []}')
    add = ("job", "add", f"{site.base}/", "--engine", "browser", "--behaviors", "none", "--level", "0")
    add = (*add, "--tags", pipe.name, "--server", pipe.server.url, "--tries", "1", "--no-sitemaps")
    token = pipe.server.tokens["submit"]
    refused = muniment(*add, "--storage-state", state, MUNIMENT_TOKEN=token)
    assert (refused.code, refused.stderr.count("\n")) == (2, 1)
    assert "every reader of the tracker would see" in refused.stderr
    added = muniment(*add, "--custom-js", script, MUNIMENT_TOKEN=token)
    assert added.code == 0, added.stderr
    job = int(added.stdout)
    # that of a rule goes before it
    rules = tmp_path / "rules.json"
    said = [{"custom_js": "window.said = 1"}, {"prefix": site.base, "custom_js": "window.said = 2"}]
    rules.write_text(json.dumps(said))
    at = ("--server", pipe.server.url)
    ruled = muniment("job", "rules", job, rules, *at, MUNIMENT_TOKEN=pipe.server.tokens["operate"])
    assert ruled.code == 0, ruled.stderr
    process = pipe.start()
    until(lambda: pipe.job(job)["state"] == "FINISHED", "the job does not end", 120)
    process.terminate()
    assert ended(process, 90)[0] == 0
    told = pipe.server.call("GET", f"/v1/jobs/{job}/results?url={site.base}/").value
    assert {one["kind"]: one["value"] for one in told["results"]}["custom_js"] == "Built2"
