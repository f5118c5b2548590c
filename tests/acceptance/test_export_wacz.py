"""`muniment export --wacz`: opened by readers of the tests' own, and by ReplayWeb.page in Chromium."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import msgspec
from crawled import complaint
from tests.support.chromium import Chromium
from tests.support.disks import fill, small_disk
from tests.support.exchanges import exchange, page_context
from tests.support.gated_site import Answer, GatedSite
from tests.support.packages import PackageReader
from tests.support.player import ARCHIVED, PlayerSite

from muniment.archive.index.parquet import join
from muniment.archive.segment import Segment
from muniment.archive.warc.warcinfo import WarcInfo

Muniment = Callable[..., Any]
SAME = "<p>words that are the same on two pages</p>" * 30
GBK = "<title>\u6863\u6848\u9986</title><p>\u4e2d\u6587</p>".encode("gbk")
SITE = {
    "/": "<!doctype html><title>The &lt;start&gt;\n &amp; more</title><link rel=stylesheet href=/s.css>"
    "<body><h1>Hello</h1>"
    "<script>var x = 'unseen'</script><a href=/a>a</a><a href=/b>b</a><a href=/gbk>c</a><a href=/gone>d</a>",
    "/s.css": "body { background: #00ff00 }",
    "/a": f"<title>Twin</title>{SAME}",
    "/b": f"<title>Twin</title>{SAME}",
    "/gbk": Answer(GBK, headers=(("Content-Type", "text/html; charset=gb2312"),)),
}
QUIET = ("--quiet", "--no-robots", "--no-sitemaps", "--per-host", 1)


def crawled(muniment: Muniment, out: str, pages: dict[str, Any] = SITE) -> tuple[Path, str]:
    with GatedSite(pages) as site:
        assert muniment("crawl", site.url, "-o", out, *QUIET).code == 0
        url = site.url
    return Path(muniment.cwd / out), url  # type: ignore[attr-defined]


def test_a_package_holds_all_and_says_what(muniment: Muniment, tmp_path: Path) -> None:
    out, url = crawled(muniment, "out")
    done = muniment("export", "out", "--wacz", "a.wacz", "--json", "--description", "words")
    assert done.code == 0, done.stderr
    package = PackageReader(tmp_path / "a.wacz")
    assert package.warcs == {path.name: path.read_bytes() for path in out.glob("*.warc.gz")}
    assert package.text_of_index() == muniment("export", "out", "--cdxj", "-").stdout
    said = package.description
    newest, started = duckdb.sql(
        f"SELECT max(started_at), min(started_at) FILTER (found_as = 'start') FROM '{out}/captures.parquet'"
    ).fetchall()[0]
    assert (said["title"], said["description"], said["mainPageUrl"]) == ("The <start> & more", "words", url)
    assert (said["created"], said["mainPageDate"]) == (second(newest), second(started))
    assert [(page["url"], page["ts"], page["title"]) for page in package.pages()] == [
        (url, second(started), "The <start> & more")
    ]
    others = {page["url"].rpartition("/")[2]: page["title"] for page in package.pages("extraPages")}
    assert others == {"a": "Twin", "b": "Twin", "gbk": "\u6863\u6848\u9986"}
    assert all("text" not in page for page in package.pages())
    report = json.loads(done.stdout)
    data = (tmp_path / "a.wacz").read_bytes()
    assert (report["bytes"], report["warc_files"], report["pages"]) == (len(data), 1, 4)
    assert report["records"] == len(package.lines)
    same_bytes_and_options(muniment, tmp_path, data)


def second(at_us: int) -> str:
    return datetime.fromtimestamp(at_us // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def same_bytes_and_options(muniment: Muniment, tmp_path: Path, data: bytes) -> None:
    again = ("export", "out", "--wacz", "a.wacz", "--force", "--quiet", "--description", "words")
    assert muniment(*again).code == 0
    assert (tmp_path / "a.wacz").read_bytes() == data, "the same archive gives the same bytes"
    page = next(line["url"] for line in PackageReader(tmp_path / "a.wacz").pages("extraPages"))
    options = ("--pages", "start", "--text", "--title", "T", "--main-url", page)
    assert muniment("export", "out/captures.parquet", "--wacz", "b.wacz", *options).code == 0
    other = PackageReader(tmp_path / "b.wacz")
    assert (other.description["title"], other.description["mainPageUrl"]) == ("T", page)
    assert "pages/extraPages.jsonl" not in other.entries
    assert [page["text"] for page in other.pages()] == ["Hello\nabcd"]


def test_directories_with_equal_names_and_revisits_across_them(muniment: Muniment, tmp_path: Path) -> None:
    first, _ = crawled(muniment, "runs/a")
    with GatedSite(SITE) as site:
        assert muniment("crawl", site.url, "-o", "runs/b", *QUIET).code == 0
        assert muniment("fetch", "runs/b/captures.parquet", "-o", "other/b", "--quiet").code in (0, 4)
    done = muniment("export", "runs/*", "other/b", "--wacz", "all.wacz")
    assert done.code == 0, done.stderr
    package = PackageReader(tmp_path / "all.wacz")
    names = ["a-muniment-00000.warc.gz", "b-muniment-00000-2.warc.gz", "b-muniment-00000.warc.gz"]
    assert sorted(package.warcs) == names
    assert package.warcs[names[0]] == (first / "muniment-00000.warc.gz").read_bytes()
    later = [line for _, _, line in package.lines if line["filename"] == names[1] and line["mime"] == "warc/revisit"]
    assert len(later) > 3
    for line in later:
        if line["status"] == "200" and line["url"].endswith(("/a", "/gbk")):
            assert package.body(line) == (GBK if line["url"].endswith("k") else SITE["/a"].encode()), line  # type: ignore[union-attr]
    listed = [page["title"] for page in package.pages() if page["url"].endswith("/gbk")]
    assert listed == ["\u6863\u6848\u9986"], "a revisit has the title of its original"


def test_a_running_and_a_crashed_directory(muniment: Muniment, tmp_path: Path) -> None:
    with GatedSite(SITE, held={"/gbk"}) as site:
        crawl = muniment.start("crawl", site.url, "-o", "out", *QUIET)  # type: ignore[attr-defined]
        site.wait_for("/gbk")
        running = muniment("export", "out", "--wacz", "running.wacz", "--quiet")
        crawl.send_signal(signal.SIGKILL)
        crawl.wait()
    crashed = muniment("export", "out", "--wacz", "crashed.wacz", "--quiet")
    assert running.code == crashed.code == 0, running.stderr + crashed.stderr
    before, after = PackageReader(tmp_path / "running.wacz"), PackageReader(tmp_path / "crashed.wacz")
    (name,) = before.warcs
    assert name == "muniment-00000.warc.gz", "without .open"
    assert after.warcs[name].startswith(before.warcs[name])
    assert {line["url"] for _, _, line in before.lines} >= {site.url, site.url + "a", site.url + "b"}
    assert muniment("check", "out", "--repair").code in (0, 1)
    assert after.warcs[name] == (tmp_path / "out" / name).read_bytes()


def test_damage_stops_it_with_file_and_offset(muniment: Muniment, tmp_path: Path) -> None:
    out, url = crawled(muniment, "out")
    (tmp_path / "old.wacz").write_text("kept")
    warc = out / "muniment-00000.warc.gz"
    sound = warc.read_bytes()
    offset, length = duckdb.sql(
        f"SELECT warc_offset, warc_length FROM '{out}/captures.parquet' WHERE url = '{url}gbk'"
    ).fetchall()[0]
    damaged = bytearray(sound)
    damaged[offset + length - 6] ^= 1
    cases = {f"byte {offset}": bytes(damaged), "missing": b"", f"byte {offset}:": sound[: offset + 20]}
    for said, data in cases.items():
        warc.write_bytes(data) if data else warc.unlink()
        done = muniment("export", "out", "--wacz", "old.wacz", "--force")
        assert done.code == 1, (said, done)
        assert said in done.stderr or "before" in done.stderr
        assert "muniment-00000.warc.gz" in done.stderr
        assert done.stderr.count("\n") == 1
        assert (tmp_path / "old.wacz").read_text() == "kept"
    assert sorted(path.name for path in tmp_path.glob(".*exporting")) == []


def test_a_full_disk_and_a_stop_leave_the_file_that_was_there(muniment: Muniment, tmp_path: Path) -> None:
    big = random.Random(1).randbytes(24 << 20)
    pages = {"/": "<a href=/big>big</a>", "/big": Answer(big, headers=(("Content-Type", "application/zip"),))}
    crawled(muniment, "out", pages)
    with small_disk(tmp_path / "disk", 2) as disk:
        (disk / "x.wacz").write_text("kept")
        fill(disk)
        full = muniment("export", "out", "--wacz", disk / "x.wacz", "--force")
        assert (full.code, full.stderr.count("\n")) == (3, 1), full
        assert (disk / "x.wacz").read_text() == "kept"
        assert [path.name for path in disk.iterdir() if "export" in path.name] == []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        (tmp_path / "x.wacz").write_text("kept")
        export = muniment.start("export", "out", "--wacz", "x.wacz", "--force")  # type: ignore[attr-defined]
        while not list(tmp_path.glob(".x.wacz.*")):
            assert export.poll() is None
            time.sleep(0)
        export.send_signal(number)
        assert export.wait(30) == (3 if number != signal.SIGKILL else -signal.SIGKILL)
        assert (tmp_path / "x.wacz").read_text() == "kept"
    assert len(list(tmp_path.glob(".x.wacz.*"))) == 1, "what a kill leaves goes with the next export"
    assert muniment("export", "out", "--wacz", "x.wacz", "--force").code == 0
    assert list(tmp_path.glob(".x.wacz.*")) == []
    assert len(PackageReader(tmp_path / "x.wacz").lines) == 2


def test_wrong_use_is_one_line(muniment: Muniment, tmp_path: Path) -> None:
    out, url = crawled(muniment, "out", {"/": "home"})
    (tmp_path / "there.wacz").write_text("kept")
    with GatedSite({}) as site:
        closed = site.url
    assert muniment("crawl", closed, "-o", "nothing", *QUIET, "--tries", 1, "--rounds", 0).code != 0
    wrong = (
        (("out", "--wacz", "there.wacz"), "exists already"),
        (("out", "--wacz", "-"), "standard output"),
        (("out", "--wacz", "x.wacz", "--cdxj", "x.cdxj"), "one of --wacz"),
        (("out", "--cdxj", "x.cdxj", "--title", "t"), "--title goes with"),
        (("out", "--wacz", "out/muniment-00000.warc.gz", "--force"), "belongs to an output directory"),
        (("out", "--wacz", "x.wacz", "--main-url", "no url"), "not a URL"),
        (("out", "--wacz", "x.wacz", "--main-url", f"{url}other"), "not among the captures"),
        (("nothing", "--wacz", "x.wacz"), "yet"),
    )
    for arguments, said in wrong:
        done = muniment("export", *arguments)
        assert done.code == 2, (arguments, done)
        assert said in complaint(done), (arguments, done.stderr)
    assert (tmp_path / "there.wacz").read_text() == "kept"
    assert not (tmp_path / "x.wacz").exists()
    assert (out / "captures.parquet").exists()


def only_asked_for(out: Path, url: str) -> None:
    """An output directory of answers to HEAD and OPTIONS, newer than any page."""
    out.mkdir()
    segment = Segment.open(out, out / "parts", "muniment-00000.warc.gz", WarcInfo(software="test"))
    for number, method in enumerate(("HEAD", "OPTIONS")):
        made = exchange(url, b"", request=f"{method} / HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        at = time.time_ns() // 1000 + number
        segment.write(msgspec.structs.replace(made, method=method, started_at=at), page_context())
    segment.seal()
    join(out, out / "parts")


def test_replayweb_page_shows_it(muniment: Muniment, browser: Chromium, tmp_path: Path) -> None:
    _, url = crawled(muniment, "out")
    only_asked_for(tmp_path / "asked", url)
    assert muniment("export", "out", "asked", "--wacz", "a.wacz", "--quiet").code == 0
    lines = muniment("export", "out", "asked", "--cdxj", "-").stdout.splitlines()
    package = PackageReader(tmp_path / "a.wacz")
    assert len(lines) == len(package.lines) + 2, "answers to HEAD and OPTIONS are in a CDXJ alone"
    assert [page["url"] for page in package.pages()] == [url]
    with PlayerSite(tmp_path / "a.wacz", url) as site:
        page = browser.page()
        page.goto(site.url)
        page.wait(ARCHIVED + "shown() && shown().body && shown().body.innerText.includes('Hello')")
        # the style sheet is a capture, too
        page.wait(ARCHIVED + "getComputedStyle(shown().body).backgroundColor === 'rgb(0, 255, 0)'")
