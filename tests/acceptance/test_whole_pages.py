"""Whole pages first: whenever a crawl is stopped, all captured pages but the last few have what they show."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from crawled import wait_until
from tests.support.gated_site import Answer, GatedSite

PAGES, IMAGES = 120, 4
LAST_FEW = 24
"""Pages in hand of a host at the defaults: six connections, and three times as many until the tracker knows of them."""
LAST_FEW_BESIDE = 36
"""The same with the images on a host beside: 30 pages in hand, or as many images as keep the other host busy."""
_TAKES = 0.004
_IMAGE = Answer(b"\x89PNG", headers=(("Content-Type", "image/png"),), after=_TAKES)


@contextmanager
def sites(beside: int = 1, image: Answer = _IMAGE) -> Iterator[tuple[GatedSite, GatedSite]]:
    """Pages of four images each, of which so many lie on the other host."""
    with GatedSite({}, address="127.0.0.2") as other, GatedSite({}) as site:
        links = "".join(f"<a href=/page{page}>{page}</a>" for page in range(PAGES))
        site.pages["/"] = links
        for page in range(PAGES):
            names = [f"image{page}-{number}.png" for number in range(IMAGES)]
            there, here = names[:beside], names[beside:]
            shown = "".join(f"<img src={url}>" for url in (*(f"{other.url}{name}" for name in there), *here))
            site.pages[f"/page{page}"] = Answer(f"{links}{shown}", after=_TAKES)
            other.pages.update({f"/{name}": image for name in there})
            site.pages.update({f"/{name}": image for name in here})
        yield site, other


def captured(out: Path) -> set[str]:
    """The paths that the tracker has captures of: their records were synced before."""
    with closing(sqlite3.connect(out / "tracker.sqlite")) as tracker:
        urls = tracker.execute("SELECT url FROM pages JOIN attempts ON page_id = id AND status = 200").fetchall()
    return {url.split("/", 3)[3] for (url,) in urls}


def lacking(out: Path) -> tuple[int, int]:
    """How many pages are captured, and how many of them lack an image."""
    found = captured(out)
    pages = [page for page in range(PAGES) if f"page{page}" in found]
    whole = [p for p in pages if all(f"image{p}-{image}.png" in found for image in range(IMAGES))]
    return len(pages), len(pages) - len(whole)


def kill(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)


def press_ctrl_c(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGINT)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("stop", "beside"), [(kill, 1), (press_ctrl_c, 1), (kill, IMAGES)])
def test_a_crawl_stopped_at_any_moment_has_whole_pages(
    stop: Callable[..., None], beside: int, workers: int, muniment: Callable[..., Any], tmp_path: Path
) -> None:
    few = LAST_FEW if beside < IMAGES else LAST_FEW_BESIDE
    seen = []
    for asked in (40, 90, 160, 250, 400):
        out = tmp_path / f"out{asked}"
        with sites(beside) as (site, other):
            pace = ("--workers", workers, "--no-robots", "--no-sitemaps", "--quiet")
            process = muniment.start("crawl", site.url, "-o", out, *pace)
            wait_until(lambda n=asked, a=site, b=other: len(a.requests) + len(b.requests) >= n, f"{asked} requests")
            stop(process)
            process.communicate()
        pages, without = lacking(out)
        seen.append((asked, pages, without))
        assert without <= few, seen
        # before, all pages came first
        assert pages <= (asked + 30) // (1 + IMAGES) + few, seen
    assert any(pages > few for _, pages, _ in seen), seen


def test_what_was_left_is_captured_by_the_next_run(muniment: Callable[..., Any], tmp_path: Path) -> None:
    with sites() as (site, other):
        command = ("crawl", site.url, "-o", "out", "--no-robots", "--no-sitemaps", "--quiet")
        process = muniment.start(*command)
        wait_until(lambda: len(site.requests) + len(other.requests) >= 80, "80 requests")
        kill(process)
        process.communicate()
        _, without = lacking(tmp_path / "out")
        begun = len(site.requests)
        assert muniment(*command).code == 0
        assert lacking(tmp_path / "out") == (PAGES, 0)
        # what captured pages lack comes before pages that nobody asked for
        first = site.requests[begun : begun + without]
    assert sum(path.startswith("/image") for path in first) >= without // 2, first


def test_a_slow_host_of_images_holds_no_pages_up(muniment: Callable[..., Any], tmp_path: Path) -> None:
    slow = Answer(b"\x89PNG", headers=(("Content-Type", "image/png"),), after=2)
    with sites(IMAGES, slow) as (site, other):
        process = muniment.start("crawl", site.url, "-o", "out", "--no-robots", "--no-sitemaps", "--quiet")
        wait_until(lambda: sum(path.startswith("/page") for path in site.requests) >= PAGES, "all pages")
        asked = len(other.requests)
        kill(process)
        process.communicate()
    # it was waited for until its pace was known
    assert 0 < asked <= PAGES // 2, asked
