"""Every command of the documents runs in a test: here is which page is run where, and the pages that are run here."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.support.gated_site import GatedSite
from tests.support.postgres import Postgres

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
RUN_BY = {
    "README.md": "test_docs.py",
    "install.md": "test_docs.py",
    "quickstart.md": "test_docs.py",
    "fetch.md": "test_docs.py",
    "export.md": "test_docs.py",
    "replay.md": "test_docs.py",
    "output.md": "test_docs.py",
    "fleet.md": "test_fleet_docs.py",
    "services.md": "test_services.py",
    "api.md": "test_examples.py",
    "browser.md": "test_examples.py",
    "dashboard.md": "test_examples.py",
    "check.md": "test_examples.py",
    "crawl.md": "test_examples.py",
    "ignores.md": "test_examples.py",
    "tracker.md": "test_examples.py",
    "troubleshooting.md": "test_examples.py",
}
"""The module that runs the commands and queries of a page; a page that is not here has none."""
EXAMPLE = "https://example.com/"


def blocks(page: Path, languages: str) -> list[str]:
    found = re.findall(r"(?ms)^```(\w*)\n(.*?)^```$", page.read_text())
    return [block for language, block in found if language in languages.split("|")]


def commands(name: str) -> list[str]:
    return [line for block in blocks(DOCS / name, "sh") for line in block.splitlines() if line.strip()]


def test_each_page_with_examples_is_run_somewhere() -> None:
    pages = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
    shown = {page.name for page in pages if blocks(page, "sh|sql|python")}
    assert shown - {page for page, module in RUN_BY.items() if page in module_text(module)} == set()
    unmarked = [
        f"{page.name}: {line}"
        for page in pages
        for block in blocks(page, "")
        for line in block.splitlines()
        if re.match(r"(muniment|\./scripts/run) ", line) and "  " not in line
    ]
    assert unmarked == [], "a block of commands is marked sh, so that its test finds it"


def module_text(name: str) -> str:
    [path] = (ROOT / "tests").rglob(name)
    return path.read_text()


@pytest.fixture
def blog() -> Iterator[GatedSite]:
    posts = "".join(f"<a href='/post/?replytocom={number}'>x</a><a href=/news/{number}>n</a>" for number in (12, 13))
    with GatedSite({"/": posts, "/news/12": "a", "/news/13": "b"}) as site:
        yield site


def run(muniment: Any, line: str, url: str) -> str:
    done = muniment(*shlex.split(line.replace(EXAMPLE, url))[1:])
    assert done.code == 0, f"{line}\n{done.stdout}{done.stderr}"
    return str(done.stdout + done.stderr)


def test_commands_of_ignores(muniment: Any, blog: GatedSite) -> None:
    crawl = ("crawl", blog.url, "-o", "example", "--ignore-sets", "wordpress", "--quiet")
    begun = muniment(*crawl, "--max-pages", 1)
    assert begun.code == 3, begun.stderr
    for line in commands("ignores.md"):
        run(muniment, line, blog.url)
    [shown] = [block for block in blocks(DOCS / "ignores.md", "") if block.startswith("$ ")]
    line, _, answer = shown.removeprefix("$ ").partition("\n")
    assert answer.replace(EXAMPLE, blog.url) in run(muniment, line, blog.url)
    assert muniment(*crawl).code == 0
    assert not any("replytocom" in path for path in blog.requests)


def test_commands_of_crawl(muniment: Any, blog: GatedSite) -> None:
    first, again = [run(muniment, line, blog.url) for line in commands("crawl.md")]
    assert "3 pages" in first
    assert "finished; nothing to do" in again
    assert not any("replytocom" in path for path in blog.requests)


def test_commands_of_troubleshooting(muniment: Any, blog: GatedSite) -> None:
    assert muniment("crawl", blog.url, "-o", "example", "--quiet").code == 0
    summed, told = [run(muniment, line, blog.url) for line in commands("troubleshooting.md")]
    assert "200" in summed
    assert "captured" in told


def test_commands_of_check(muniment: Any, blog: GatedSite) -> None:
    assert muniment("crawl", blog.url, "-o", "example", "--quiet").code == 0
    said = [run(muniment, line, blog.url) for line in commands("check.md")]
    assert json.loads(said[2])["faults"] == []


def test_commands_of_tracker(muniment: Any, blog: GatedSite, postgres: Postgres, tmp_path: Path) -> None:
    created, line = commands("tracker.md")
    assert created.split()[0] == "createdb"
    url = postgres.create(f"docs_{os.getpid()}")
    run(muniment, re.sub(r"postgresql://\S+", lambda _: shlex.quote(url), line), blog.url)
    assert (tmp_path / "example" / "tracker.place").exists()
    assert "captured" in run(muniment, f"muniment why {blog.url} -o example", blog.url)


def test_commands_of_api(muniment: Any, blog: GatedSite, tmp_path: Path) -> None:
    token = muniment("tokens", "add", "ann", "--scope", "admin", "--state", "tracker").stdout.strip()
    server = muniment.start("serve", "--state", "tracker", "--listen", "127.0.0.1:0", "--allow-private")
    where = server.stdout.readline().split()[1]
    [block] = blocks(DOCS / "api.md", "sh")
    script = block.replace("http://127.0.0.1:8600", where).replace(EXAMPLE, blog.url)
    done = subprocess.run(
        ["sh", "-euc", script.replace("curl ", "curl --silent --show-error --fail ")],
        env={**os.environ, "TOKEN": token}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert '"settings"' in done.stdout or '"job"' in done.stdout, done.stdout
    assert "1  ACTIVE" in muniment("job", "list", "--server", where, MUNIMENT_TOKEN=token).stdout
    server.send_signal(signal.SIGTERM)
    assert server.wait(30) == 0


def test_commands_and_query_of_browser(muniment: Any, blog: GatedSite, tmp_path: Path) -> None:
    [block] = blocks(DOCS / "browser.md", "sh")
    asked, *lines = block.splitlines()
    assert asked.split()[0] == "apt"
    for line in lines:
        run(muniment, line, blog.url)
    [query] = blocks(DOCS / "browser.md", "sql")
    found = duckdb.sql(query.replace(EXAMPLE, blog.url).replace("'example/", f"'{tmp_path}/example/")).fetchall()
    assert (blog.url, "GET", 200) in [(url, method, status) for url, method, status, *_ in found]


def test_commands_of_dashboard(muniment: Any, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    [line] = commands("dashboard.md")
    shown = muniment.start(*shlex.split(line)[1:], "--no-open", "--json")
    assert json.loads(shown.stdout.readline())["url"].startswith("http://")
    shown.send_signal(signal.SIGTERM)
    assert shown.wait(30) == 0
