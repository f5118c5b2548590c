"""Every face has the same counts of one crawl: summary, `--json`, `inspect`, `job show`, dashboard, its API, replay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.support.dashboard import Dashboard
from tests.support.nginx import closed_port
from tests.support.replay import Replay
from tests.support.script_site import ScriptSite, script_site

from forked import Forked

LAUNCH, PATIENCE_S = Forked, 240
QUICK = ("--tries", 1, "--rounds", 0, "--no-sitemaps", "--allow-private", "--ignore", "/ignored$")
ENGINES = {
    "http": (),
    "browser": ("--browser", "--behaviors", "none", "--screenshots", "none", "--page-time", "5"),
}
WORDS = b" ".join(b"word%d" % n for n in range(60))


@pytest.fixture
def site() -> Iterator[ScriptSite]:
    with script_site() as served:
        yield served


@pytest.fixture
def cwd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MUNIMENT_PROCESSES", str(tmp_path / "processes"))
    (tmp_path / "runs").mkdir()
    return tmp_path


def words(**given: int) -> dict[str, int]:
    return {"captured": 0, "missing": 0, "failed": 0, "skipped": 0, "queued": 0, **given}


def no_pairs(value: Any) -> bool:
    """Whether no list holds a list."""
    if isinstance(value, dict):
        return all(map(no_pairs, value.values()))
    return not isinstance(value, list) or all(not isinstance(one, list) and no_pairs(one) for one in value)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_face_has_the_same_counts(muniment: Any, cwd: Path, site: ScriptSite, engine: str) -> None:
    elsewhere = f"http://127.0.0.2:{closed_port('127.0.0.2')}/"
    links = ["/a.html", "/a.html#again", "/gone.html", "/broken.html", "/ignored", elsewhere]
    page = b"".join(b"<a href='%s'>x</a>" % link.encode() for link in links) + b"<img src=/red.svg>" + WORDS
    site.files["/"] = ("text/html", page)
    site.files["/a.html"] = ("text/html", b"<a href=/>home</a>" + WORDS)
    site.files["/broken.html"] = ("text/html", b"it broke " + WORDS)
    site.statuses["/broken.html"] = 500
    out = cwd / "runs" / "one"
    command = ("crawl", f"{site.base}/", "-o", out, *QUICK, *ENGINES[engine])
    done = muniment(*command)
    assert done.code == 0, done.stderr
    told = json.loads(muniment(*command, "--json").stdout)
    assert told["already_finished"]
    assert told["site"]["pages"] == words(captured=2, missing=1, failed=1, skipped=1)
    assert told["site"]["requisites"] == words(captured=1)
    assert (told["other"]["hosts"], told["other"]["pages"]) == (1, words(failed=1))
    assert (told["skipped"], told["failed"], told["errors"]) == (
        {"ignore": 1}, {"500": 1, "refused": 1}, {"refused": 1}
    )  # fmt: skip
    assert told["rows"] == len(pq.read_table(out / "captures.parquet"))
    assert no_pairs(told)

    inspected = json.loads(muniment("inspect", out, "--json").stdout)
    shown = json.loads(muniment("job", "show", "-o", out, "--json").stdout)["counts"]
    assert no_pairs(inspected)
    with Dashboard(cwd, "runs") as dashboard:
        dashboard.sign_in()
        asked = json.loads(dashboard.ask("GET", "/v1/jobs/1")[2])["counts"]
        front = dashboard.ask("GET", "/jobs/1")[2]
    for name in shown.keys() - {"directory", "already_finished"}:
        assert inspected[name] == shown[name] == asked[name] == told[name], name
    said = done.stderr.splitlines()
    lines = said[next(at for at, line in enumerate(said) if line.startswith("Finished")) + 1 :]
    site_line = "Site 127.0.0.1: 2 pages captured, 1 missing, 1 failed, 1 skipped (1 ignore), 0 queued"
    assert lines[:3] == [
        site_line,
        "Other hosts (1): 0 pages captured, 0 missing, 1 failed, 0 skipped, 0 queued",
        "Requisites: 1 captured, 0 missing, 0 failed, 0 skipped, 0 queued",
    ]
    assert muniment("inspect", out).stdout.splitlines()[:5] == lines[:5]
    assert re.search(r'data-testid="job-done" title="other hosts: 1">[^0-9]*4', front)
    assert re.search(r'data-testid="job-errors" title="other hosts: 1">[^0-9]*1', front)
    assert not re.search("unknown", front[front.index("job-responses") :][:2_000])


def test_the_front_page_of_replay_says_whose_pages_it_counts(muniment: Any, cwd: Path, site: ScriptSite) -> None:
    site.files["/"] = ("text/html", b"<a href=/a.html>a</a><a href=/gone.html>b</a>" + WORDS)
    site.files["/a.html"] = ("text/html", WORDS)
    out = cwd / "runs" / "one"
    assert muniment("crawl", f"{site.base}/", "-o", out, *QUICK).code == 0
    with Replay(cwd, out, "--exact") as replay:
        assert "2 captured" in replay.get("/").text
