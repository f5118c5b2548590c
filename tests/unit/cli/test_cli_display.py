"""What a running and an ended crawl looks like."""

from __future__ import annotations

from datetime import datetime, timedelta
from io import StringIO
from math import inf
from pathlib import Path

import pyte
import pytest
from msgspec import structs
from rich.console import Console

from muniment.cli.display.line import LineDisplay, waiting_lines
from muniment.cli.display.panel import panel_of
from muniment.cli.display.quantities import counted, duration_text, size_text
from muniment.cli.display.summary import tell_finished, tell_summary
from muniment.crawl.progress import Summary
from muniment.model.event import Snapshot, WaitingHost
from muniment.model.network.counts import ByteSums, OtherCounts, PageCounts, SiteCounts
from muniment.model.seed import ListProgress, SeedPlace


def snapshot(elapsed_s: float, note: str = "", *, ending: bool = False) -> Snapshot:
    return Snapshot(
        elapsed_s=elapsed_s,
        captured=1_234,
        failed=5,
        queued=67,
        in_flight=8,
        workers=2,
        pages_per_s=91.2,
        bytes_per_s=2_500_000,
        payload_bytes=10**9,
        slow_hosts=(("[::1]", 900),),
        last_urls=(("200", "https://a/[b]"),),
        note=note,
        ending=ending,
        site=PageCounts(1_200, 29, 5),
        other=PageCounts(7),
    )


def summary(code: int, reason: str) -> Summary:
    return Summary(
        outcome="finished" if code == 0 else "stopped",
        reason=reason,
        exit=code,
        seconds=10,
        site=SiteCounts(("a.example",), PageCounts(1_080, 4, 1, 2, 3), PageCounts(10), {"robots": 2}),
        other=OtherCounts(12, PageCounts(7)),
        requests=1_200,
        answers={"200": 1_090, "404": 4},
        errors={"dns": 1},
        skipped={"robots": 2},
        failed={"dns": 1},
        bytes=ByteSums(10**6, 10**6, 10**5),
        warc_files=1,
    )


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (1_234_567, "1.2 MB"),
        (10**9, "1.0 GB"),
        (5 * 10**15, "5000.0 TB"),
    ],
)
def test_sizes(size, text):
    assert size_text(size) == text


@pytest.mark.parametrize(("number", "text"), [(0, "0 pages"), (1, "1 page"), (2, "2 pages"), (1_200, "1,200 pages")])
def test_one_is_no_plural(number, text):
    assert counted(number, "page") == text


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (59.9, "0:59"), (125, "2:05"), (3_723, "1:02:03")])
def test_durations(seconds, text):
    assert duration_text(seconds) == text


def test_a_line_every_ten_seconds(capsys):
    display = LineDisplay()
    for elapsed in (1, 9, 10, 11, 19, 20.5, 31):
        display.show(snapshot(elapsed))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines] == ["0:10", "0:20", "0:31"]
    assert lines[0] == (
        "0:10  1,234 done (1,200 captured, 29 missing, 5 failed), 67 queued, 7 done on other hosts, "
        "91 pages/s, 2.5 MB/s"
    )


def test_that_it_is_ending_is_told(capsys):
    LineDisplay().show(snapshot(10, ending=True))
    assert "(ending)" in capsys.readouterr().err


@pytest.mark.parametrize("width", range(16, 120, 3))
def test_the_panel_cuts_no_figure_and_says_what_ctrl_c_does(width):
    for ending, says in ((False, "Ctrl-C stops cleanly"), (True, "Ctrl-C once more ends at once")):
        console = Console(width=width, record=True, file=StringIO())
        console.print(panel_of(snapshot(10, ending=ending), width))
        text = console.export_text()
        assert says in " ".join(text.split())
        lines = [figure for line in text.splitlines() for figure in line.strip().split("   ")]
        assert {"1,234 done", "67 queued", "5 failed", "91 pages/s", "2.5 MB/s", "1.0 GB in all"} <= {*lines}
        assert {"2 workers", "0:10"} <= {*lines}


def test_why_nothing_happens_is_told(capsys):
    LineDisplay().show(snapshot(10, note="paused: the disk is full"))
    assert "(paused: the disk is full)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "reason", "begins", "says"),
    [
        (
            0,
            "finished",
            "Finished after 0:10: 1,200 requests in all its runs; 109 answers/s\n",
            "Next: muniment inspect 'my out'",
        ),
        (3, "interrupted", "Stopped (interrupted) after 0:10", "To resume, give the same command again."),
        (3, "limit: --max-pages", "Stopped (limit: --max-pages)", "the same command with a larger --max-pages."),
        (3, "limit: --max-time", "Stopped (limit: --max-time)", "To resume, give the same command again."),
        (4, "finished", "Nothing could be captured.", "muniment why 'https://a.example/?q' -o 'my out'"),
    ],
)
def test_the_end_says_what_to_do_next(capsys, code, reason, begins, says):
    parts = {"site": SiteCounts(), "other": OtherCounts(), "skipped": {}} if code == 4 else {}
    tell_summary(structs.replace(summary(code, reason), **parts), Path("my out"), "https://a.example/?q", COMMAND)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(begins)
    assert says in said.err


def test_a_sitemap_that_named_nothing_is_told(capsys):
    read = ListProgress(SeedPlace(), lines=1, bad=0, duplicates=0, ended=True)
    for pages, told in ((1, True), (2, False)):
        site = SiteCounts((), PageCounts(pages))
        one = structs.replace(summary(0, "finished"), site=site, other=OtherCounts())
        tell_summary(structs.replace(one, list_read=read), Path("out"), "https://a.example/sitemap.xml", COMMAND)
        said = "it gave no URL: muniment why https://a.example/sitemap.xml -o out"
        assert (said in capsys.readouterr().err) is told


def test_the_end_counts_by_the_words_of_every_face(capsys):
    tell_summary(summary(0, "finished"), Path("out"), "https://a.example/", COMMAND)
    assert capsys.readouterr().err.splitlines()[1:7] == [
        "Site a.example: 1,080 pages captured, 4 missing, 1 failed, 2 skipped (2 robots), 3 queued",
        "Other hosts (12): 7 pages captured, 0 missing, 0 failed, 0 skipped, 0 queued",
        "Requisites: 10 captured, 0 missing, 0 failed, 0 skipped, 0 queued",
        "Answers: 1,090 × 200, 4 × 404",
        "Errors: 1 × dns",
        "1 WARC file, 100.0 kB, from 1.0 MB of payload, in out",
    ]


def test_the_end_of_a_single_page(capsys):
    one = structs.replace(summary(0, "finished"), other=OtherCounts(), answers={}, errors={}, requests=1)
    for hosts, named in ((("a.example",), " a.example"), ((), ""), (("a", "b", "c", "d"), " a and 3 more")):
        tell_summary(structs.replace(one, site=SiteCounts(hosts, PageCounts(1))), Path("out"), "", COMMAND)
        assert capsys.readouterr().err.splitlines()[:3] == [
            "Finished after 0:10: 1 request in all its runs; 0 answers/s",
            f"Site{named}: 1 page captured, 0 missing, 0 failed, 0 skipped, 0 queued",
            "1 WARC file, 100.0 kB, from 1.0 MB of payload, in out",
        ]


def at(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


COMMAND = "muniment crawl https://a.example/ -o out"
NOON = datetime.now().replace(hour=12, minute=5, second=9, microsecond=500_000)
WAITED = (
    WaitingHost("example.com", "503 with Retry-After", at(NOON)),
    WaitingHost("a" * 200 + ".example", "10 refusals in a row, 429 last", at(NOON)),
    WaitingHost("c.example", "a challenge page", at(NOON + timedelta(days=1))),
)


def test_hosts_that_are_waited_for_are_told_with_time_and_reason():
    now = structs.replace(snapshot(10), waiting=WAITED, waiting_hosts=1_234)
    first, long, later, more = waiting_lines(now, 3)
    assert first == "waiting for example.com until 12:05:09: 503 with Retry-After"
    assert "a… until 12:05:09: 10 refusals" in long
    assert later.startswith(f"waiting for c.example until {NOON + timedelta(days=1):%Y-%m-%d} 12:05:09")
    assert more == "and 1,231 more"
    assert waiting_lines(now, 1) == [first, "and 1,233 more"]
    assert waiting_lines(structs.replace(now, waiting_hosts=3), 3)[-1] == later
    assert waiting_lines(snapshot(10), 5) == []


def test_a_line_names_the_first_host_that_is_waited_for_and_the_time_left(capsys):
    LineDisplay().show(structs.replace(snapshot(10), waiting=WAITED, waiting_hosts=3, left=125.0))
    said = capsys.readouterr().err
    assert "2.5 MB/s, about 2:05 left; waiting for example.com until 12:05:09: 503 with Retry-After; and 2 more" in said


def drawn(now: Snapshot, columns: int) -> list[str]:
    """What an emulated terminal shows of the panel."""
    screen = pyte.Screen(columns, 30)
    file = StringIO()
    Console(width=columns, file=file, force_terminal=True).print(panel_of(now, columns))
    pyte.Stream(screen).feed(file.getvalue().replace("\n", "\r\n"))
    return [row for line in screen.display if (row := line.rstrip())]


@pytest.mark.parametrize("columns", [80, 60])
def test_the_panel_shows_hosts_that_are_waited_for_a_line_each(columns):
    rows = drawn(structs.replace(snapshot(10), waiting=WAITED, waiting_hosts=5, left=4_000.0), columns)
    waits = [row for row in rows if row.startswith("waiting for ")]
    assert len(waits) == 3
    assert waits[0] == "waiting for example.com until 12:05:09: 503 with Retry-After"
    assert all("12:05:09" in row for row in waits), "the time is seen, however long the name is"
    assert rows[rows.index(waits[2]) + 1] == "and 2 more"
    assert "about 1:06:40 left" in "\n".join(rows)
    assert max(map(len, rows)) <= columns


GROWING = "queue growing (+812 a minute)"


@pytest.mark.parametrize(("left", "says"), [(None, ""), (inf, GROWING), (65.0, "about 1:05 left")])
def test_the_panel_tells_the_time_left_when_somebody_can(left, says):
    text = "\n".join(drawn(structs.replace(snapshot(10), left=left, growth=812), 80))
    assert says in text
    assert says or not ("left" in text or "growing" in text)


def test_the_end_names_what_was_left_out_a_line_for_each_cause(capsys):
    how = {"skipped": {"robots": 2, "dead-host": 1}, "failed": {"limit": 4, "dns": 3}}
    tell_summary(structs.replace(summary(3, "interrupted"), **how), Path("my out"), "", COMMAND)
    lines = capsys.readouterr().err.splitlines()
    assert lines[7:10] == [
        "  2 skipped by robots.txt; the same command with --no-robots captures them",
        "  1 skipped by hosts that were given up; the same command with --retry-failed tries them again",
        "  4 failed by limits (length of a URL, redirects); `muniment why URL` says which",
    ]


@pytest.mark.parametrize(
    ("pages", "last"),
    [
        (0, "Next: muniment inspect out   muniment check out"),
        (1, f"1 page failed; to ask for it again: {COMMAND} --retry-failed"),
        (1_200, f"1,200 pages failed; to ask for them again: {COMMAND} --retry-failed"),
    ],
)
def test_the_last_line_of_a_finished_job_says_how_to_ask_for_failed_pages_again(capsys, pages, last):
    ended = structs.replace(summary(0, "finished"), retryable=pages)
    tell_summary(ended, Path("out"), "", COMMAND)
    assert capsys.readouterr().err.splitlines()[-1] == last
    tell_finished(ended, Path("out"), COMMAND)
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "out is finished; nothing to do. Look at it: muniment inspect out"
    assert said[1:] == ([last] if pages else [])


REFUSED = "refused: Connection refused"


def test_while_nothing_has_answered_the_cause_is_said(capsys):
    now = structs.replace(snapshot(10), unanswered=REFUSED)
    LineDisplay().show(now)
    assert f"; nothing has answered yet: {REFUSED}" in capsys.readouterr().err
    assert f"nothing has answered yet: {REFUSED}" in drawn(now, 80)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("", "Nothing could be captured. Why: muniment why https://a.example/ -o out"),
        (REFUSED, f"Nothing could be captured: {REFUSED}. Why: muniment why https://a.example/ -o out"),
        (
            "private-address: 10.0.0.1 is a private address",
            "Nothing could be captured: private-address: 10.0.0.1 is a private address; --allow-private allows it. "
            "Why: muniment why https://a.example/ -o out",
        ),
    ],
)
def test_the_last_line_says_why_nothing_was_captured(capsys, error, said):
    nothing = {"site": SiteCounts(), "other": OtherCounts()}
    ended = structs.replace(summary(4, "finished"), unanswered=error, **nothing)
    tell_summary(ended, Path("out"), "https://a.example/", COMMAND)
    assert capsys.readouterr().err.splitlines()[-1] == said
