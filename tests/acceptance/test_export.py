"""`muniment export --cdxj`: line for line what cdxj-indexer makes of the same files."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.disks import fill, small_disk
from tests.support.gated_site import GatedSite
from tests.support.odd_responses import ODD_RESPONSES, scripts
from tests.support.raw_server import RawServer, Send

Muniment = Callable[..., Any]
START = b"<!doctype html>" + b"".join(b'<a href="%s">odd</a>' % odd.path.encode() for odd in ODD_RESPONSES)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n"
PATIENCE = ("--tries", 1, "--rounds", 0, "--timeout", 2, "--connect-timeout", 2, "--no-robots", "--no-sitemaps")
PAGES = {f"/{number}?b=2&A=%7e{number}": f"<p>{number % 3} words that repeat</p>" * 30 for number in range(40)}

HELD = "/7?b=2&A=%7e7"


def indexed_by_others(*outs: Path) -> str:
    """The lines of cdxj-indexer."""
    warcs = sorted(str(path) for out in outs for path in out.glob("*.warc.gz*"))
    code = "from cdxj_indexer.main import main; import sys; main(sys.argv[1:])"
    command = [sys.executable, "-W", "ignore", "-c", code, "--sort", *warcs]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def crawled(muniment: Muniment, out: str, pages: dict[str, str]) -> Path:
    with GatedSite({"/": "".join(f"<a href='{path}'>{path}</a>" for path in pages), **pages}) as site:
        assert muniment("crawl", site.url, "-o", out, "--quiet").code == 0
    return Path(muniment.cwd / out)  # type: ignore[attr-defined]


def test_odd_responses_have_the_lines_of_another_indexer(muniment: Muniment, tmp_path: Path) -> None:
    with RawServer({"/": (Send(HEAD % len(START) + START),), **scripts()}) as server:
        assert muniment("crawl", server.url("/"), "-o", "odd", "--quiet", *PATIENCE).code == 0
    done = muniment("export", "odd", "--cdxj", "odd.cdxj", "--json")
    assert done.code == 0, done.stderr
    lines = (tmp_path / "odd.cdxj").read_text()
    assert lines.splitlines() == indexed_by_others(tmp_path / "odd").splitlines()
    report = json.loads(done.stdout)
    assert (report["records"], report["bytes"]) == (lines.count("\n"), len(lines))


def test_revisits_and_several_directories(muniment: Muniment, tmp_path: Path) -> None:
    first = crawled(muniment, "runs/a", PAGES)
    second = crawled(muniment, "runs/b", PAGES)
    fetched = muniment("fetch", first / "captures.parquet", "-o", "runs/c", "--quiet")
    assert fetched.code in (0, 4), fetched.stderr
    done = muniment("export", "runs/*", "--cdxj", "-")
    assert done.code == 0, done.stderr
    assert done.stdout == indexed_by_others(first, second, tmp_path / "runs/c")
    assert done.stdout.count('"warc/revisit"') > 20


def test_a_compressed_index_has_blocks(muniment: Muniment, tmp_path: Path) -> None:
    crawled(muniment, "out", PAGES)
    assert muniment("export", "out", "--cdxj", "i.cdxj.gz", "--quiet").code == 0
    assert muniment("export", "out", "--cdxj", "i.cdxj", "--quiet").code == 0
    meta, *blocks = (tmp_path / "i.cdxj.gz.idx").read_text().splitlines()
    assert meta == '!meta 0 {"format": "cdxj-gzip-1.0", "filename": "i.cdxj.gz"}'
    whole, text = (tmp_path / "i.cdxj.gz").read_bytes(), (tmp_path / "i.cdxj").read_text()
    found = ""
    for block in blocks:
        key, at, fields = block.split(" ", 2)
        where = json.loads(fields)
        lines = gzip.decompress(whole[where["offset"] : where["offset"] + where["length"]]).decode()
        assert lines.startswith(f"{key} {at} ")
        found += lines
    assert found == text
    assert muniment("export", "out", "--cdxj", "again.cdxj.gz", "--quiet").code == 0
    assert (tmp_path / "again.cdxj.gz").read_bytes() == whole, "the same archive gives the same bytes"


def test_lines_listed_again_are_left_out(muniment: Muniment, tmp_path: Path) -> None:
    with GatedSite({"/": "home"}) as site:
        (tmp_path / "list").write_text(f"{site.url}\n{site.url}\n{site.url}#again\n")
        assert muniment("fetch", tmp_path / "list", "-o", "out", "--quiet").code == 0
    done = muniment("export", "out", "--cdxj", "-")
    assert done.stdout == indexed_by_others(tmp_path / "out")
    assert done.stdout.count("\n") == 1


def test_a_crashed_directory_is_exported_as_it_is(muniment: Muniment, tmp_path: Path) -> None:
    home = "".join(f"<a href='{path}'>x</a>" for path in PAGES)
    with GatedSite({"/": home, **PAGES}, held={HELD}) as site:
        crawl = muniment.start("crawl", site.url, "-o", "out", "--quiet", "--per-host", 1)  # type: ignore[attr-defined]
        site.wait_for(HELD)
        running = muniment("export", "out", "--cdxj", "-")
        crawl.send_signal(signal.SIGKILL)
        crawl.wait()
    after = muniment("export", "out", "--cdxj", "-")
    assert running.code == after.code == 0, running.stderr + after.stderr
    assert set(running.stdout.splitlines()) <= set(after.stdout.splitlines())
    assert muniment("check", "out", "--repair").code in (0, 1)
    assert after.stdout == indexed_by_others(tmp_path / "out")


def test_wrong_use_is_one_line_and_changes_nothing(muniment: Muniment, tmp_path: Path) -> None:
    out = crawled(muniment, "out", {"/a": "a"})
    before = {path: path.read_bytes() for path in out.iterdir() if path.is_file()}
    (tmp_path / "there.cdxj").write_text("kept")
    (tmp_path / "empty").mkdir()
    wrong = (
        ("out", "--cdxj", "there.cdxj"),
        ("out", "--cdxj", "out/captures.parquet", "--force"),
        ("out", "--cdxj", "out/muniment-00000.warc.gz", "--force"),
        ("out", "--cdxj", "nowhere/x.cdxj"),
        ("out", "--cdxj", "empty"),
        ("empty", "--cdxj", "x.cdxj"),
        ("missing", "--cdxj", "x.cdxj"),
        ("there.cdxj", "--cdxj", "x.cdxj"),
        ("out",),
    )
    for arguments in wrong:
        done = muniment("export", *arguments)
        assert (done.code, done.stdout) == (2, ""), (arguments, done)
        assert done.stderr.count("\n") == 1 or "Usage" in done.stderr, (arguments, done.stderr)
    assert {path: path.read_bytes() for path in out.iterdir() if path.is_file()} == before
    assert (tmp_path / "there.cdxj").read_text() == "kept"
    assert not (tmp_path / "x.cdxj").exists()
    assert muniment("export", "out", "--cdxj", "there.cdxj", "--force", "--quiet").code == 0
    assert "127.0.0.1" in (tmp_path / "there.cdxj").read_text()


def test_a_full_disk_leaves_the_file_that_was_there(muniment: Muniment, tmp_path: Path) -> None:
    crawled(muniment, "out", PAGES)
    with small_disk(tmp_path / "disk", 1) as disk:
        (disk / "x.cdxj").write_text("kept")
        fill(disk)
        done = muniment("export", "out", "--cdxj", disk / "x.cdxj", "--force")
        assert done.code == 3, done
        assert done.stderr.count("\n") == 1
        assert (disk / "x.cdxj").read_text() == "kept"
        assert sorted(path.name for path in disk.iterdir() if "export" in path.name) == []
