"""ArchiveBox's plugins, unmodified: those that need no browser, in one crawl; the whole folder says what cannot run."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from hook_plugins import assert_log_is_archive, results_of
from tests.support.git_site import GitAnswers, make_repository
from tests.support.logging_site import LoggingSite, plain

from muniment.tracker.processes.sqlite import open_processes

pytestmark = pytest.mark.long

WORDS = " ".join(f"word{n}" for n in range(300))
PAGE = f"<html><title>T</title><body><article><p>{WORDS}</p><img src=/i.png></article><a href=/b>b</a></body></html>"
RUN = {
    "hashes": "succeeded",
    "htmltotext": "succeeded",
    "parse_html_urls": "succeeded",
    "trafilatura": "succeeded",
    "defuddle": "succeeded",
    "wget": "succeeded",
    "git": "noresults",
    "favicon": "noresults",
}
READ = {"htmltotext": "htmltotext.txt", "trafilatura": "content.txt", "defuddle": "content.txt"}


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of plugins of the wheel, with its executable bits."""
    place = tmp_path_factory.mktemp("abx")
    asked = "--no-deps", "--python-version", "3.12", "--only-binary=:all:", "-d", str(place), "abx-plugins==1.13.400"
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
    venv.create(environment, with_pip=False)
    program = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", program, "install", "-q", "--no-compile"]
    subprocess.run([*pip, "rich-click", "pydantic", "trafilatura", "lxml_html_clean"], check=True, timeout=300)
    [packages] = environment.glob("lib/python*/site-packages")
    (packages / "abx.pth").write_text(f"{plugins.parents[1]}\n")
    return program


@pytest.fixture(scope="module")
def programs(plugins: Path) -> Path:
    """The folder of programs from npm."""
    place = plugins.parents[1] / "node"
    quiet = "--no-audit", "--no-fund", "--silent"
    subprocess.run(["npm", "install", *quiet, "--prefix", place, "defuddle@0.19.4"], check=True, timeout=300)
    return place / "node_modules" / ".bin"


def slowly(_sock: socket.socket, _request: bytes) -> bytes:
    """A picture that takes its time, so that who asks for it is seen at work."""
    sleep(1.0)
    return plain(b"\x89PNG" + bytes(5000), "image/png")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[LoggingSite]:
    """A page with words, a picture and a link, and a repository."""
    make_repository(tmp_path / "git", "one.git")
    pages = {
        "/page": plain(PAGE.encode(), "text/html"),
        "/i.png": slowly,
        "/one.git": plain(b"<html>a repository</html>", "text/html"),
    }
    with LoggingSite(GitAnswers(tmp_path / "git", pages)) as served:
        yield served


def test_plugins_run_as_they_are(
    muniment: Any, site: LoggingSite, plugins: Path, python: Path, programs: Path, tmp_path: Path
) -> None:
    out, page = tmp_path / "out", site.url("/page")
    muniment.environ["MUNIMENT_PROCESSES"] = str(tmp_path / "kept")
    muniment.environ["PATH"] = os.pathsep.join([str(python.parent), str(programs), os.environ["PATH"]])
    done = muniment(
        *("crawl", page, site.url("/one.git"), "-o", out, "--page-only", "--no-sitemaps", "--no-robots"),
        *("--hooks", plugins, "--hook-python", python, "--plugins", ",".join(RUN)),
    )
    assert done.code == 0, done
    rows = {row["plugin"]: row for row in results_of(out) if row["url"] == page}
    assert {name: row["status"] for name, row in rows.items()} == RUN
    assert all("word299" in (out / rows[name]["directory"] / path).read_text() for name, path in READ.items())
    assert rows["parse_html_urls"]["links"] >= 1
    [clone] = [row for row in results_of(out) if row["url"] != page and row["plugin"] == "git"]
    assert clone["status"] == "succeeded"
    assert [file.read_text() for file in (out / clone["directory"]).rglob("file.txt")] == ["held by git\n" * 100]
    # the crawl, wget and favicon: nobody else asks for the page
    assert len(site.asked("/page")) == 3
    assert_log_is_archive([site], out)
    below = open_processes(tmp_path / "kept").below(rows["wget"]["process_id"])
    assert [row.cmd[0].rpartition("/")[2] for row in below if row.process_type == "binary"] == ["wget"]


def test_of_the_whole_folder_each_hook_runs_or_says_why(muniment: Any, plugins: Path, python: Path) -> None:
    done = muniment("hooks", "list", "--hooks", plugins, "--hook-python", python, "--json")
    lines = json.loads(done.stdout)
    assert len(lines) > 50
    running = {line["plugin"] for line in lines if line["runs"]}
    assert {"hashes", "htmltotext", "parse_html_urls", "wget", "favicon"} <= running
    assert "archivedotorg" not in running
    assert [line for line in lines if not line["runs"] and not line["why"]] == []
