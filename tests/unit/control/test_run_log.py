"""Reading the log of a run: forwards by news, backwards by parts, through a filter, with whole lines alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muniment.control.runs.log import lines_before, log_filter, log_size, news_since
from muniment.errors import TrackerError, UsageError

ALL = log_filter("all", "")


def write(out: Path, count: int, *, begin: int = 0, rest: str = "") -> Path:
    lines = [
        f'{{"ts":"2026-01-01T00:00:00.000Z","event":"capture","url":"https://a/{n}","status":200,"bytes":{n}}}'
        for n in range(begin, begin + count)
    ]
    with (out / "crawl.jsonl").open("a") as log:
        log.write("".join(f"{line}\n" for line in lines) + rest)
    return out


def test_backwards_to_the_beginning_every_line_once(tmp_path: Path) -> None:
    out = write(tmp_path, 5_000)
    before, urls = None, []
    while True:
        part = lines_before(out, before, ALL, 700)
        urls = [line.url for line in part.lines] + urls
        if part.before is None:
            break
        before = part.before
    assert urls == [f"https://a/{n}" for n in range(5_000)]


def test_a_line_that_is_being_written_is_not_shown(tmp_path: Path) -> None:
    out = write(tmp_path, 3, rest='{"ts":"2026","event":"capt')
    assert [line.url for line in lines_before(out, None, ALL, 9).lines] == ["https://a/0", "https://a/1", "https://a/2"]
    assert log_size(out) < (out / "crawl.jsonl").stat().st_size


def test_lines_of_a_hundred_thousand_characters(tmp_path: Path) -> None:
    write(tmp_path, 2)
    long = json.dumps({"ts": "x", "event": "fail", "url": "https://a/" + "x" * 400_000, "reason": "r"})
    with (tmp_path / "crawl.jsonl").open("a") as log:
        log.write(f"{long}\n")
    write(tmp_path, 2, begin=2)
    found = lines_before(tmp_path, None, ALL, 9).lines
    assert [len(line.url) for line in found] == [11, 11, 400_010, 11, 11]


def test_news_are_bounded_and_failures_are_never_left_out(tmp_path: Path) -> None:
    out = write(tmp_path, 10)
    at = log_size(out)
    with (out / "crawl.jsonl").open("a") as log:
        log.write('{"ts":"t","event":"fail","url":"https://a/bad","reason":"timeout: slow","attempt":1,"final":true}\n')
    write(out, 9_000, begin=10)
    news = news_since(out, at, ALL, 200)
    assert len(news.lines) == 200 and news.skipped == 8_801
    assert (news.lines[0].kind, news.lines[0].code) == ("fail", "timeout")
    assert news.lines[-1].url == "https://a/9009"
    again = news_since(out, news.end, ALL, 200)
    assert (again.lines, again.skipped, again.whole) == ([], 0, True)
    assert not news_since(out, news.end + 1, ALL, 200).whole, "a place that is not in this log is a gap"


def test_more_failures_than_fit_come_the_next_time(tmp_path: Path) -> None:
    out = write(tmp_path, 1)
    at, urls = log_size(out), []
    with (out / "crawl.jsonl").open("a") as log:
        for n in range(450):
            log.write(f'{{"ts":"t","event":"fail","url":"https://a/bad/{n}","reason":"x: y"}}\n')
    write(out, 5, begin=1)
    for _ in range(3):
        news = news_since(out, at, ALL, 200)
        assert len(news.lines) <= 200 and news.skipped == 0
        urls += [line.url for line in news.lines]
        at = news.end
    assert urls == [f"https://a/bad/{n}" for n in range(450)] + [f"https://a/{n}" for n in range(1, 6)]


def test_what_is_not_json_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "crawl.jsonl").write_bytes(b'\xff\xfe\n[1]\n{"event":3}\n\n{"event":"stop","reason":"interrupted"}\n')
    assert [line.kind for line in lines_before(tmp_path, None, ALL, 9).lines] == ["3", "stop"]


def test_level_and_pattern(tmp_path: Path) -> None:
    write(tmp_path, 3)
    with (tmp_path / "crawl.jsonl").open("a") as log:
        log.write('{"ts":"t","event":"capture","url":"https://a/gone","status":404,"bytes":1}\n')
        log.write('{"ts":"t","event":"skip","url":"https://a/skipped","reason":"ignored by x"}\n')
    assert [one.url for one in lines_before(tmp_path, None, log_filter("problems", ""), 9).lines] == ["https://a/gone"]
    assert [one.url for one in lines_before(tmp_path, None, log_filter("", "skip"), 9).lines] == ["https://a/skipped"]
    with pytest.raises(UsageError, match="not a regular expression"):
        log_filter("", "(")
    with pytest.raises(UsageError, match="the levels are"):
        log_filter("loud", "")


def test_no_log(tmp_path: Path) -> None:
    with pytest.raises(TrackerError, match="cannot be read"):
        lines_before(tmp_path, None, ALL, 9)
