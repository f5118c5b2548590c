"""The recipes of `docs/contributing.md`, each performed on a copy of the tree."""

from __future__ import annotations

import difflib
import filecmp
import os
import re
import shutil
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import msgspec
import pytest
from tests.support.gated_site import Answer, GatedSite

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "acceptance", "faults", "edges", "unit", "node_modules")

CSV = '''"""Seed lists whose URLs are the first column of a table in CSV."""

from __future__ import annotations

from functools import partial

from muniment.extract.seed_lines import Parsed, text_line
from muniment.seeds.format_type import SeedFormat
from muniment.seeds.lines import read_lines

__all__ = ["FORMAT"]


def _row(number: int, raw: bytes) -> Parsed:
    return text_line(number, raw.partition(b",")[0])


FORMAT = SeedFormat("csv", "the first column of each row", partial(read_lines, parse=_row), (".csv",), is_text=True)
'''
READ = """
from pathlib import Path
from muniment.model.seed import SeedPlace
from muniment.seeds.read import batches
from muniment.seeds.source import open_source
source = open_source("list.csv", None, Path("list.csv"))
print(source.kind, [(line.number, line.url) for batch in batches(source, SeedPlace()) for line in batch.lines])
"""

ENGINE = '''"""The HTTP engine, with a word on standard error for each page."""

from __future__ import annotations

import sys

from muniment.crawl.pages import Page
from muniment.crawl.worker.http_engine import HttpEngine
from muniment.model.page import Claim

__all__ = ["LoudEngine"]


class LoudEngine(HttpEngine):
    """An `Engine` that says what it fetches."""

    async def visit(self, claim: Claim) -> Page | None:
        """What became of a page; None when its host may not be asked now."""
        print(f"fetching {claim.url}", file=sys.stderr)
        return await super().visit(claim)
'''
QUEUE = '''"""The local queue, with a word on standard error for each claim."""

from __future__ import annotations

import sys

from muniment.model.queue import ClaimOutcome, ClaimRequest
from muniment.tracker.queue.local import LocalQueue

__all__ = ["LoudQueue"]


class LoudQueue(LocalQueue):
    """A `Queue` that says what it hands out."""

    async def claim(self, request: ClaimRequest) -> ClaimOutcome:
        """Claim pages."""
        outcome = await super().claim(request)
        for claim in outcome.claims:
            print(f"claimed {claim.url}", file=sys.stderr)
        return outcome
'''


ALLOWANCE = '''"""Allowances: a host says in its answers that it takes no more requests for some seconds. Pure."""

from __future__ import annotations

__all__ = ["USED_UP", "reset_ms"]

USED_UP = "an allowance that is used up"


def reset_ms(headers: tuple[tuple[str, str], ...]) -> int:
    """Milliseconds until a host takes more requests; 0 when it takes them now, or says nothing."""
    said = dict(headers)
    seconds = said.get("x-ratelimit-reset", "")
    return 1000 * int(seconds) if said.get("x-ratelimit-remaining") == "0" and seconds.isdigit() else 0
'''
JUDGED = """    if signal.kind == "spent":
        return _held(state, now + signal.wait_ms, signal.text, now)"""
SIGNALLED = """    if wait := reset_ms(exchange.headers):
        return HostSignal("spent", USED_UP, origin_of(exchange.url), exchange.started_at // 1000, wait)"""


def copy_compiled(source: str, target: str) -> None:
    """Copy a file, and what Python made of it: the tree of each recipe need not be compiled anew."""
    shutil.copy2(source, target)
    if source.endswith(".py") and (made := Path(cache_from_source(source))).exists():
        there = Path(cache_from_source(target))
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(made, there)


class Copy:
    """A copy of the tree, and what was changed in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("src", "tests", "docs", "scripts"):
            shutil.copytree(ROOT / name, root / name, ignore=LEFT_OUT, copy_function=copy_compiled)
        for name in ("pyproject.toml", "README.md", "CHANGELOG.md"):
            shutil.copy(ROOT / name, root / name)

    def run(self, *arguments: str, **environ: str) -> str:
        """What a Python that runs the copy's code prints."""
        path = os.pathsep.join([str(self.root / "src"), str(self.root), str(self.root / "tests" / "contract")])
        env = {**os.environ, "PYTHONPATH": path, **environ}
        done = subprocess.run(
            [sys.executable, *arguments], cwd=self.root, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def crawl(self, url: str) -> str:
        """What a crawl by the copy says on standard error."""
        command = [sys.executable, "-m", "muniment", "crawl", url, "-o", "out", "--quiet"]
        env = {**os.environ, "PYTHONPATH": str(self.root / "src"), "MUNIMENT_PROCESSES": str(self.root / "processes")}
        done = subprocess.run(command, cwd=self.root, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def replace(self, path: str, before: str, after: str) -> None:
        file = self.root / path
        text = file.read_text()
        assert text.count(before) == 1
        file.write_text(text.replace(before, after))

    def insert(self, path: str, before: str, line: str) -> None:
        file = self.root / path
        text = file.read_text()
        assert text.count(before) == 1
        file.write_text(text.replace(before, f"{line}\n{before}"))

    def changed(self) -> tuple[list[str], dict[str, int]]:
        """New files of the source, and for each changed one how many lines differ."""
        new, lines = [], {}
        for path in (self.root / "src").rglob("*.py"):
            name = path.relative_to(self.root).as_posix()
            before = ROOT / name
            if not before.exists():
                new.append(name)
            elif not filecmp.cmp(before, path, shallow=False):
                found = difflib.ndiff(before.read_text().splitlines(), path.read_text().splitlines())
                lines[name] = sum(line.startswith(("+ ", "- ")) for line in found)
        return new, lines


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path / "tree")


def add_format(copy: Copy) -> None:
    (copy.root / "src/muniment/seeds/csv.py").write_text(CSV)
    copy.insert("src/muniment/seeds/formats.py", '    "sitemap",', '    "csv",')


def test_a_seed_format_is_one_file_and_one_line(copy: Copy) -> None:
    add_format(copy)
    (copy.root / "list.csv").write_text("http://a.example/1,one\nhttp://a.example/2,two\n")

    assert copy.run("-c", READ) == "csv [(1, 'http://a.example/1'), (2, 'http://a.example/2')]\n"
    assert "lines, jsonl, parquet, csv, sitemap." in " ".join(copy.run("-m", "muniment", "fetch", "--help").split())
    documented = ("-m", "pytest", "-q", "tests/contract/test_docs.py", "-k", "formats")
    copy.run(*documented, MUNIMENT_WRITE_DOCS="1")
    assert "| `csv` | `.csv` | the first column of each row |" in (copy.root / "docs/fetch.md").read_text()
    copy.run(*documented)
    assert copy.changed() == (["src/muniment/seeds/csv.py"], {"src/muniment/seeds/formats.py": 1})


def said_with(copy: Copy, user: str, line: str, before: tuple[str, str], new: tuple[str, str], text: str) -> list[str]:
    """What a crawl of two pages says once a new file took the place of another one: one line of its user changes."""
    module = f"src/muniment/{line.split()[1].removeprefix('muniment.').replace('.', '/').format(new[0], '')}.py"
    (copy.root / module).write_text(text)
    copy.replace(user, line.format(*before), line.format(*new))
    assert copy.changed() == ([module], {user: 2})
    with GatedSite({"/": "<a href=/a>a</a>", "/a": "a"}) as site:
        return [said.replace(site.url, "/") for said in copy.crawl(site.url).splitlines()]


def test_an_engine_is_one_file_and_one_line(copy: Copy) -> None:
    line = "from muniment.crawl.worker.{} import {} as DefaultEngine\n"
    before, new = ("http_engine", "HttpEngine"), ("loud_engine", "LoudEngine")
    said = said_with(copy, "src/muniment/app/worker.py", line, before, new, ENGINE)
    assert {"fetching /", "fetching /a"} <= set(said)


def test_a_queue_transport_is_one_file_and_one_line(copy: Copy) -> None:
    line = "from muniment.tracker.{} import {} as JobQueue\n"
    before, new = ("queue.local", "LocalQueue"), ("loud_queue", "LoudQueue")
    said = said_with(copy, "src/muniment/app/run.py", line, before, new, QUEUE)
    assert {"claimed /", "claimed /a"} <= set(said)


ROOM, POLITENESS = "src/muniment/rules/hosts/__init__.py", "src/muniment/rules/hosts/politeness.py"
SIGNALS = "src/muniment/crawl/worker/host_signals.py"


def add_host_rule(copy: Copy) -> None:
    (copy.root / "src/muniment/rules/hosts/allowance.py").write_text(ALLOWANCE)
    copy.replace(ROOM, "Others import: failures,", "Others import: allowance, failures,")
    copy.replace(POLITENESS, '"barred",\n    "offline",\n', '"barred",\n    "offline", "spent",\n')
    copy.insert(POLITENESS, "from muniment.model.failure import", "from muniment.rules.hosts.allowance import USED_UP")
    copy.replace(POLITENESS, '(" with Retry-After",)', '(" with Retry-After", USED_UP)')
    copy.insert(POLITENESS, "    fresh = signal.asked_at >= state.since", JUDGED)
    seen = "from muniment.rules.hosts.allowance import USED_UP, reset_ms"
    copy.insert(SIGNALS, "from muniment.rules.hosts.politeness import", seen)
    copy.insert(SIGNALS, "    if exchange.failure is None and exchange.status not in _TELLING:", SIGNALLED)


def test_a_host_rule_is_one_file_and_three_changes(copy: Copy) -> None:
    add_host_rule(copy)
    new, changed = copy.changed()
    assert (new, sorted(changed)) == (["src/muniment/rules/hosts/allowance.py"], sorted([ROOM, POLITENESS, SIGNALS]))

    last = Answer("<a href=/a>a</a>", headers=(("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "1")))
    with GatedSite({"/": last, "/a": "a"}) as site:
        copy.crawl(site.url)
        assert "/a" in site.requests
    events = [msgspec.json.decode(line) for line in (copy.root / "out/crawl.jsonl").read_bytes().splitlines()]
    told = [(event["event"], event["host"], event["reason"]) for event in events if "host" in event]
    assert told == [(event, "127.0.0.1", "an allowance that is used up") for event in ("pause", "resume")]


def test_the_house_takes_what_the_recipes_make(copy: Copy) -> None:
    add_format(copy)
    add_host_rule(copy)
    copy.run("-m", "pytest", "-q", "tests/contract/test_house.py", "tests/contract/test_rooms.py")


def test_where_to_change_what_is_there() -> None:
    """The files and names of the table in `docs/contributing.md`."""
    text = (ROOT / "docs/contributing.md").read_text()
    table = text[text.index("## Where to change what") : text.index("## Recipes")]
    files = re.findall(r"`([\w/]+(?:\.py|/))`", table)
    assert len(files) > 10
    assert [name for name in files if not (ROOT / "src/muniment" / name).exists()] == []
    for name, file in re.findall(r"`([A-Za-z_]+(?:=True)?)` in `([\w/]+\.py)`", table):
        assert name in (ROOT / "src/muniment" / file).read_text(), name
