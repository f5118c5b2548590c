"""Progress: rates, slow hosts and the last URLs."""

from __future__ import annotations

from muniment.crawl.progress import Progress
from muniment.tracker.sums import Totals


def test_statuses_and_last_urls():
    progress = Progress()
    for n in range(20):
        progress.page(200 if n % 2 else 404, f"https://a.example/{n}", "a.example", 10)
    assert progress.statuses == {200: 10, 404: 10}
    shown = progress.snapshot(Totals(captured=7, requisites=2), queued=3, in_flight=1, workers=1, note="", ending=False)
    assert (shown.captured, shown.queued) == (9, 3)
    assert [url for _, url in shown.last_urls] == [f"https://a.example/{n}" for n in range(12, 20)]


def test_the_slowest_hosts_come_first():
    progress = Progress()
    for host, ms in (("slow", 900), ("fast", 1), ("middle", 300), ("slower", 2_000)):
        progress.page(200, "u", host, ms)
    assert progress.slow_hosts() == (("slower", 2_000), ("slow", 900), ("middle", 300))


def test_a_host_that_recovers_is_no_longer_slow():
    progress = Progress()
    progress.page(200, "u", "a", 60_000)
    for _ in range(600):
        progress.page(200, "u", "a", 10)
    assert progress.slow_hosts()[0][1] < 200


def test_the_mean_of_a_host():
    progress = Progress()
    for ms in (10, 20, 30, 40):
        progress.page(200, "u", "a", ms)
    assert progress.slow_hosts() == (("a", 25),)


def test_hosts_are_bounded_and_the_slow_ones_stay():
    progress = Progress()
    for n in range(5_000):
        progress.page(200, "u", f"h{n}", n)
    assert len(progress._slow) <= 1_000
    assert progress.slow_hosts()[0] == ("h4999", 4_999)


def test_what_nobody_answered_is_neither_fast_nor_a_page():
    progress = Progress()
    progress.page(0, "https://dead.example/", "dead.example", 0)
    assert progress.slow_hosts() == ()
    assert progress.rates()[0] == 0
    shown = progress.snapshot(Totals(), queued=0, in_flight=0, workers=1, note="", ending=False)
    assert shown.last_urls == ((0, "https://dead.example/"),)


def test_rates_count_pages_and_bytes():
    progress = Progress()
    assert progress.rates() == (0, 0)
    for _ in range(5):
        progress.page(200, "u", "a", 1)
    progress.received(1_000)
    pages, size = progress.rates()
    assert pages > 0
    assert round(size / pages) == 200


def test_rates_look_at_a_window():
    progress = Progress()
    for _ in range(3):
        progress.page(200, "u", "a", 1)
    progress._marks.clear()
    progress._marks.extend([(progress.started - 100, 0, 0), (progress.started - 50, 3, 0)])
    progress.rates()
    assert progress.rates() == (0, 0)
