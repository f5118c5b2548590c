"""One directory, one truth: whatever is moved away between runs or during one, nothing is overwritten or lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from crawled import wait_until
from tests.support.gated_site import GatedSite
from tests.support.nginx import closed_port
from warc_reading import captures

from muniment.archive.check.rebuild import rows_of_records
from muniment.archive.index.parquet import index_rows
from muniment.archive.recovery.inventory import REBUILT

PAGES = [f"/p{number}.html" for number in range(8)]
PACE = ("--no-robots", "--no-sitemaps", "--tries", 1, "--rounds", 0, "--no-offsite-links", "--workers", 1)


@pytest.fixture
def site() -> Iterator[GatedSite]:
    links = "".join(f"<a href={path}>a</a>" for path in PAGES)
    with GatedSite({"/": links, **{path: f"this is {path} " * 99 for path in PAGES}}, held=PAGES[-1:]) as served:
        yield served


def events(path: Path) -> list[str]:
    return [json.loads(line)["event"] for line in path.read_text().splitlines()]


def test_a_log_that_is_moved_away_lets_no_second_run_in(
    muniment: Callable[..., Any], site: GatedSite, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    log, moved = out / "crawl.jsonl", tmp_path / "moved"
    process = muniment.start("crawl", site.url, "-o", out, *PACE, "--quiet")
    wait_until(lambda: log.exists() and events(log).count("capture") == len(PAGES), "all but the page that is held")
    log.rename(moved)
    second = muniment("crawl", site.url, "-o", out, *PACE)
    assert second.code == 2
    assert "is in use by another run" in second.stderr
    assert muniment("check", out, "--repair").code == 2
    assert not log.exists(), "what was refused made nothing"
    site.release()
    _, said = process.communicate(timeout=30)
    assert process.returncode == 0
    assert said.count("\n") == 1
    assert "was moved away: the run writes a new one" in said
    assert events(moved)[:1] == ["start"]
    assert events(log) == ["capture", "worker", "finish"]
    assert muniment("check", out).code == 0


def run(muniment: Any, site: GatedSite, out: Path, *more: object) -> Any:
    return muniment("crawl", site.url, "-o", out, *PACE, *more)


def stopped(muniment: Any, site: GatedSite, out: Path, *more: object) -> None:
    """A run of a few pages, each with a file of its own, and of one page that fails."""
    site.pages["/"] = f"<img src=http://127.0.0.1:{closed_port()}/x.png>" + str(site.pages["/"])
    assert run(muniment, site, out, "--max-pages", 4, "--warc-size", 1, *more).code == 3
    site.release()


def names(out: Path) -> set[str]:
    return {path.name for path in out.glob("*.warc.gz*")}


def complaints(done: Any) -> list[str]:
    return [line for line in done.stderr.splitlines() if line.startswith("WARNING")]


def test_the_name_of_a_file_that_was_moved_away_is_given_to_no_other(
    muniment: Callable[..., Any], site: GatedSite, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    stopped(muniment, site, out)
    moved = sorted(names(out))[1:3]
    bytes_of = {name: (out / name).read_bytes() for name in moved}
    for name in moved:
        (out / name).rename(tmp_path / name)
    done = run(muniment, site, out, "--warc-size", 1)
    assert done.code == 0
    [told] = complaints(done)
    assert f"{moved[0]}, {moved[1]} are gone from {out}, where the index has them: put back" in told
    assert not names(out) & set(moved)
    faults = json.loads(muniment("check", out, "--json").stdout)["faults"]
    assert {fault["file"] for fault in faults} == {row["warc_file"] for row in captures(out)} & set(moved) != set()
    for name in moved:
        (tmp_path / name).rename(out / name)
        assert (out / name).read_bytes() == bytes_of[name]
    whole = muniment("check", out)
    assert whole.code == 0, whole.stdout
    assert names(out) == {f"muniment-{number:05d}.warc.gz" for number in range(len(names(out)))}


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    """All but the time to the first byte, which nobody knows any more; of a try without a record no times at all."""
    lost = {"ttfb_ms"} if row["warc_file"] else {"ttfb_ms", "started_at", "fetched_at", "duration_ms"}
    return tuple(value for name, value in row.items() if name not in lost)


@pytest.mark.parametrize("killed", [False, True])
def test_an_index_that_is_gone_is_rebuilt_from_the_records(
    muniment: Callable[..., Any], site: GatedSite, tmp_path: Path, killed: bool
) -> None:
    """Also when the first run that rebuilt it was killed before it went on."""
    out = tmp_path / "out"
    stopped(muniment, site, out)
    before = captures(out)
    assert any(row["error"].startswith("refused:") and not row["warc_file"] for row in before)
    (out / "captures.parquet").unlink()
    if killed:
        (out / "parts").mkdir()
        (out / "parts" / REBUILT).write_text("\n".join(names(out)))
        for name in names(out):
            index_rows(out / "parts", name, rows_of_records(out / name, name))
    done = run(muniment, site, out)
    assert done.code == 0
    if not killed:
        first, second = complaints(done)
        assert f"captures.parquet is gone from {out}: the records rebuild the rows now; if it was moved away" in first
        assert "4 rows of the index were rebuilt from the records" in second
    rows = captures(out)
    assert set(map(key, before)) <= set(map(key, rows))
    assert len({row["url"] for row in rows}) == len(rows) == len(PAGES) + 2
    whole = muniment("check", out)
    assert whole.code == 0, whole.stdout
    assert set(site.counts().values()) == {1}, "nothing is fetched twice"
    assert "nothing to do" in run(muniment, site, out).stderr


@pytest.mark.parametrize("again", [False, True])
def test_a_part_that_is_gone_is_rebuilt(
    muniment: Callable[..., Any], site: GatedSite, tmp_path: Path, again: bool
) -> None:
    """Also when the run that rebuilt it was killed, too."""
    out = tmp_path / "out"
    process = muniment.start("crawl", site.url, "-o", out, *PACE, "--warc-size", 1, "--quiet")
    part = out / "parts" / "muniment-00001.warc.gz.parquet"
    wait_until(lambda: part.exists() and not part.with_name("muniment-00001.warc.gz.journal").exists(), "a part")
    process.kill()
    process.communicate()
    part.unlink()
    if again:
        process = muniment.start("crawl", site.url, "-o", out, *PACE, "--quiet")
        wait_until(part.exists, "the part, rebuilt")
        process.kill()
        process.communicate()
    site.release()
    done = run(muniment, site, out)
    assert done.code == 0
    expected = f"the rows of muniment-00001.warc.gz are gone from {out}: the records rebuild the rows now"
    assert [expected in line for line in complaints(done)] == ([] if again else [True, False])
    whole = muniment("check", out)
    assert whole.code == 0, whole.stdout
    assert {row["url"] for row in captures(out)} == {site.url, *(site.url + path[1:] for path in PAGES)}


def test_a_copy_of_a_file_has_no_rows(muniment: Callable[..., Any], site: GatedSite, tmp_path: Path) -> None:
    """Nor does a file with a large number make files for the numbers below it."""
    out = tmp_path / "out"
    stopped(muniment, site, out)
    for copy in ("copy-20261124.warc.gz", "muniment-20261124.warc.gz"):
        shutil.copy(out / "muniment-00000.warc.gz", out / copy)
    before = names(out)
    done = run(muniment, site, out)
    assert (done.code, complaints(done)) == (0, [])
    assert names(out) - before == {f"muniment-{len(before) - 2:05d}.warc.gz"}
    assert len(captures(out)) == len(PAGES) + 2


def test_sealing_replaces_no_file(muniment: Callable[..., Any], site: GatedSite, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = muniment.start("crawl", site.url, "-o", out, *PACE, "--quiet")
    log = out / "crawl.jsonl"
    wait_until(lambda: log.exists() and events(log).count("capture") == len(PAGES), "all but the page that is held")
    there = out / "muniment-00000.warc.gz"
    there.write_bytes(b"somebody else's")
    site.release()
    _, said = process.communicate(timeout=30)
    assert process.returncode == 1
    words = "muniment-00000.warc.gz exists already and is not replaced: the captures are in"
    assert [words in line for line in said.splitlines()] == [True]
    refused = run(muniment, site, out)
    assert refused.code == 1
    assert words in refused.stderr
    assert there.read_bytes() == b"somebody else's"
    there.rename(tmp_path / "moved")
    done = run(muniment, site, out)
    assert (done.code, complaints(done)) == (0, [])
    whole = muniment("check", out)
    assert whole.code == 0, whole.stdout
    assert set(site.counts().values()) == {1}


@pytest.mark.parametrize("damaged", [False, True])
def test_another_prefix_on_resume(muniment: Callable[..., Any], site: GatedSite, tmp_path: Path, damaged: bool) -> None:
    """What a killed run left is repaired, set aside when it is damaged, and counted, whatever its name begins with."""
    out = tmp_path / "out"
    process = muniment.start("crawl", site.url, "-o", out, *PACE, "--prefix", "first-0", "--quiet")
    log = out / "crawl.jsonl"
    wait_until(lambda: log.exists() and events(log).count("capture") == len(PAGES), "all but the page that is held")
    process.kill()
    process.communicate()
    left = out / "first-0-00000.warc.gz.open"
    site.release()
    if damaged:
        data = bytearray(left.read_bytes())
        data[2000] ^= 0xFF
        left.write_bytes(data)
    done = run(muniment, site, out, "--prefix", "second[1]")
    assert done.code == (3 if damaged else 0), done.stderr
    if damaged:
        assert (out / "damaged" / "first-0-00000.warc.gz").exists()
        done = run(muniment, site, out, "--prefix", "second[1]")
        assert done.code == 0, done.stderr
    first = set() if damaged else {"first-0-00000.warc.gz"}
    second = {f"second[1]-0000{number}.warc.gz" for number in range(2 if damaged else 1)}
    assert names(out) == first | second
    assert f"{len(names(out))} WARC files" in done.stderr
    whole = muniment("check", out)
    assert whole.code == 0, whole.stdout
    assert {row["url"] for row in captures(out)} == {site.url, *(site.url + path[1:] for path in PAGES)}


def test_an_archive_of_which_nothing_is_left_is_told(
    muniment: Callable[..., Any], site: GatedSite, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    stopped(muniment, site, out)
    for name in ("captures.parquet", *names(out)):
        (out / name).unlink()
    done = run(muniment, site, out)
    assert done.code == 0
    [told] = complaints(done)
    assert f"the index and all WARC files of 4 captured pages are gone from {out}: stop this run and put back" in told


def test_an_index_that_cannot_be_read_is_told_before_anything_is_fetched(
    muniment: Callable[..., Any], site: GatedSite, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    stopped(muniment, site, out)
    with (out / "captures.parquet").open("r+b") as index:
        index.truncate(100)
    before = len(site.requests)
    done = run(muniment, site, out)
    assert (done.code, len(site.requests)) == (1, before)
    [line] = done.stderr.splitlines()
    assert "captures.parquet: not a readable Parquet file; muniment check --repair moves it aside" in line
    assert muniment("check", out, "--repair").code == 0
    assert run(muniment, site, out).code == 0
    whole = muniment("check", out)
    assert whole.code == 0, whole.stdout
