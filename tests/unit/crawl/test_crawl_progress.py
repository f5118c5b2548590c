"""Progress: rates, slow hosts, the last URLs, and what is waited for."""

from __future__ import annotations

from math import inf
from typing import Any

from msgspec import structs

from muniment.clock import steady_ms
from muniment.crawl.progress import Progress
from muniment.model.event import Event, EventBatch, PageEvent, TransferEvent, WaitingHost
from muniment.model.network.counts import PageCounts
from muniment.model.queue import Totals


def finished(
    status: int = 200,
    took_ms: int = 1,
    error: str = "",
    *,
    url: str = "u",
    host: str = "a",
    done: bool = True,
    refused: str = "",
) -> PageEvent:
    return PageEvent(url, host, 1, status, error, done, refused, 0, took_ms)


def take(progress: Progress, *events: Event) -> None:
    progress.take(EventBatch(0, events))


def test_the_last_urls():
    progress = Progress()
    for n in range(20):
        take(progress, finished(200 if n % 2 else 404, url=f"https://a.example/{n}"))
    shown = progress.snapshot(Totals(captured=7, requisites=2), queued=3, in_flight=1, workers=1, note="", ending=False)
    assert (shown.captured, shown.queued) == (9, 3)
    assert [url for _, url in shown.last_urls] == [f"https://a.example/{n}" for n in range(12, 20)]


def test_what_has_ended_is_as_every_face_counts_it():
    totals = Totals(tallies=tuple(range(1, 13)))
    now = Progress().snapshot(totals, queued=9, in_flight=1, workers=1, note="", ending=False)
    assert (now.site, now.other) == (PageCounts(1, 2, 3), PageCounts(7, 8, 9))


def test_the_slowest_hosts_come_first():
    progress = Progress()
    for host, ms in (("slow", 900), ("fast", 1), ("middle", 300), ("slower", 2_000)):
        take(progress, finished(took_ms=ms, host=host))
    assert progress.slow_hosts() == (("slower", 2_000), ("slow", 900), ("middle", 300))


def test_a_host_that_recovers_is_no_longer_slow():
    progress = Progress()
    take(progress, finished(took_ms=60_000))
    for _ in range(600):
        take(progress, finished(took_ms=10))
    assert progress.slow_hosts()[0][1] < 200


def test_the_mean_of_a_host():
    progress = Progress()
    for ms in (10, 20, 30, 40):
        take(progress, finished(took_ms=ms))
    assert progress.slow_hosts() == (("a", 25),)


def test_hosts_are_bounded_and_the_slow_ones_stay():
    progress = Progress()
    for n in range(5_000):
        take(progress, finished(took_ms=n, host=f"h{n}"))
    assert len(progress._slow) <= 1_000
    assert progress.slow_hosts()[0] == ("h4999", 4_999)


def test_what_nobody_answered_is_neither_fast_nor_a_page():
    progress = Progress()
    take(progress, finished(0, error="dns: no such name", url="https://dead.example/"))
    assert progress.slow_hosts() == ()
    assert progress.rates()[0] == 0
    shown = progress.snapshot(Totals(), queued=0, in_flight=0, workers=1, note="", ending=False)
    assert shown.last_urls == (("dns", "https://dead.example/"),)


def test_rates_count_pages_and_bytes():
    progress = Progress()
    assert progress.rates() == (0, 0)
    for _ in range(5):
        take(progress, finished(took_ms=1))
    take(progress, TransferEvent(1_000))
    pages, size = progress.rates()
    assert pages > 0
    assert round(size / pages) == 200


def test_rates_look_at_a_window():
    progress = Progress()
    for _ in range(3):
        take(progress, finished(took_ms=1))
    progress._marks.clear()
    progress._marks.extend([(progress.started - 100, 0, 0), (progress.started - 50, 3, 0)])
    progress.rates()
    assert progress.rates() == (0, 0)


def test_errors_count_when_a_page_is_given_up_and_was_asked_for():
    progress = Progress()
    take(progress, finished(0, error="reset: by peer", done=False))
    take(progress, finished(0, error="robots: robots.txt disallows it", refused="robots"))
    take(progress, finished(0, error="reset: by peer"))
    take(progress, finished(200, error="cut: 3 of 9 bytes"))
    shown = progress.snapshot(Totals(), queued=0, in_flight=0, workers=1, note="", ending=False)
    assert progress.errors == {"reset": 1, "cut": 1}
    assert [said for said, _ in shown.last_urls] == ["reset", "robots", "reset", "cut"]


def test_a_fault_is_counted_once_and_answers_by_their_rows():
    progress = Progress()
    for page in (finished(503, done=False), finished(503), finished(0, error="dns: no such name")):
        take(progress, page)
    assert progress.errors == {"dns": 1}
    rows = [(url, status, error, 0, 0) for url, status, error in ANSWERS]
    progress.take_answers([], rows)
    assert progress.answers == {503: 2, 200: 2}


ANSWERS = (
    ("https://a.example/", 503, ""),
    ("https://a.example/", 503, ""),
    ("https://a.example/b", 200, ""),
    ("https://a.example/robots.txt", 404, ""),
    ("https://a.example/c/robots.txt", 200, ""),
    ("https://a.example/d", 200, "cut: 3 of 9 bytes"),
    ("urn:view:https://a.example/", 0, ""),
)
"""Rows of the index: URL, status and error."""


def shown(progress: Progress, queued: int = 0, **more: Any):
    return progress.snapshot(Totals(), queued=queued, in_flight=0, workers=1, note="", **{"ending": False, **more})


def test_the_five_hosts_that_are_due_first_are_shown():
    waits = [WaitingHost(f"h{number}", "503", 1_000 - number) for number in range(8)]
    now = shown(Progress(), waiting=waits)
    assert [one.host for one in now.waiting] == ["h7", "h6", "h5", "h4", "h3"]
    assert now.waiting_hosts == 8
    assert (shown(Progress()).waiting, shown(Progress()).waiting_hosts) == ((), 0)


def paced(seconds: float, before: int, ended: int) -> Progress:
    """A run that ended so many pages in so many seconds."""
    progress = Progress()
    shown(progress, before)
    now = progress._pace.pop()
    progress._pace.extendleft(structs.replace(now, at_s=now.at_s - ago) for ago in (2, 10, seconds))
    for _ in range(ended):
        take(progress, finished())
    return progress


def test_the_time_left_goes_by_the_pages_that_ended():
    assert round(shown(paced(100, 30, 10), 20).left) == 200
    growing = shown(paced(100, 30, 10), 90)
    assert (growing.left, 300 < growing.growth <= 360) == (inf, True)
    assert shown(paced(100, 30, 0), 30).left is None
    assert shown(Progress(), 30).left is None
    late = WaitingHost("a", "503", steady_ms() + 3_600_000)
    assert 3_590 < shown(paced(100, 30, 10), 20, waiting=[late]).left <= 3_600


def test_no_time_is_told_while_a_list_is_read_and_at_the_end():
    for how in ({"more": True}, {"ending": True}):
        assert shown(paced(100, 30, 10), 20, **how).left is None


def test_what_ended_more_than_three_minutes_ago_tells_nothing_of_the_time_left():
    progress = paced(200, 30, 10)
    oldest = progress._pace[0]
    progress._pace.clear()
    progress._pace.extend([oldest, structs.replace(oldest, at_s=oldest.at_s + 25, ended=10)])
    assert shown(progress, 20).left is None


def test_nothing_is_said_of_the_time_left_while_there_are_only_waits():
    progress = paced(60.0, 100, 50)
    assert shown(progress, 50).left is not None
    idle = progress.snapshot(Totals(), queued=50, in_flight=0, workers=1, note="the network is away", ending=False)
    assert idle.left is None
    growing = paced(60.0, 10, 10)
    assert shown(growing, 500).left == inf
    assert shown(growing, 500, waiting=[WaitingHost("a", "503", 1_000)]).left is None
