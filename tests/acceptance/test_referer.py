"""Guards against hot links give images to who comes from a page of theirs: Referer is sent as browsers send it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from crawled import run_muniment
from tests.support.gated_site import Answer, GatedSite
from tests.support.redirect_sites import BasicWall, moved
from warc_reading import captures, records

PACE = ("--no-sitemaps", "--tries", 2, "--quiet")


class Heard:
    """What the Referer of each request was, by its path, in the order of arrival."""

    def __init__(self) -> None:
        self.by_path: dict[str, list[str]] = {}

    def notes(self, path: str, answer: Callable[[str], Answer]) -> Callable[[Message[str, str]], Answer]:
        def note(headers: Message[str, str]) -> Answer:
            said = headers.get("Referer", "")
            self.by_path.setdefault(path, []).append(said)
            return answer(said)

        return note


def guarded(*right: str) -> Callable[[str], Answer]:
    """An image for who comes from the right place."""
    return lambda said: Answer(b"image") if said in right else Answer("no hot links", 403)


def says(body: str, kind: str = "text/html") -> Callable[[str], Answer]:
    return lambda _: Answer(body, headers=(("Content-Type", kind),))


@contextmanager
def two_origins(heard: Heard) -> Iterator[tuple[GatedSite, GatedSite]]:
    """A page with an image here, one there, one that moved to there, and a style sheet with one."""
    with GatedSite({}, address="127.0.0.2") as there, GatedSite({}) as here:
        page, style = f"{here.url}page?x=1", f"{here.url}style.css"
        shown = (
            f"<img src=own.png><img src={there.url}other.png><img src=moves.png><link rel=stylesheet href=style.css>"
        )
        answers = {
            "/": says("<a href='/page?x=1#part'>page</a>"),
            "/page?x=1": says(shown),
            "/own.png": guarded(page),
            "/moves.png": lambda _: moved("/moves-again.png"),
            "/moves-again.png": lambda _: moved(f"{there.url}moved.png"),
            "/style.css": says(
                f"a {{ background: url(back.png) }} b {{ background: url({there.url}far.png) }}", "text/css"
            ),
            "/back.png": guarded(style),
        }
        here.pages.update({path: heard.notes(path, answer) for path, answer in answers.items()})
        for path in ("/other.png", "/moved.png", "/far.png"):
            there.pages[path] = heard.notes(path, guarded(here.url))
        yield here, there


def statuses(out: Path) -> dict[str, int]:
    return {"/" + row["url"].split("/", 3)[3]: row["status"] for row in captures(out) if row["found_as"] != "robots"}


@pytest.mark.parametrize("mode", ["fast", "polite"])
def test_images_behind_a_guard_against_hot_links_are_captured(muniment: Any, tmp_path: Path, mode: str) -> None:
    heard = Heard()
    with two_origins(heard) as (here, there):
        run_muniment(tmp_path, "crawl", here.url, "-o", "out", "--mode", mode, *PACE)
        page = f"{here.url}page?x=1"
        assert heard.by_path == {
            "/": [""],
            "/page?x=1": [here.url],
            "/own.png": [page],
            "/other.png": [here.url],
            "/moves.png": [page],
            "/moves-again.png": [page],
            "/moved.png": [here.url],
            "/style.css": [page],
            "/back.png": [f"{here.url}style.css"],
            "/far.png": [here.url],
        }
        assert {path for path, status in statuses(tmp_path / "out").items() if status != 200} == {
            "/moves.png", "/moves-again.png",
        }  # fmt: skip
        requests = {
            record.url: record.http[0]
            for warc in (tmp_path / "out").glob("*.warc.gz")
            for record in records(warc)
            if record.type == "request"
        }
    assert b"Referer" not in requests[here.url] + requests[f"{here.url}robots.txt"]
    assert f"\r\nReferer: {page}\r\n".encode() in requests[f"{here.url}own.png"]
    assert f"\r\nReferer: {here.url}\r\n".encode() in requests[f"{there.url}far.png"]
    assert muniment("check", "out").code == 0


def test_without_referer_they_are_refused(tmp_path: Path) -> None:
    heard = Heard()
    with two_origins(heard) as (here, _):
        run_muniment(tmp_path, "crawl", here.url, "-o", "out", "--no-referer", *PACE)
    assert {said for each in heard.by_path.values() for said in each} == {""}
    refused = {path for path, status in statuses(tmp_path / "out").items() if status == 403}
    assert refused == {"/own.png", "/other.png", "/moved.png", "/back.png", "/far.png"}


def test_a_referer_that_the_user_gives_wins(tmp_path: Path) -> None:
    heard = Heard()
    with two_origins(heard) as (here, _):
        run_muniment(tmp_path, "crawl", here.url, "-o", "out", "--header", "referer: http://me.test/", *PACE)
    assert {said for each in heard.by_path.values() for said in each} == {"http://me.test/"}


def test_another_try_comes_from_the_same_page_and_so_does_an_account(tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password hush")
    heard = Heard()
    busy = iter([Answer("later", 503), Answer(b"image")])
    with BasicWall({}, "me", "hush") as site:
        site.pages["/"] = "<img src=image.png>"
        site.pages["/image.png"] = heard.notes("/image.png", lambda _: next(busy))
        run_muniment(tmp_path, "crawl", site.url, "-o", "out", "--auth-file", "netrc", "--no-robots", *PACE)
        assert heard.by_path == {"/image.png": [site.url] * 2}


def test_what_a_list_names_and_where_it_leads_comes_from_nowhere(tmp_path: Path) -> None:
    heard = Heard()
    with GatedSite({}) as site:
        site.pages["/a"] = heard.notes("/a", lambda _: moved("/b"))
        site.pages["/b"] = heard.notes("/b", says("b"))
        (tmp_path / "list.txt").write_text(f"{site.url}a\n")
        run_muniment(tmp_path, "fetch", "list.txt", "-o", "out", "--quiet")
        site.pages["/sitemap.xml"] = Answer(
            f"<urlset><url><loc>{site.url}a</loc></url></urlset>", headers=(("Content-Type", "text/xml"),)
        )
        site.pages["/"] = "start"
        run_muniment(tmp_path, "crawl", site.url, "-o", "crawled", "--quiet")
    assert heard.by_path == {"/a": ["", ""], "/b": ["", ""]}
