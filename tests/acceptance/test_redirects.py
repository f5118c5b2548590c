"""Redirects as servers send them: round and round, to a login and back, to another name or scheme."""

from __future__ import annotations

import os
import stat
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crawled import run_muniment
from tests.support.gated_site import Answer, GatedSite
from tests.support.nginx import Nginx
from tests.support.redirect_sites import CookieGate, EndlessRedirects, LoginWall, TurningCookie, moved
from warc_reading import captures

PACE = ("--no-robots", "--no-sitemaps", "--tries", 1, "--quiet")


def crawl(cwd: Path, *arguments: object) -> list[tuple[str, int]]:
    """Crawl into `out`; path and status of every row, in the order of capture, none with an error."""
    run_muniment(cwd, "crawl", *arguments, "-o", "out", *PACE)
    rows = sorted(captures(cwd / "out"), key=lambda row: row["started_at"])
    assert {row["error"] for row in rows} <= {""}
    return [("/" + row["url"].split("/", 3)[3], row["status"]) for row in rows]


def test_endless_redirects_end_at_the_limit(tmp_path: Path) -> None:
    with EndlessRedirects() as site:
        rows = crawl(tmp_path, f"{site.url}0", "--max-redirects", 7)
    assert rows == [(f"/{number}", 302) for number in range(8)]


def test_a_page_that_redirects_to_itself_with_a_cookie_is_fetched_again(muniment: Any, tmp_path: Path) -> None:
    with CookieGate({"/": "<a href=/one>1</a><a href=/two>2</a>", "/one": "1", "/two": "2"}) as site:
        rows = crawl(tmp_path, site.url)
        assert rows[:2] == [("/", 302), ("/", 200)]
        assert sorted(rows[2:]) == [("/one", 200), ("/two", 200)]
        assert site.counts() == {"/": 2, "/one": 1, "/two": 1}
    by_attempt = {row["attempt"]: row["status"] for row in captures(tmp_path / "out") if row["url"] == site.url}
    assert by_attempt == {1: 302, 2: 200}
    assert muniment("check", "out").code == 0


def test_a_redirect_to_itself_without_a_new_cookie_ends_there(tmp_path: Path) -> None:
    for cookies in ((), ("fixed=1",)):
        with GatedSite({"/": moved("/", *cookies)}) as site:
            rows = crawl(tmp_path, site.url)
        assert rows == [("/", 302)] * (1 + len(cookies))
        for file in (tmp_path / "out").iterdir():
            file.unlink()


def test_a_cookie_that_turns_for_ever_ends_at_the_limit(tmp_path: Path) -> None:
    with TurningCookie() as site:
        rows = crawl(tmp_path, site.url, "--max-redirects", 5)
    assert rows == [("/", 302)] * 6


def test_a_login_sends_back_to_the_page(tmp_path: Path) -> None:
    with LoginWall({"/": "<a href=/in>in</a>", "/in": "inside"}) as site:
        rows = crawl(tmp_path, site.url)
    assert rows == [("/", 302), ("/login?to=/", 303), ("/", 200), ("/in", 200)]


def test_a_wall_before_many_pages_is_passed_by_all_workers(tmp_path: Path) -> None:
    pages = {f"/{number}": f"page {number}" for number in range(300)}
    start = "".join(f"<a href={path}>{path}</a>" for path in pages)
    with LoginWall(pages) as site:
        site.pages["/"] = start
        crawl(tmp_path, site.url, "--workers", 2)
    last: dict[str, int] = {}
    for row in sorted(captures(tmp_path / "out"), key=lambda row: row["started_at"]):
        last[row["url"]] = row["status"]
    assert {path: last[f"{site.url[:-1]}{path}"] for path in pages} == dict.fromkeys(pages, 200)


def test_the_start_url_redirects_to_www(tmp_path: Path) -> None:
    with GatedSite({"/": "", "/a": "a"}) as site:
        bare, www = (f"http://{name}:{site.url.rsplit(':', 1)[1]}" for name in ("localhost", "www.localhost"))

        def page(headers: Any) -> Any:
            return Answer("<a href=/a>a</a>") if headers["Host"].startswith("www.") else moved(www, status=301)

        site.pages["/"] = page
        run_muniment(tmp_path, "crawl", bare, "-o", "out", *PACE)
        rows = Counter((row["url"], row["status"]) for row in captures(tmp_path / "out"))
    assert rows == {(bare, 301): 1, (www, 200): 1, (f"{www}a", 200): 1}


def test_http_leads_to_https(tmp_path: Path, nginx: Callable[..., Nginx]) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("<a href=/a.html>a</a>")
    (tmp_path / "site" / "a.html").write_text("a")
    safe = nginx(tmp_path / "site", tls=True)
    with GatedSite({"/": moved(safe.url, status=301)}) as plain:
        run_muniment(tmp_path, "crawl", plain.url, "-o", "out", "--insecure", *PACE)
        rows = Counter((row["url"], row["status"], row["found_as"]) for row in captures(tmp_path / "out"))
    assert rows == {(plain.url, 301, "start"): 1, (safe.url, 200, "redirect"): 1, (f"{safe.url}a.html", 200, "a"): 1}


def test_an_offsite_page_that_redirects_is_followed_to_its_end_and_no_further(tmp_path: Path) -> None:
    away_pages = {"/go": moved("/went"), "/went": "<a href=/far>far</a>", "/far": "never"}
    with GatedSite(away_pages, address="127.0.0.2") as away, GatedSite({"/": f"<a href={away.url}go>go</a>"}) as home:
        rows = crawl(tmp_path, home.url)
    assert rows == [("/", 200), ("/go", 302), ("/went", 200)]


def test_cookies_come_from_a_file_outlive_a_stop_and_go_out_to_a_file(muniment: Any, tmp_path: Path) -> None:
    seen: list[str] = []
    with GatedSite({}) as site:

        def page(text: str, *cookies: str) -> Any:
            def answer(headers: Any) -> Answer:
                seen.append(headers.get("Cookie", ""))
                return Answer(text, headers=(("Content-Type", "text/html"), *(("Set-Cookie", c) for c in cookies)))

            return answer

        site.pages["/"] = page("<a href=/a>a</a>", "given=; Max-Age=0", "set=by-server; Path=/")
        site.pages["/a"] = page("a")
        (tmp_path / "c.txt").write_text(
            "# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\tgiven\thush\n"
            "#HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t0\tkept\tyes\n127.0.0.9\tFALSE\t/\tFALSE\t0\tother\tno\n"
        )
        os.utime(tmp_path / "c.txt", (time.time() - 9, time.time() - 9))
        command = ("crawl", site.url, "-o", "out", "--no-robots", "--no-sitemaps", "--cookies", "c.txt")
        assert muniment(*command, "--max-pages", 1).code == 3
        assert seen == ["given=hush; kept=yes"]
        done = muniment(*command)
        assert done.code == 0
        assert seen[1:] == ["kept=yes; set=by-server"]
    out = tmp_path / "out" / "cookies.txt"
    assert (
        stat.S_IMODE(out.stat().st_mode) == stat.S_IMODE((tmp_path / "out" / "tracker.sqlite").stat().st_mode) == 0o600
    )
    assert out.read_text().splitlines()[1:] == [
        "#HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t0\tkept\tyes",
        "127.0.0.1\tFALSE\t/\tFALSE\t0\tset\tby-server",
        "127.0.0.9\tFALSE\t/\tFALSE\t0\tother\tno",
    ]
    assert "hush" not in (tmp_path / "out" / "crawl.jsonl").read_text() + done.stderr + done.stdout
