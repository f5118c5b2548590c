"""The documents are true: commands, SQL and Python run, tables equal the code, links lead somewhere."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import click
import duckdb
import pytest
from options_page import filled
from tests.support.nginx import Nginx

from forked import ForkedWithChildren
from muniment.archive.index.parquet import SCHEMA
from muniment.cli.crawl import crawl
from muniment.model.failure import FAILURE_CODES
from muniment.model.network.scopes import TokenScope
from muniment.rules.ignore_sets import built_in, built_in_names
from muniment.seeds.formats import FORMATS
from muniment.tracker.schema.pipelines import metadata
from muniment.web.application import ROUTES
from muniment.web.authentication import Need

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
EXAMPLE = "https://example.com/"
OURS = ("muniment ", "./scripts/run ")
NOT_RUN_HERE = ("./scripts/test", "pipx ", "uv ", "wb-manager ", "wayback")
"""What other tests run (installation, replay), or what would run this test."""


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def _lines(*pages: Path) -> list[str]:
    return [line for page in pages for block in _blocks(page, "sh") for line in block.splitlines() if line.strip()]


# -- commands, SQL and Python


@pytest.fixture
def launch() -> type[subprocess.Popen[str]]:
    """The documents say what commands do, and not how Python starts."""
    return ForkedWithChildren


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Nginx]:
    root = tmp_path / "site"
    (root / "docs").mkdir(parents=True)
    words = " ".join(f"word{number}" for number in range(200))
    head = "<link rel=stylesheet href=style.css><img src=logo.png>"
    (root / "index.html").write_text(f"{head}<a href=about.html>About</a><a href=docs/a.html>A</a>{words}")
    (root / "style.css").write_text("body { background: url(logo.png) }")
    (root / "logo.png").write_bytes(b"\x89PNG" + bytes(range(256)))
    for number, name in enumerate(("about.html", "docs/a.html", "docs/b.html")):
        (root / name).write_text(f"<a href=/docs/b.html>b</a><a href=/>home</a>{number} {words}")
    with Nginx(root) as server:
        yield server


def test_commands_of_readme_and_quickstart(muniment: Any, site: Nginx, tmp_path: Path) -> None:
    lines = _lines(ROOT / "README.md", DOCS / "install.md", DOCS / "quickstart.md")
    for line in lines:
        assert line.startswith((*OURS, *NOT_RUN_HERE)), f"nobody runs {line!r}"
    ours = [line for line in dict.fromkeys(lines) if line.startswith(OURS)]
    _write_lists(tmp_path, site.url)
    for line in ours:
        _run(muniment, line, site.url)
    for line in ours:
        if lines.count(line) > 1 and " crawl " in line:
            before = len(site.requests())
            assert "finished; nothing to do" in _run(muniment, line, site.url)
            assert len(site.requests()) == before, f"{line} made requests the second time"
    there = {re.sub("-(wal|shm)$", "", path.name) for path in (tmp_path / "example").iterdir()}
    assert there == {"muniment-00000.warc.gz", "captures.parquet", "crawl.jsonl", "tracker.sqlite"}
    assert there <= _promised_files()


def _write_lists(where: Path, url: str) -> None:
    """The lists that examples name."""
    (where / "urls.txt").write_text(f"# a comment\n\n{url}\n{url}about.html\nno-url\n{url}docs/a.html\n")
    lines = {"url": url, "source": "sitemap", "depth": 1}, {"url": url, "source": "a friend"}
    (where / "pages.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_commands_and_sql_of_fetch(muniment: Any, site: Nginx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write_lists(tmp_path, site.url)
    listed = "".join(f"<url><loc>{site.url}{name}</loc></url>" for name in ("", "about.html"))
    (site.root / "sitemap.xml").write_text(f"<urlset>{listed}</urlset>")
    for line in _lines(DOCS / "fetch.md"):
        _run(muniment, line, site.url)
    monkeypatch.chdir(tmp_path)
    fields, again, count = [duckdb.sql(block).fetchall() for block in _blocks(DOCS / "fetch.md", "sql")]
    assert fields == [(site.url, "sitemap"), (site.url, "a friend")]
    assert [(source, *row[:2]) for source, *row in again] == [(source, site.url, 200) for _, source in fields]
    assert len({tuple(row[1:]) for row in again}) == 1, "one record"
    assert count == [(3,)]
    found = duckdb.sql("SELECT meta_json, seed_url FROM 'with-fields/captures.parquet'").fetchall()
    assert found == [('{"source":"sitemap","depth":"1"}', site.url), ('{"source":"a friend"}', site.url)]
    mapped = duckdb.sql("SELECT url, found_as FROM 'mapped/captures.parquet' ORDER BY url").fetchall()
    assert mapped == [
        (site.url, "sitemap-url"), (site.url + "about.html", "sitemap-url"), (site.url + "sitemap.xml", "sitemap")
    ]  # fmt: skip
    again = duckdb.sql("SELECT url FROM 'again/captures.parquet' ORDER BY url").fetchall()
    assert again == [(site.url,), (site.url + "about.html",), (site.url + "docs/a.html",)]


def test_commands_of_export(muniment: Any, site: Nginx, tmp_path: Path) -> None:
    for out in ("example", "runs/a", "runs/b"):
        assert muniment("crawl", site.url, "-o", out, "--quiet").code == 0
    for line in _lines(DOCS / "export.md"):
        _run(muniment, line, site.url)
    assert (tmp_path / "example.cdxj").read_text().count("\n") > 3
    assert (tmp_path / "all.cdxj.gz.idx").exists()
    assert {path.name for path in tmp_path.glob("*.wacz")} == {"example.wacz", "all.wacz"}


def test_commands_of_replay(muniment: Any, site: Nginx) -> None:
    for out in ("example", "runs/a"):
        assert muniment("crawl", site.url, "-o", out, "--quiet").code == 0
    ours = [line for line in _lines(DOCS / "replay.md") if line.startswith(OURS)]
    assert len(ours) == 3
    for line in ours:
        _run(muniment, line, site.url)


def _run_until_ready(muniment: Any, line: str, url: str) -> str:
    """Run an example that goes on until it is stopped."""
    process = muniment.start(*shlex.split(line.replace(EXAMPLE, url))[1:], "--no-open")
    said = str(process.stdout.readline())
    process.terminate()
    assert process.wait(30) == 0, process.communicate()
    assert said.startswith("http://127.0.0.1:"), said
    return said


def _run(muniment: Any, line: str, url: str) -> str:
    """Run an example, `example.com` being the local server; what it printed."""
    if " replay " in line or " dashboard " in line:
        return _run_until_ready(muniment, line, url)
    done = muniment(*shlex.split(line.replace(EXAMPLE, url))[1:])
    expected = 3 if "--max-pages" in line else 0
    assert done.code == expected, f"{line}\n{done.stdout}{done.stderr}"
    return str(done.stdout + done.stderr)


def _promised_files() -> set[str]:
    text = (DOCS / "output.md").read_text()
    return set(re.findall(r"^- `([\w.-]+)`", text[: text.index("## Columns")], re.MULTILINE))


def test_readme_begins_with_two_commands() -> None:
    assert _lines(ROOT / "README.md")[:2] == [f"./scripts/run crawl {EXAMPLE} -o example", "./scripts/test"]


@pytest.mark.parametrize("name", ["run", "test", "site", "build", "fuzz", "lock"])
def test_scripts_that_the_docs_name_can_be_run(name: str) -> None:
    assert (ROOT / "scripts" / name).stat().st_mode & 0o111
    done = subprocess.run(["sh", "-n", ROOT / "scripts" / name], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_sql_and_python_of_output(
    muniment: Any, site: Nginx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert muniment("crawl", site.url).code == 0
    monkeypatch.chdir(tmp_path)
    answers = [duckdb.sql(block).fetchall() for block in _blocks(DOCS / "output.md", "sql")]
    [(rows, payload)] = duckdb.sql("SELECT count(*), sum(body_length) FROM 'muniment-out/captures.parquet'").fetchall()
    assert sum(count for _, count in answers[0]) == rows
    assert answers[1] == [("127.0.0.1", payload, rows)]
    assert answers[2] == []
    assert {url.removeprefix(site.url) for url, _, _ in answers[3]} == {"", "about.html", "docs/a.html", "docs/b.html"}
    [block] = _blocks(DOCS / "output.md", "python")
    assert len([line for line in block.splitlines() if line.strip()]) == 5
    exec(compile(block, "docs/output.md", "exec"), {})
    printed = capsys.readouterr().out
    assert printed.count("WARC-Type: response") + printed.count("WARC-Type: revisit") == rows


# -- tables against code


def _below(page: Path, heading: str) -> str:
    """The text below a heading of level two, to the next one."""
    text = page.read_text()
    start = text.index(f"\n## {heading}")
    end = text.find("\n## ", start + 1)
    return text[start : end if end > 0 else len(text)]


def _items(page: Path, heading: str) -> dict[str, str]:
    """What a list below a heading says of each `name`."""
    return dict(re.findall(r"(?m)^- `(\w+)`: (.+)$", _below(page, heading)))


def _section(page: Path, heading: str) -> list[list[str]]:
    """The rows of all tables below a heading of level two, to the next one."""
    lines = _below(page, heading).splitlines()
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if line.startswith("|")]
    rows = [[cell.strip().replace(r"\|", "|") for cell in row] for row in cells]
    return [row for row in rows if not set(row[0]) <= {"-"}]


def test_tables_of_options_are_those_of_the_command_line() -> None:
    """With MUNIMENT_WRITE_DOCS in the environment the tables are written, else they are compared."""
    page = DOCS / "options.md"
    text = page.read_text()
    if os.environ.get("MUNIMENT_WRITE_DOCS"):
        page.write_text(filled(text))
    else:
        how = "MUNIMENT_WRITE_DOCS=1 ./scripts/test tests/contract/test_docs.py -k tables_of_options"
        assert text == filled(text), f"docs/options.md is not what --help says; write it with: {how}"


NEEDED: dict[str, str] = {
    Need.NOTHING: "none", Need.ANY: "any", Need.SCRAPE: "any", Need.PIPELINE: "a pipeline's"
}  # fmt: skip


def table_of_routes() -> str:
    """The table of `docs/api.md`: which token opens a route, as the routes have it."""
    rows: dict[str, list[str]] = {}
    for route in ROUTES:
        rows.setdefault(NEEDED.get(route.needs, f"`{route.needs}`"), []).append(f"`{route.method} {route.path}`")
    ranks = {f"`{scope}`": scope.rank for scope in TokenScope}
    in_order = sorted(rows, key=lambda need: ranks.get(need, -1))
    return "| token | opens |\n|---|---|\n" + "".join(f"| {need} | {'<br>'.join(rows[need])} |\n" for need in in_order)


def test_the_table_of_routes_is_that_of_the_server() -> None:
    """As with the tables of options."""
    page = DOCS / "api.md"
    text = page.read_text()
    made = re.sub(
        r"(?ms)^<!-- routes -->\n.*?^<!-- end -->\n", f"<!-- routes -->\n{table_of_routes()}<!-- end -->\n", text
    )
    if os.environ.get("MUNIMENT_WRITE_DOCS"):
        page.write_text(made)
    else:
        assert text == made, "MUNIMENT_WRITE_DOCS=1 ./scripts/test tests/contract/test_docs.py -k table_of_routes"


def table_of_formats() -> str:
    """The table of formats of seed lists in `docs/fetch.md`, as the table in the code has it."""
    rows = []
    for one in FORMATS.values():
        names = [", ".join(f"`{suffix}`" for suffix in one.suffixes), one.also]
        rows.append(f"| `{one.name}` | {', and '.join(filter(None, names))} | {one.about} |\n")
    return "| format | by name | what counts |\n|---|---|---|\n" + "".join(rows)


def test_formats_of_lists_are_documented() -> None:
    """With MUNIMENT_WRITE_DOCS in the environment the table is written, else it is compared."""
    page = DOCS / "fetch.md"
    text = page.read_text()
    [shown] = re.findall(r"(?m)^\| format \|.*\n(?:\|.*\n)+", text)
    if os.environ.get("MUNIMENT_WRITE_DOCS"):
        page.write_text(text.replace(shown, table_of_formats()))
    else:
        assert shown == table_of_formats()


def test_help_writes_sizes_and_times_as_people_do() -> None:
    text = crawl.get_help(click.Context(crawl, info_name="crawl", terminal_width=100))
    assert "[default: 1 GiB]" in text
    assert "[default: 43200 (12 h)]" in text
    assert not re.search(r"default: \d+\.0\b|\d{6,}", text)


def test_every_ignore_set_is_documented() -> None:
    assert _items(DOCS / "ignores.md", "The sets") == {name: built_in(name).about for name in built_in_names()}


def test_columns_equal_the_index() -> None:
    rows = [row for row in _section(DOCS / "output.md", "Columns of captures.parquet") if row[0] != "column"]
    assert [(row[0].strip("`"), row[1]) for row in rows] == [(field.name, str(field.type)) for field in SCHEMA]


def test_error_codes_are_documented() -> None:
    text = (DOCS / "output.md").read_text()
    section = text[text.index("## Error codes") : text.index("## Records")]
    assert set(re.findall(r"`([a-z-]+)`", section)) >= set(FAILURE_CODES)


def test_states_are_documented() -> None:
    comments = (ROOT / "src/muniment/tracker/schema/tables.py").read_text()
    architecture = (DOCS / "architecture.md").read_text()
    for states in re.findall(r'comment="([A-Z]+(?: \| [A-Z]+)+)"', comments):
        assert all(state in architecture for state in states.split(" | ")), states


def test_the_tables_of_the_tracker_are_documented() -> None:
    expected = {table.name: table.info["holds"] for table in metadata.tables.values()}
    assert _items(DOCS / "tracker.md", "Tables") == expected


# -- links


@cache
def _anchors(page: Path) -> frozenset[str]:
    """The anchors of a page as GitHub makes them from headings."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings)


def _links(page: Path) -> list[str]:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]*`", lambda code: code[0] if "](" in code[0] else "", text)
    return re.findall(r"\]\(([^)\s]+)\)", text)


def _resolves(page: Path, link: str) -> bool:
    path, _, anchor = unquote(link).partition("#")
    target = (page.parent / path).resolve() if path else page
    return target.is_relative_to(ROOT) and target.exists() and (not anchor or anchor in _anchors(target))


def test_links_resolve() -> None:
    links = [(page, link) for page in PAGES for link in _links(page) if "://" not in link]
    assert [f"{page.relative_to(ROOT)}: {link}" for page, link in links if not _resolves(page, link)] == []


def test_index_lists_every_document() -> None:
    linked = {(DOCS / link).resolve() for link in _links(DOCS / "index.md")}
    missing = {page for page in PAGES if page.is_relative_to(DOCS)} - linked - {DOCS / "index.md"}
    assert not missing, f"docs/index.md does not link {sorted(map(str, missing))}"


def test_each_decision_has_one_number_and_is_found_by_it() -> None:
    """A number whose decision was merged into another one leads there; links are tested above."""
    text = "\n".join(page.read_text() for page in sorted((DOCS / "decisions").glob("*.md")))
    numbers = re.findall(r"^##? (\d{4})\b", text, re.MULTILINE)
    assert 30 < len(numbers) <= 45, "merge the decisions of one topic"
    assert len(set(numbers)) == len(numbers)
    listed = re.findall(r"^(?:- |\| )?\[(\d{4})\]", (DOCS / "decisions/numbers.md").read_text(), re.MULTILINE)
    assert len(set(listed)) == len(listed)
    assert len(listed) > 150
    assert set(numbers) <= set(listed)


def test_what_documents_name_as_a_test_is_one() -> None:
    named = {name for page in PAGES for name in re.findall(r"`(test_[a-z0-9_]+)`", page.read_text())}
    tests = {
        name for path in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    modules = {path.stem for path in (ROOT / "tests").rglob("*.py")}
    assert named - tests - modules == set()


def test_changelog_knows_this_version() -> None:
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version
    assert f"\n## [{version[1]}]" in (ROOT / "CHANGELOG.md").read_text()
