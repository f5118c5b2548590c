"""Hooks of a crawl, as real processes: order, what they get, what they say, how they end, and what is left."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hook_plugins import artifacts_of, hook, page_folder, results_of
from tests.support.gated_site import Answer, GatedSite
from tests.support.hostile_responses import bomb

from muniment.control.hook_reports import hooks_that_fit
from muniment.tracker.processes.sqlite import open_processes

HTML = (("Content-Type", "text/html; charset=iso-8859-1"),)


@pytest.fixture
def site() -> Iterator[GatedSite]:
    """A page in Latin 1 with a title and a link."""
    pages = {
        "/": Answer("<title>T\xe9st</title><a href=/b>b</a>".encode("latin-1"), headers=HTML),
        "/b": "b",
        "/c": "c",
    }
    with GatedSite(pages) as served:
        yield served


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """A folder for plugins."""
    return tmp_path / "plugins"


def crawl(muniment: Any, site: GatedSite, plugins: Path, out: Path, *more: object, code: int = 0) -> Any:
    """A crawl of one page with its hooks."""
    # hooks run at a low priority: beside other tests they may take long
    done = muniment(
        *("crawl", f"{site.url}", "-o", out, "--hooks", plugins, "--page-only", "--no-sitemaps", "--no-robots"),
        *more,
        timeout=240,
    )
    assert done.code == code, done
    return done


def test_hooks_run_in_order_around_each_other(muniment: Any, site: GatedSite, plugins: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    say = f'echo "$(basename "$0")" >> {log}\n'
    daemon = f'trap "echo end-of-{{0}} >> {log}; exit 0" TERM\n{say}echo ready\nwhile :; do sleep 0.05; done\n'
    hook(plugins, "daemon", "on_CrawlSetup__1_daemon.bg.sh", daemon.format("crawl"))
    hook(plugins, "z", "on_Snapshot__5_first.sh", say)
    hook(plugins, "a", "on_Snapshot__10_bg.bg.sh", f"sleep 0.3\n{daemon.format('page')}")
    hook(
        plugins,
        "m",
        "on_Snapshot__20_js.js",
        f"#!/usr/bin/env node\nrequire('fs').appendFileSync({str(log)!r}, 'js\\n')\n",
    )
    hook(plugins, "b", "on_Snapshot__30_py.py", f"#!{sys.executable}\nopen({str(log)!r}, 'a').write('py\\n')\n")
    hook(plugins, "a", "on_SnapshotCleanup__1_clean.sh", say)
    hook(plugins, "z", "on_CrawlEnd__1_end.sh", say)
    hook(plugins, "z", "on_CrawlCleanup__1_cleanup.sh", say)
    crawl(muniment, site, plugins, tmp_path / "out")
    assert log.read_text().split() == [
        "on_CrawlSetup__1_daemon.bg.sh", "on_Snapshot__5_first.sh", "on_Snapshot__10_bg.bg.sh", "js", "py",
        "on_SnapshotCleanup__1_clean.sh", "end-of-page", "on_CrawlEnd__1_end.sh", "on_CrawlCleanup__1_cleanup.sh",
        "end-of-crawl",
    ]  # fmt: skip
    rows = {row["hook"]: row for row in results_of(tmp_path / "out")}
    assert {row["status"] for row in rows.values()} == {"noresults"}
    assert [name for name, row in rows.items() if row["background"]] != []


def test_a_page_of_background_hooks_alone_gives_them_their_time(
    muniment: Any, site: GatedSite, plugins: Path, tmp_path: Path
) -> None:
    hook(plugins, "a", "on_Snapshot__1_a.bg.sh", "trap '' TERM\nsleep 0.7\necho done > done\n")
    crawl(muniment, site, plugins, tmp_path / "out")
    [row] = results_of(tmp_path / "out")
    assert (row["status"], row["exit_code"], row["files"]) == ("succeeded", 0, 1)


def test_a_hook_gets_the_recorded_page_and_nothing_of_the_operator(
    muniment: Any, site: GatedSite, plugins: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    muniment.environ |= {"PRIVATE_THING": "mine", "WANTED": "yes", "http_proxy": "", "LD_PRELOAD": ""}
    hook(
        *(plugins, "see", "on_Snapshot__1_see.sh"),
        'env > env; printf "%s\\n" "$@" > args; pwd > cwd; cp "$MUNIMENT_BODY" body; cp "$MUNIMENT_PAGE" card\n'
        'nice > nice; cat > stdin; cp "$SNAP_DIR"/*_dom/output.html dom; echo "$SEE_NUMBER" > number',
        properties={"SEE_NUMBER": {"type": "integer", "default": 3}, "SEE_LIST": {"type": "array", "default": ["a"]}},
    )
    crawl(muniment, site, plugins, out, "--hook-env", "WANTED", "--hook-env", "SEE_NUMBER=7")
    folder = page_folder(out) / "see"
    given = dict(line.partition("=")[::2] for line in (folder / "env").read_text().splitlines())
    assert "PRIVATE_THING" not in given and "LD_PRELOAD" not in given
    assert (given["WANTED"], given["SEE_NUMBER"], given["SEE_LIST"]) == ("yes", "7", '["a"]')
    assert (given["ABX_RUNTIME"], given["DATA_DIR"], given["SNAP_DIR"]) == ("muniment", str(out), str(folder.parent))
    ours = {"MUNIMENT_PAGE", "MUNIMENT_BODY", "MUNIMENT_PROCESS", "MUNIMENT_PARENT"}
    assert {name for name in given if name.startswith("MUNIMENT_")} == ours
    context = json.loads(given["EXTRA_CONTEXT"])
    assert context["snapshot_id"] == folder.parent.name
    assert (context["hook_name"], context["attempt"]) == ("on_Snapshot__1_see", 1)
    args = (folder / "args").read_text().splitlines()
    assert args == [f"--url={site.url}", f"--snapshot-id={folder.parent.name}", "--depth=0"]
    assert (folder / "cwd").read_text().strip() == str(folder)
    assert (folder / "body").read_bytes() == "<title>T\xe9st</title><a href=/b>b</a>".encode("latin-1")
    assert "<title>T\xe9st</title>" in (folder / "dom").read_text("utf-8")
    assert (folder / "stdin").read_bytes() == b""
    assert int((folder / "nice").read_text()) == min(19, os.nice(0) + 10)
    card = json.loads((folder / "card").read_text())
    assert (card["url"], card["title"], card["status"]) == (f"{site.url}", "T\xe9st", 200)
    assert not (folder.parent / "muniment_body").exists()


def test_what_hooks_put_in_place_of_a_body_goes_and_nothing_that_it_leads_to(
    muniment: Any, site: GatedSite, plugins: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "output.html").write_text("mine")
    moved = f'cd "$SNAP_DIR"; mkdir -p muniment_body/more/less; rm -r muniment_dom; ln -s {outside} muniment_dom'
    moved += f"; rm -r muniment_network; ln -s {outside} muniment_network"
    hook(plugins, "move", "on_Snapshot__1_move.sh", moved)
    crawl(muniment, site, plugins, tmp_path / "out")
    left = sorted(path.name for path in page_folder(tmp_path / "out").iterdir())
    assert left == ["move", "page.json"]
    assert (outside / "output.html").read_text() == "mine"


class _AnyPage(dict[str, Any]):
    """Every path has a page."""

    def get(self, _path: str, _otherwise: Any = None) -> Any:
        return Answer("fine")


def test_odd_urls_arrive_as_one_argument(muniment: Any, plugins: Path, tmp_path: Path) -> None:
    out, made = tmp_path / "out", tmp_path / "made"
    path = f"/$(touch%20{made})'%22%0A;`touch%20{made}`/../{'x' * 4000}"
    hook(plugins, "see", "on_Snapshot__1_see.sh", 'printf "%s" "$1" > url; printf "%s" "$#" > count')
    with GatedSite({}) as site:
        site.pages = _AnyPage()
        alone = "--page-only", "--no-sitemaps", "--no-robots"
        done = muniment("crawl", f"{site.url.rstrip('/')}{path}", "-o", out, "--hooks", plugins, *alone)
        assert done.code == 0, done
    folder = page_folder(out) / "see"
    [row] = results_of(out)
    assert (folder / "url").read_text() == f"--url={row['url']}"
    assert (folder / "count").read_text() == "3"
    assert len(row["url"]) > 4000
    assert not made.exists()


RESULT = 'echo \'{"type": "ArchiveResult", "status": "%s"}\'\n'


@pytest.mark.parametrize(
    ("text", "status", "error", "exit_code"),
    [
        ("exit 0", "noresults", "", 0),
        ("echo x > file", "succeeded", "", 0),
        ("exit 3", "failed", "exit: 3", 3),
        ("exit 10", "skipped", "", 10),
        ("kill -9 $$", "failed", "signal: killed by signal 9", -9),
        (f"{RESULT % 'succeeded'}exit 1", "failed", "exit: 1", 1),
        (f"{RESULT % 'noresults'}exit 1", "noresults", "", 1),
        (f"{RESULT % 'noresult'}exit 0", "noresults", "", 0),
        (f"{RESULT % 'failed'}exit 0", "failed", "record: it says that it failed", 0),
        (f"{RESULT % 'failed'}{RESULT % 'skipped'}exit 0", "skipped", "", 0),
        ("trap '' TERM\nwhile :; do sleep 0.1; done", "failed", "timeout: over 1 s", -9),
        ("kill -STOP $$", "failed", "timeout: over 1 s", -9),
        ('rm -rf "$PWD"; exit 0', "noresults", "", 0),
        ("#!/no/such/interpreter\n", "failed", "cannot-run: ", 127),
    ],
)  # fmt: skip
def test_each_end_has_its_status(
    muniment: Any, site: GatedSite, plugins: Path, tmp_path: Path, text: str, status: str, error: str, exit_code: int
) -> None:
    hook(plugins, "one", "on_Snapshot__1_one.sh", text)
    hook(plugins, "two", "on_Snapshot__2_next.sh", "exit 0")
    if text.startswith("#!/no"):
        # found by the doctor, if it were not taken away afterwards
        text = text.replace("/no/such", str(tmp_path))
        interpreter = tmp_path / "interpreter"
        interpreter.symlink_to("/bin/sh")
        hook(plugins, "one", "on_Snapshot__1_one.sh", text)
        hook(plugins, "zero", "on_Snapshot__0_zero.sh", f"rm {interpreter}")
    muniment.environ["MUNIMENT_PROCESSES"] = str(tmp_path / "kept")
    crawl(muniment, site, plugins, tmp_path / "out", "--hook-timeout", "1")
    rows = {row["plugin"]: row for row in results_of(tmp_path / "out")}
    assert (rows["one"]["status"], rows["two"]["status"]) == (status, "noresults")
    assert rows["one"]["error"].startswith(error)
    assert rows["one"]["exit_code"] == exit_code
    assert rows["one"]["timed_out"] == error.startswith("timeout")
    process = open_processes(tmp_path / "kept").get(rows["one"]["process_id"])
    assert process is not None
    assert (process.status, process.exit_code, process.process_type) == ("exited", exit_code, "hook")
    assert process.label == "one/on_Snapshot__1_one.sh"


def test_garbage_is_survived_and_counted(muniment: Any, site: GatedSite, plugins: Path, tmp_path: Path) -> None:
    text = f"""#!{sys.executable}
import json, os, sys
out = sys.stdout.buffer
out.write(b'{{"type": "ArchiveResult", "sta')
out.flush()
out.write(b'tus": "failed"}}\\n')
out.write(bytes(range(256)) + b"\\n" + b'{{"type": "Tag", "name": "\\xff"}}\\n')
out.write(b'{{"type": "Tag", "name": ' + b"[" * 5000 + b"]" * 5000 + b"}}\\n")
out.write(b'{{"type": "Tag", "name": "' + b"x" * (5 << 20) + b'"}}\\n')
out.write(b'{{"type": "ArchiveResult", "status": "perfect"}}\\n')
out.write(b'{{"type": "Strange"}}\\n')
for n in range(150000):
    out.write(b'{{"type": "Tag", "name": "t"}}\\n')
out.write(b'{{"type": "ArchiveResult", "status": "succeeded", "output_str": "whole", "output_json": {{"a": 1}}}}')
out.flush()
os.close(1)
os.close(2)
"""
    muniment.environ["MUNIMENT_PROCESSES"] = str(tmp_path / "kept")
    hook(plugins, "noise", "on_Snapshot__1_noise.py", text)
    done = crawl(muniment, site, plugins, tmp_path / "out")
    [row] = results_of(tmp_path / "out")
    assert (row["status"], row["output_str"], row["output_json"]) == ("succeeded", "whole", '{"a":1}')
    assert (row["bad_lines"], row["records"]) == (4, 150_003)
    rows = open_processes(tmp_path / "kept").newest(100)
    [worker] = [one for one in rows if one.label == "hooks"]
    assert worker.max_rss is not None
    assert worker.max_rss < 300 << 20
    assert done.stderr.count("'Strange'") <= 1


def test_much_output_leaves_the_databases_small(muniment: Any, site: GatedSite, plugins: Path, tmp_path: Path) -> None:
    sizes = []
    for text in ("exit 0", "yes a line of text | head -c 50000000"):
        place = tmp_path / f"run{len(sizes)}"
        muniment.environ["MUNIMENT_PROCESSES"] = str(place / "kept")
        hook(plugins, "much", "on_Snapshot__1_much.sh", text)
        crawl(muniment, site, plugins, place / "out")
        [row] = results_of(place / "out")
        assert (row["status"], row["error"]) == ("noresults", "")
        sizes.append(sum(path.stat().st_size for path in place.rglob("*.sqlite*") if path.is_file()))
    process = open_processes(place / "kept").get(row["process_id"])
    assert process is not None
    assert process.stdout.size == 50_000_000
    assert sizes[0] > 0
    assert sizes[1] - sizes[0] < 300_000


def test_later_hooks_see_what_earlier_ones_said(muniment: Any, site: GatedSite, plugins: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    own = '{"type": "Snapshot", "url": "\'"${1#--url=}"\'", "title": "Own", "tags": ["a", "b"]}'
    large = '{"type": "ArchiveResult", "status": "skipped", "output_json": {"a": "\'"$x"\'"}}'
    fill = 'x=$(head -c 70000 /dev/zero | tr "\\0" x)'
    hook(plugins, "say", "on_Snapshot__1_say.sh", f"{fill}; echo '{own}'; echo '{large}'")
    where = {"SEE_WHERE": {"type": "string", "default": "{PERSONAS_DIR}/x {HOME}"}}
    hook(
        *(plugins, "see", "on_Snapshot__2_see.sh"),
        'cp "$MUNIMENT_PAGE" card; echo "$SEE_WHERE" > where; ls -d "$PERSONAS_DIR"',
        properties=where,
    )
    eat = f"#!{sys.executable}\nimport time\nheld = bytearray(300 << 20)\ntime.sleep(60)\n"
    hook(plugins, "eat", "on_Snapshot__3_eat.py", eat, properties={"EAT_MEMORY_LIMIT": {"default": "100MiB"}})
    crawl(muniment, site, plugins, out)
    rows = {row["plugin"]: row for row in results_of(out)}
    assert (rows["say"]["status"], rows["say"]["output_json"], rows["say"]["bad_lines"]) == ("skipped", "", 0)
    assert rows["see"]["exit_code"] == 0
    assert rows["eat"]["error"].startswith("memory: ")
    for card in (page_folder(out) / "see" / "card", page_folder(out) / "page.json"):
        said = json.loads(card.read_text())
        assert (said["title"], said["tags"]) == ("Own", ["a", "b"])
    assert (page_folder(out) / "see" / "where").read_text() == f"{out}/hooks/personas/x {os.environ['HOME']}\n"


def test_output_and_memory_have_limits(muniment: Any, site: GatedSite, plugins: Path, tmp_path: Path) -> None:
    hook(plugins, "flood", "on_Snapshot__1_flood.sh", "exec yes")
    eat = f"#!{sys.executable}\nimport time\nheld = bytearray(300 << 20)\ntime.sleep(60)\n"
    hook(plugins, "eat", "on_Snapshot__2_eat.py", eat)
    hook(plugins, "next", "on_Snapshot__3_next.sh", "exit 0")
    crawl(muniment, site, plugins, tmp_path / "out", "--hook-output", "1MiB", "--hook-memory", "200MiB")
    rows = {row["plugin"]: row for row in results_of(tmp_path / "out")}
    assert rows["flood"]["error"].startswith("output-limit: ")
    assert rows["eat"]["error"].startswith("memory: ")
    assert rows["next"]["status"] == "noresults"


def test_what_a_hook_begins_ends_with_it(muniment: Any, site: GatedSite, plugins: Path, tmp_path: Path) -> None:
    """Six daemons in sessions of their own, half of them deaf to SIGTERM, which hold its output open."""
    text = f"""#!{sys.executable}
import os, signal, subprocess, sys
for n in range(6):
    if os.fork() == 0:
        os.setsid()
        if n % 2:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork() == 0:
            open({str(tmp_path)!r} + f"/pid{{n}}", "w").write(str(os.getpid()))
            signal.pause()
            while True: signal.pause()
        os._exit(0)
import time
while len([n for n in os.listdir({str(tmp_path)!r}) if n.startswith("pid")]) < 6: time.sleep(0.02)
"""
    hook(plugins, "forks", "on_Snapshot__1_forks.py", text)
    crawl(muniment, site, plugins, tmp_path / "out")
    pids = [int(path.read_text()) for path in tmp_path.glob("pid*")]
    assert len(pids) == 6
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []
    [row] = results_of(tmp_path / "out")
    assert row["status"] == "noresults"


def test_files_are_listed_as_they_are(muniment: Any, site: GatedSite, plugins: Path, tmp_path: Path) -> None:
    text = f"""#!{sys.executable}
import os, socket
os.mkfifo("fifo")
socket.socket(socket.AF_UNIX).bind("socket")
os.symlink("/etc/passwd", "out")
os.symlink(".", "circle")
os.makedirs("deep/er")
open("deep/er/text.txt", "w").write("hello")
open(b"na\\xffme", "w").write("x")
with open("sparse", "wb") as file: file.truncate(1 << 30)
os.mkdir("many")
for n in range(2500): open(f"many/{{n}}", "w").close()
"""
    hook(plugins, "files", "on_Snapshot__1_files.py", text)
    out = tmp_path / "out"
    crawl(muniment, site, plugins, out)
    rows = artifacts_of(out)
    assert len(rows) == 2500 + 5, "more than are written at once"
    assert (rows["files/out"]["link"], rows["files/circle"]["link"]) == ("/etc/passwd", ".")
    assert rows["files/out"]["sha256"] == ""
    text_row = rows["files/deep/er/text.txt"]
    assert (text_row["sha256"], text_row["media_type"]) == (hashlib.sha256(b"hello").hexdigest(), "text/plain")
    assert rows["files/sparse"]["bytes"] == 1 << 30
    assert "files/na\\xffme" in rows
    [row] = results_of(out)
    assert row["files"] == 2505


def test_a_hook_that_failed_is_tried_again_before_the_next(
    muniment: Any, site: GatedSite, plugins: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    hook(plugins, "a", "on_Snapshot__1_a.sh", f"echo a >> {log}; [ $(grep -c a {log}) -ge 3 ]")
    hook(plugins, "b", "on_Snapshot__2_b.sh", f"echo b >> {log}")
    crawl(muniment, site, plugins, tmp_path / "out", "--hook-tries", "4")
    assert log.read_text().split() == ["a", "a", "a", "b"]
    tries = [row for row in results_of(tmp_path / "out") if row["plugin"] == "a"]
    assert [(row["attempt"], row["status"]) for row in tries] == [(1, "failed"), (2, "failed"), (3, "noresults")]
    assert len({row["process_id"] for row in tries}) == 3


def test_links_of_hooks_are_followed(muniment: Any, site: GatedSite, plugins: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    good = json.dumps({"type": "Snapshot", "url": f"{site.url}c", "depth": 9})
    link = f"echo '{good}'; echo '{json.dumps({'type': 'Snapshot', 'url': 'nothing'})}'"
    hook(plugins, "a", "on_Snapshot__1_a.sh", f'case "$1" in *b) {link};; esac')
    done = muniment("crawl", f"{site.url}", "-o", out, "--hooks", plugins, "--no-sitemaps", "--no-robots")
    assert done.code == 0, done
    rows = {row["url"]: row for row in pq.read_table(out / "captures.parquet").to_pylist()}
    assert (rows[f"{site.url}c"]["found_as"], rows[f"{site.url}c"]["depth"]) == ("hook", 2)
    results = {row["url"]: row for row in results_of(out)}
    assert set(results) == {f"{site.url}", f"{site.url}b", f"{site.url}c"}
    assert (results[f"{site.url}b"]["links"], results[f"{site.url}b"]["bad_lines"]) == (1, 1)


def test_a_limit_is_told_as_without_hooks(muniment: Any, site: GatedSite, plugins: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    hook(plugins, "end", "on_CrawlEnd__1_end.sh", "echo ended > f")
    hook(plugins, "bye", "on_CrawlCleanup__1_bye.sh", "echo bye > f")
    done = muniment(
        "crawl", f"{site.url}", "-o", out, "--hooks", plugins, "--max-pages", "1", "--no-sitemaps", "--no-robots"
    )
    assert (done.code, "Stopped (limit: --max-pages)" in done.stderr) == (3, True), done
    last = json.loads((out / "crawl.jsonl").read_text().splitlines()[-1])
    assert (last["event"], last["reason"]) == ("finish", "limit: --max-pages")
    assert [row["event"] for row in results_of(out)] == ["CrawlCleanup"]
    more = muniment("crawl", f"{site.url}", "-o", out, "--hooks", plugins, "--no-sitemaps", "--no-robots")
    assert more.code == 0, more
    assert [row["event"] for row in results_of(out)].count("CrawlEnd") == 1


def test_a_run_is_one_tree_down_to_the_programs_of_hooks(
    muniment: Any, site: GatedSite, plugins: Path, tmp_path: Path
) -> None:
    muniment.environ["MUNIMENT_PROCESSES"] = str(tmp_path / "kept")
    said = '{"type": "Process", "cmd": ["wget", "--version"], "exit_code": 4}'
    binary = {"type": "Binary", "name": "tool\0", "abspath": "/bin/sh", "version": "1.2", "binprovider": "env"}
    own = 'echo \'{"type": "Process", "cmd": ["own"], "pid": \'$$\'}\''
    named = 'sleep 0.9 & echo \'{"type": "Process", "cmd": ["sleep", "named"], "pid": \'$!\'}\''
    text = f"sleep 1.1\necho '{said}'\necho '{json.dumps(binary)}'\n{own}\n{named}\nwait"
    hook(plugins, "a", "on_Snapshot__1_a.sh", text)
    crawl(muniment, site, plugins, tmp_path / "out")
    store = open_processes(tmp_path / "kept")
    [row] = results_of(tmp_path / "out")
    above = {one.id: one for one in store.above(row["process_id"])}
    hook_row = store.get(row["process_id"])
    assert hook_row is not None
    worker = above[str(hook_row.parent_id)]
    cli = above[str(worker.parent_id)]
    assert [(worker.process_type, worker.label), cli.process_type] == [("worker", "hooks"), "cli"]
    below = [one for one in store.below(hook_row.id) if one.id != hook_row.id]
    assert sorted((" ".join(one.cmd), one.process_type, one.exit_code, one.status) for one in below) == [
        ("sleep 1.1", "binary", None, "exited"),
        ("sleep named", "binary", None, "exited"),
        ("wget --version", "binary", 4, "exited"),
    ]
    [found] = store.binaries(hook_row.machine_id)
    assert (found.abspath, found.version, found.sha256, found.binprovider) == ("/bin/sh", "1.2", "", "env")


def test_hooks_run_over_what_was_captured(muniment: Any, site: GatedSite, plugins: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    plain = muniment("crawl", f"{site.url}", "-o", out, "--no-sitemaps", "--no-robots")
    assert plain.code == 0
    site.requests.clear()
    hook(plugins, "copy", "on_Snapshot__1_copy.sh", 'cp "$MUNIMENT_BODY" body; [ -n "$GOOD" ]')

    def run(*more: object) -> dict[str, int]:
        done = muniment("hooks", "run", "-o", out, "--hooks", plugins, "--json", *more)
        assert done.code == 0, done
        return dict(json.loads(done.stdout)["statuses"])

    assert run("--url", f"{site.url}b") == {"failed": 1}
    assert run() == {"failed": 1}
    assert run() == {}
    assert run("--failed", "--hook-env", "GOOD=1") == {"succeeded": 2}
    assert run("--again", "--hook-env", "GOOD=1") == {"succeeded": 2}
    assert [row["attempt"] for row in results_of(out) if row["url"] == f"{site.url}b"] == [1, 2, 3]
    assert {path.read_bytes() for path in out.glob("hooks/pages/*/*/copy/body")} >= {b"b"}
    assert site.requests == []
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for path in (*out.glob("*.gz"), out / "captures.parquet"):
        shutil.copy(path, elsewhere)
    done = muniment("hooks", "run", "-o", elsewhere, "--hooks", plugins, "--json", "--hook-env", "GOOD=1")
    assert (done.code, json.loads(done.stdout)["statuses"]) == (0, {"succeeded": 2})
    assert (elsewhere / "hooks.sqlite").exists()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["application/octet-stream", "text/html; charset=iso-8859-1"])
def test_a_body_of_a_gigabyte_takes_no_memory(muniment: Any, plugins: Path, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "out"
    muniment.environ["MUNIMENT_PROCESSES"] = str(tmp_path / "kept")
    hook(plugins, "size", "on_Snapshot__1_size.sh", 'wc -c < "$MUNIMENT_BODY" > size; ls -l "$SNAP_DIR"/*')
    headers = ("Content-Type", kind), ("Content-Encoding", "gzip")
    with GatedSite({"/": Answer(bomb(1 << 30), headers=headers)}) as site:
        done = muniment("crawl", site.url, "-o", out, "--page-only", "--no-robots", "--no-sitemaps", timeout=240)
    assert done.code == 0, done
    done = muniment("hooks", "run", "-o", out, "--hooks", plugins, timeout=240)
    assert done.code == 0, done
    assert int((page_folder(out) / "size" / "size").read_text()) == 1 << 30
    assert not list(out.rglob("muniment_body"))
    [worker] = [one for one in open_processes(tmp_path / "kept").newest(100) if one.label == "hooks"]
    assert worker.max_rss is not None
    assert worker.max_rss < 250 << 20


def test_what_hooks_did_is_shown_and_checked(muniment: Any, site: GatedSite, plugins: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    hook(plugins, "a", "on_Snapshot__1_a.sh", "echo hello > file; ln -s /nowhere link")
    hook(plugins, "b", "on_Snapshot__2_b.sh", "exit 5")
    done = crawl(muniment, site, plugins, out)
    assert "Hooks of this run: failed 1, succeeded 1\n" in done.stderr
    inspected = json.loads(muniment("inspect", out, "--json").stdout)["hooks"]
    assert inspected == [
        {"plugin": "a", "status": "succeeded", "tries": 1, "files": 2, "bytes": 14},
        {"plugin": "b", "status": "failed", "tries": 1, "files": 0, "bytes": 0},
    ]
    [first], place = hooks_that_fit(out, url=site.url, most=1)
    [second], end = hooks_that_fit(out, url=site.url, begin=place)
    assert ([first["plugin"], second["plugin"]], end) == (["a", "b"], 0)
    assert [row["plugin"] for row in hooks_that_fit(out, status="failed")[0]] == ["b"]
    assert hooks_that_fit(out, plugin="c") == ([], 0)
    explained = muniment("why", site.url, "-o", out)
    assert "hook a/on_Snapshot__1_a.sh, try 1: succeeded" in explained.stdout
    assert "hook b/on_Snapshot__2_b.sh, try 1: failed: exit: 5" in explained.stdout
    assert muniment("check", out).code == 0
    left = page_folder(out) / "a" / "file"
    left.write_text("other")
    found = json.loads(muniment("check", out, "--json").stdout)["faults"]
    assert [(fault["code"], fault["file"]) for fault in found] == [("hook-file", left.relative_to(out).as_posix())]
    left.unlink()
    assert "missing" in muniment("check", out).stdout


def test_wrong_use_of_hooks_is_one_line(muniment: Any, site: GatedSite, plugins: Path, tmp_path: Path) -> None:
    hook(plugins, "a", "on_Snapshot__1_a.sh", "#!/usr/bin/env no-such-interpreter\n")
    out = tmp_path / "out"
    python = "--hooks", plugins, "--hook-python"
    for arguments, words in (
        (("--hooks", tmp_path / "absent"), "is not a directory"),
        ((*python, tmp_path / "absent"), f"--hook-python {tmp_path}/absent: there is no such file"),
        ((*python, Path(__file__)), "it cannot be executed"),
        ((*python, "/bin/true"), "--hook-python /bin/true: it is not a Python"),
        (("--hooks", plugins, "--plugins", "a"), "--plugins: a: the interpreter no-such-interpreter is missing"),
        (("--hooks", plugins, "--hook-include", "("), "--hook-include"),
        (("--plugins", "a"), "give --hooks, too"),
    ):
        done = muniment("crawl", f"{site.url}", "-o", out, *arguments)
        assert (done.code, done.stderr.count("\n")) == (2, 1), done
        assert words in done.stderr
    assert site.requests == []
    assert not out.exists()
    assert muniment("crawl", f"{site.url}", "-o", out, "--page-only", "--no-robots", "--no-sitemaps").code == 0
    hook(plugins, "a", "on_Snapshot__1_a.sh", "exit 0")
    for url, words in (("nothing", "is not an http(s) URL"), (f"{site.url}absent", "holds no page of it")):
        done = muniment("hooks", "run", "-o", out, "--hooks", plugins, "--url", url)
        assert (done.code, done.stderr.count("\n"), words in done.stderr) == (2, 1, True), done


def test_a_crawl_without_hooks_loads_none_of_it() -> None:
    asked = "import sys, muniment.cli.crawl, muniment.app.run, muniment.app.worker; print(*sys.modules)"
    names = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in names if name.startswith(("muniment.crawl.hooks", "muniment.procs.hooks"))] == []
