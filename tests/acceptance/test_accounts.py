"""Accounts, secret headers, proxies and agents: each goes where it belongs, and nothing of it is told."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from crawled import complaint, run_muniment, wait_until
from tests.support.gated_site import Answer, GatedSite
from tests.support.nginx import free_port
from tests.support.redirect_sites import BasicWall, DigestWall
from warc_reading import captures, records

PACE = ("--no-robots", "--no-sitemaps", "--tries", 1, "--workers", 1, "--per-host", 1, "--quiet")
SITE = {"/": "<a href=/a>a</a>", "/a": "<a href=/b>b</a>", "/b": "b"}


def statuses(out: Path, base: str) -> list[tuple[str, int]]:
    rows = sorted(captures(out), key=lambda row: row["started_at"])
    return [(row["url"].removeprefix(base), row["status"]) for row in rows]


def test_basic_is_answered_once_and_goes_to_its_own_host_only(muniment: Any, tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password hush")
    with (
        BasicWall({"/": ""}, "me", "hush", address="127.0.0.2") as other,
        BasicWall({**SITE, "/b": f"<a href={other.url}>other</a>"}, "me", "hush") as site,
    ):
        run_muniment(tmp_path, "crawl", site.url, "-o", "out", "--auth-file", "netrc", *PACE)
        assert [bool(given) for given in site.authorizations] == [False, True, True, True]
        assert other.authorizations == [""]
        rows = statuses(tmp_path / "out", site.url)
    assert rows == [("", 401), ("", 200), ("a", 200), ("b", 200), (other.url, 401)]
    assert muniment("check", "out").code == 0
    for file in ("crawl.jsonl", "tracker.sqlite"):
        assert b"hush" not in (tmp_path / "out" / file).read_bytes()
    [warcinfo] = [r for r in records(next((tmp_path / "out").glob("*.warc.gz"))) if r.type == "warcinfo"]
    assert b"hush" not in warcinfo.block


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-256"])
def test_digest_counts_its_nonce_and_records_the_challenge(tmp_path: Path, algorithm: str) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login m\u00e9 password hu:sh")
    with DigestWall(SITE, "m\u00e9", "hu:sh", algorithm) as site:
        run_muniment(tmp_path, "crawl", site.url, "-o", "out", "--auth-file", "netrc", *PACE)
        assert statuses(tmp_path / "out", site.url) == [("", 401), ("", 200), ("a", 200), ("b", 200)]
        assert site.counts() == {"/": 2, "/a": 1, "/b": 1}


def test_a_wrong_password_is_tried_once(tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password wrong")
    with GatedSite({"/": "<a href=/a>a</a><a href=/b>b</a>"}) as site, BasicWall(SITE, "me", "hush") as wall:
        site.pages["/"] = "".join(f"<a href={wall.url}{path}>x</a>" for path in ("", "a", "b"))
        run_muniment(tmp_path, "crawl", site.url, "-o", "out", "--auth-file", "netrc", *PACE)
    assert sum(bool(given) for given in wall.authorizations) == 1
    assert len(wall.authorizations) == 4


@pytest.mark.parametrize(
    ("option", "text", "words"),
    [
        ("--auth-file", "machine", "line 1 of the auth file"),
        ("--auth-file", "default login me password hush", "default"),
        ("--auth-file", "machine a.example:80 login me password hush", "a.example:80"),
        ("--auth-file", "hush", "line 1"),
        ("--cookies", "a.example\tTRUE\t/\tFALSE\t0\thush", "6 fields"),
        ("--cookies", "# first\n.co.uk\tTRUE\t/\tFALSE\t0\ta\thush", "co.uk"),
        ("--cookies", "a.example\tyes\t/\tFALSE\t0\ta\thush", "line 1"),
        ("--cookies", "a.example\tTRUE\t/\tFALSE\tnever\ta\thush", "Unix seconds"),
    ],
)
def test_a_file_that_makes_no_sense_is_one_clear_line(
    muniment: Any, tmp_path: Path, option: str, text: str, words: str
) -> None:
    (tmp_path / "secrets").write_text(text)
    line = complaint(muniment("crawl", "http://127.0.0.1:9/", "-o", "out", option, "secrets"))
    assert words in line
    assert "hush" not in line
    assert not (tmp_path / "out").exists()


def test_secret_headers_go_to_the_start_hosts_and_agents_have_names(tmp_path: Path) -> None:
    seen: dict[str, Any] = {}

    def page(name: str, text: str) -> Callable[[Any], Answer]:
        def answer(headers: Any) -> Answer:
            seen[name] = headers
            return Answer(text)

        return answer

    with GatedSite({}, address="127.0.0.2") as away, GatedSite({}) as home:
        away.pages["/"] = page("away", "")
        home.pages["/"] = page("home", f"<a href={away.url}>away</a>")
        home.pages["/robots.txt"] = "User-agent: *\nDisallow: /\n\nUser-agent: muniment\nDisallow:\n"
        given = ("--header", "Authorization: Bearer hush", "--header", "*=X-Plain: yes", "--user-agent", "firefox")
        run_muniment(tmp_path, "crawl", home.url, "-o", "out", *given, "--tries", 1, "--quiet")
    assert (seen["home"]["Authorization"], seen["away"]["Authorization"]) == ("Bearer hush", None)
    assert {seen[name]["X-Plain"] for name in seen} == {"yes"}
    assert all("Firefox/" in seen[name]["User-Agent"] for name in seen)
    told = (tmp_path / "out" / "crawl.jsonl").read_bytes() + (tmp_path / "out" / "tracker.sqlite").read_bytes()
    assert b"hush" not in told


# -- proxies that others wrote


@contextmanager
def running(*command: object) -> Iterator[None]:
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(10)


def listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def tinyproxy(cwd: Path) -> Iterator[int]:
    """An HTTP proxy that wants an account and logs what it reached."""
    port = free_port()
    config = f'Port {port}\nListen 127.0.0.1\nLogFile "{cwd}/tiny.log"\nLogLevel Connect\nBasicAuth me hush\n'
    (cwd / "tiny.conf").write_text(config)
    with running(shutil.which("tinyproxy"), "-d", "-c", cwd / "tiny.conf"):
        wait_until(lambda: listens(port), "tinyproxy")
        yield port


@contextmanager
def microsocks() -> Iterator[int]:
    """A SOCKS5 proxy that wants an account and finds names itself."""
    port = free_port()
    with running(shutil.which("microsocks"), "-i", "127.0.0.1", "-p", port, "-u", "me", "-P", "hush"):
        wait_until(lambda: listens(port), "microsocks")
        yield port


def test_real_proxies_by_host_with_accounts_of_the_auth_file(muniment: Any, tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password hush")
    with (
        tinyproxy(tmp_path) as http,
        microsocks() as socks,
        GatedSite({"/": "direct"}, address="127.0.0.3") as direct,
        GatedSite({"/": "socks"}, address="127.0.0.2") as second,
        GatedSite({"/": f"<a href={second.url}>2</a><a href={direct.url}>3</a>"}) as first,
    ):
        proxies = ("--proxy", f"http://127.0.0.1:{http}", "--proxy", f"127.0.0.2=socks5h://127.0.0.1:{socks}")
        command = ("crawl", first.url, "-o", "out", "--auth-file", "netrc", *PACE)
        run_muniment(tmp_path, *command, *proxies, "--proxy", "127.0.0.3=direct")
        rows = {row["url"]: (row["status"], row["ip"]) for row in captures(tmp_path / "out")}
        assert rows == {first.url: (200, ""), second.url: (200, ""), direct.url: (200, "127.0.0.3")}
    tried = (tmp_path / "tiny.log").read_text()
    assert f"CONNECT {first.url[7:-1]}" in tried
    assert "127.0.0.2:" not in tried.replace(first.url, "")
    everything = b"".join(path.read_bytes() for path in (tmp_path / "out").iterdir() if path.is_file())
    assert b"hush" not in everything


def test_a_proxy_that_refuses_the_account_says_so(tmp_path: Path, muniment: Any) -> None:
    with microsocks() as socks, GatedSite({"/": ""}) as site:
        proxy = f"socks5h://me:other@127.0.0.1:{socks}"
        done = muniment("crawl", site.url, "-o", "out", "--proxy", proxy, *PACE)
    assert done.code == 4
    [row] = captures(tmp_path / "out")
    assert row["error"].startswith("unreachable: proxy")
    assert "other" not in row["error"]
