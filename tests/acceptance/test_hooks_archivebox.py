"""ArchiveBox's plugins, unmodified: those that need no browser, in one crawl; the whole folder says what cannot run."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hook_plugins import page_folder, results_of
from tests.support.gated_site import GatedSite

from muniment.tracker.processes.sqlite import open_processes

pytestmark = pytest.mark.long

WORDS = " ".join(f"word{n}" for n in range(300))
PAGE = f"<html><head><title>T</title></head><body><article><p>{WORDS}</p></article><a href=/b>b</a></body></html>"


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of plugins of the wheel, with its executable bits."""
    place = tmp_path_factory.mktemp("abx")
    asked = "--no-deps", "--python-version", "3.12", "--only-binary=:all:", "-d", str(place), "abx-plugins"
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", *asked], check=True, timeout=300)
    [wheel] = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(place)
        for info in packed.infolist():
            if info.external_attr >> 16 & 0o111 and not info.is_dir():
                (place / info.filename).chmod(0o755)
    return place / "abx_plugins" / "plugins"


@pytest.fixture(scope="module")
def python(plugins: Path) -> Path:
    """A Python that has what the plugins import."""
    environment = plugins.parents[1] / "env"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True, timeout=300)
    program = environment / "bin" / "python"
    subprocess.run([program, "-m", "pip", "install", "-q", "rich-click", "pydantic"], check=True, timeout=300)
    [packages] = environment.glob("lib/python*/site-packages")
    (packages / "abx.pth").write_text(f"{plugins.parents[1]}\n")
    return program


@pytest.fixture
def site() -> Iterator[GatedSite]:
    """A page with words and a link."""
    with GatedSite({"/": PAGE, "/b": "b"}) as served:
        yield served


def test_plugins_run_as_they_are(muniment: Any, site: GatedSite, plugins: Path, python: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    muniment.environ["MUNIMENT_PROCESSES"] = str(tmp_path / "kept")
    done = muniment(
        *("crawl", site.url, "-o", out, "--page-only", "--no-sitemaps", "--no-robots", "--hooks", plugins),
        *("--hook-python", python, "--plugins", "hashes,htmltotext,parse_html_urls,wget,favicon"),
    )
    assert done.code == 0, done
    rows = {row["plugin"]: row for row in results_of(out)}
    assert {name: row["status"] for name, row in rows.items()} == {
        "hashes": "succeeded",
        "htmltotext": "succeeded",
        "parse_html_urls": "succeeded",
        "wget": "succeeded",
        "favicon": "noresults",
    }
    folder = page_folder(out)
    assert "word299" in (folder / "htmltotext" / rows["htmltotext"]["output_str"].split("/")[-1]).read_text()
    assert rows["parse_html_urls"]["links"] >= 1
    # the crawl, wget and favicon: nobody else asks for the page
    assert Counter(site.requests)["/"] == 3
    below = open_processes(tmp_path / "kept").below(rows["wget"]["process_id"])
    assert {row.process_type for row in below} <= {"hook", "binary"}


def test_of_the_whole_folder_each_hook_runs_or_says_why(muniment: Any, plugins: Path, python: Path) -> None:
    done = muniment("hooks", "list", "--hooks", plugins, "--hook-python", python, "--json")
    lines = json.loads(done.stdout)
    assert len(lines) > 50
    running = {line["plugin"] for line in lines if line["runs"]}
    assert {"hashes", "htmltotext", "parse_html_urls", "wget", "favicon"} <= running
    assert "archivedotorg" not in running
    assert [line for line in lines if not line["runs"] and not line["why"]] == []
