"""The log of a job: each entry once, whatever is undone or cut."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec import structs

from muniment.live.entries import MOST_BYTES, download, ignored, stdout
from muniment.live.log_file import LOG_FILE, JobLog
from muniment.model.event import EventBatch, SkipEvent
from muniment.model.network.live import LogPosition
from muniment.model.page import PageResult
from muniment.model.queue import Totals

PAGE = PageResult(1, 1, 1, 200, "", True, 0, 0, 1500, 3, b"", b"", b"", True)


def _page(*urls: str, unanswered: str = "", error: str = "") -> PageResult:
    rows = tuple((url, 200, "", 3, 1500) for url in urls)
    return structs.replace(PAGE, exchanges=rows, unanswered=unanswered, error=error, status=0 if unanswered else 200)


def _entries(path: Path) -> list[tuple[int, str]]:
    lines = (json.loads(line) for line in (path / LOG_FILE).read_bytes().splitlines())
    return [(line["seq"], line.get("url", "") or line["message"]) for line in lines]


def test_entries_are_numbered_over_commits_and_runs(tmp_path: Path) -> None:
    log = JobLog(tmp_path / LOG_FILE, LogPosition(), reports=False)
    log.say("hello")
    log.write([_page("http://a/robots.txt", "http://a/")])
    log.commit(Totals())
    end = log.state.position
    assert (end.score, end.robots) == (3, 1)
    log.close()
    again = JobLog(tmp_path / LOG_FILE, end, reports=False)
    again.write([_page("http://a/1")])
    again.commit(Totals())
    again.close()
    assert _entries(tmp_path) == [(1, "hello"), (2, "http://a/robots.txt"), (3, "http://a/"), (4, "http://a/1")]


def test_what_no_commit_has_is_cut(tmp_path: Path) -> None:
    log = JobLog(tmp_path / LOG_FILE, LogPosition(), reports=False)
    log.write([_page("http://a/1")])
    log.commit(Totals())
    kept = log.state.position
    log.write([_page("http://a/2")])
    log.close()
    assert len(_entries(tmp_path)) == 2
    JobLog(tmp_path / LOG_FILE, kept, reports=False).close()
    assert _entries(tmp_path) == [(1, "http://a/1")]


def test_a_transaction_that_is_undone_is_written_again(tmp_path: Path) -> None:
    log = JobLog(tmp_path / LOG_FILE, LogPosition(), reports=False)
    log.say("hello")
    log.write([_page("http://a/1"), _page("http://a/2")])
    log.forget()
    log.write([_page("http://a/1")])
    log.commit(Totals())
    log.close()
    assert _entries(tmp_path) == [(1, "hello"), (2, "http://a/1")]


def test_a_failed_try_without_a_row_has_an_entry(tmp_path: Path) -> None:
    log = JobLog(tmp_path / LOG_FILE, LogPosition(), reports=False)
    log.write([_page(unanswered="http://a/1", error="connect-refused: no")])
    log.commit(Totals())
    log.close()
    entry = json.loads((tmp_path / LOG_FILE).read_text())
    assert (entry["response_code"], entry["wget_code"], entry["is_error"]) == (0, "connect-refused: no", True)


def test_ignored_urls_are_listed_on_demand_and_a_thousand_a_second(tmp_path: Path) -> None:
    log = JobLog(tmp_path / LOG_FILE, LogPosition(), reports=False)
    events = tuple(SkipEvent(url=f"http://a/{n}", reason="ignore: x (set global)") for n in range(1500))
    log.take(EventBatch(1000, events))
    assert not log.waiting
    log.reports = True
    log.take(EventBatch(5000, events))
    assert log.waiting
    log.write(())
    log.commit(Totals())
    log.close()
    lines = [json.loads(line) for line in (tmp_path / LOG_FILE).read_bytes().splitlines()]
    assert [line["type"] for line in lines].count("ignore") == 1000
    assert {line["pattern"] for line in lines if line["type"] == "ignore"} == {"x"}
    assert [line["message"] for line in lines if line["type"] == "stdout"] == [
        "500 more URLs were ignored, and are not listed."
    ]


def test_ignored_urls_of_the_last_second_are_counted_at_the_end(tmp_path: Path) -> None:
    log = JobLog(tmp_path / LOG_FILE, LogPosition(), reports=True)
    skips = tuple(SkipEvent(url=f"http://a/{number}", reason="ignore: x (set global)") for number in range(1_500))
    log.take(EventBatch(5_000, skips))
    log.tell_unreported(5_900)
    log.write([])
    log.commit(Totals())
    log.close()
    assert len(_entries(tmp_path)) == 1_001
    assert _entries(tmp_path)[-1][1] == "500 more URLs were ignored, and are not listed."


def test_the_tail_is_the_last_entries(tmp_path: Path) -> None:
    log = JobLog(tmp_path / LOG_FILE, LogPosition(), reports=False)
    log.write([_page(*(f"http://a/{n}" for n in range(9000)))])
    log.commit(Totals())
    before, lines = log.tail(log.state, 8000)
    assert (before, len(lines), json.loads(lines[0])["seq"]) == (1000, 8000, 1001)
    log.close()


def test_an_entry_is_small_whatever_is_in_it() -> None:
    odd = "\0é\ud800😀" * 20_000
    for entry in (download(1, 1, odd, 0, odd), ignored(1, 1, odd, odd), stdout(1, 1, odd)):
        assert len(entry) <= MOST_BYTES
        assert "…" in entry.decode()
        assert b"\n" not in entry
        json.loads(entry)
