"""What hooks fetch by themselves is in the WARC, byte for byte; what may not be fetched is refused."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hook_plugins import assert_log_is_archive, hook, page_folder, results_of
from tests.support.git_site import GitAnswers, make_repository
from tests.support.logging_site import LoggingSite, plain
from tests.support.proxied_runs import table
from tests.support.raw_server import make_certificate

PAGE = plain(b"<html><title>t</title><link rel=stylesheet href=/s.css><img src=/i.png><p>text</html>", "text/html")
PAGES = {
    "/page": PAGE,
    "/page?python": PAGE,
    "/s.css": plain(b"p { color: red }", "text/css"),
    "/i.png": plain(b"\x89PNG" + bytes(5000), "image/png"),
    "/robots.txt": plain(b"User-agent: *\nDisallow: /no\n"),
    "/no": plain(b"not to be seen"),
}
ALONE = ("--page-only", "--no-sitemaps", "--insecure", "--quiet")


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[tuple[LoggingSite, LoggingSite]]:
    """A page and a repository, over http and over TLS."""
    make_repository(tmp_path / "git", "one.git")
    answers = GitAnswers(tmp_path / "git", PAGES)
    with ExitStack() as stack:
        plain_site = stack.enter_context(LoggingSite(answers))
        yield plain_site, stack.enter_context(LoggingSite(answers, make_certificate(tmp_path, "site")))


def test_the_log_of_servers_is_the_archive_of_hooks(
    muniment: Any, sites: tuple[LoggingSite, LoggingSite], tmp_path: Path
) -> None:
    plugins, out = tmp_path / "plugins", tmp_path / "out"
    pages = " ".join(site.url("/page") for site in sites)
    hook(plugins, "wget", "on_Snapshot__1_wget.sh", f"exec wget -q -p -e robots=off {pages}")
    clones = "\n".join(f"git clone -q {site.url('/one.git')} {name}" for site, name in zip(sites, "ab", strict=True))
    hook(plugins, "git", "on_Snapshot__2_git.sh", f"set -e\n{clones}")
    hook(plugins, "curl", "on_Snapshot__3_curl.sh", f"set -e\nfor url in {pages}; do curl -sS $url?curl; done > got")
    lines = f"import urllib.request\nfor url in {pages.split()}: urllib.request.urlopen(url + '?python').read()\n"
    hook(plugins, "python", "on_Snapshot__4_python.py", f"#!{sys.executable}\n{lines}")
    done = muniment("crawl", sites[0].url("/page"), "-o", out, "--hooks", plugins, *ALONE)
    assert done.code == 0, done
    assert {row["plugin"]: row["error"] for row in results_of(out)} == dict.fromkeys(
        ("wget", "git", "curl", "python"), ""
    )
    folder = page_folder(out)
    assert (folder / "git" / "b" / "file.txt").read_text() == "held by git\n" * 100
    mirrored = Counter(path.name for path in (folder / "wget").rglob("*") if path.is_file())
    assert mirrored == {"i.png": 2, "page": 2, "s.css": 2}
    assert_log_is_archive(sites, out)
    asked = Counter(row["url"] for row in table(out) if row["engine"] == "hook")
    assert asked[sites[1].url("/one.git/git-upload-pack")] >= 1
    assert asked[sites[1].url("/page?python")] == 1
    assert not (folder / "muniment_network").exists()


def test_robots_and_private_addresses_hold_for_hooks(
    muniment: Any, sites: tuple[LoggingSite, LoggingSite], tmp_path: Path
) -> None:
    plugins, out = tmp_path / "plugins", tmp_path / "out"
    say = 'curl -s -o /dev/null -w "%{http_code}\\n"'
    urls = sites[0].url("/no"), "http://10.1.2.3/", sites[0].url("/s.css")
    hook(plugins, "ask", "on_Snapshot__1_ask.sh", "\n".join(f"{say} {url} >> said" for url in urls))
    assert muniment("crawl", sites[0].url("/page"), "-o", out, "--hooks", plugins, *ALONE).code == 0
    assert (page_folder(out) / "ask" / "said").read_text().split() == ["403", "403", "200"]
    assert sites[0].asked("/no") == []
    assert_log_is_archive(sites, out)


def test_direct_hooks_go_past_the_archive(
    muniment: Any, sites: tuple[LoggingSite, LoggingSite], tmp_path: Path
) -> None:
    plugins, out = tmp_path / "plugins", tmp_path / "out"
    hook(plugins, "ask", "on_Snapshot__1_ask.sh", f"curl -s {sites[0].url('/i.png?own')} > got; env > env")
    direct = "--hook-network", "direct"
    assert muniment("crawl", sites[0].url("/page"), "-o", out, "--hooks", plugins, *direct, *ALONE).code == 0
    assert len(sites[0].asked("/i.png?own")) == 1
    assert "WGETRC" not in (page_folder(out) / "ask" / "env").read_text()
    assert [row["url"] for row in table(out) if row["url"].endswith("?own")] == []
