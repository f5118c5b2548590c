"""What hooks of the crawl fetch is in the WARC, too, before the first page and after the last."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hook_plugins import hook, results_of
from sqlalchemy import text
from tests.support.nginx import Nginx
from tests.support.postgres import Postgres
from tests.support.proxied_runs import recorded, table

from muniment.model.place import TrackerPlace
from muniment.tracker.connect import tracker_at

ALONE = ("--page-only", "--no-sitemaps", "--insecure", "--quiet")
SAY = 'curl -s -o /dev/null -w "%{http_code}\\n"'


@pytest.fixture
def site(nginx: Callable[..., Nginx], tmp_path: Path) -> Nginx:
    """A page, what belongs to it, and what robots forbid."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text("<html><title>t</title>text")
    (folder / "data.txt").write_text("data\n" * 1000)
    (folder / "no.txt").write_text("not to be seen")
    (folder / "robots.txt").write_text("User-agent: *\nDisallow: /no.txt\n")
    return nginx(folder, tls=True)


def assert_log_is_archived(site: Nginx, out: Path) -> None:
    """What nginx was asked for is in the WARC and in the index, and nothing else is."""
    kept = recorded(out)
    urls = {fields["warc-record-id"]: url for kind, url, _, fields in kept if kind in ("response", "revisit")}
    asked = Counter(
        (url, block.split(b" ", 1)[0].decode())
        for kind, url, block, fields in kept
        if kind == "request" and fields["warc-concurrent-to"] in urls
    )
    log = site.wait_requests(asked.total())
    assert asked == Counter((f"https://{one.host}:{site.ports[0]}{one.uri}", one.method) for one in log)
    assert Counter(urls.values()) == Counter(row["url"] for row in table(out))


def payload_bytes_of(out: Path, database: str = "") -> int:
    """What the tracker counts."""
    with tracker_at(TrackerPlace(out, database)) as db:
        return int(db.connection.execute(text("select sum(payload_bytes) from job_sums")).scalar_one())


@pytest.mark.parametrize("on", ["SQLite", "PostgreSQL"])
def test_the_log_of_the_server_is_the_archive_of_hooks_of_the_crawl(
    muniment: Any, site: Nginx, postgres: Postgres, tmp_path: Path, on: str
) -> None:
    database = postgres.create("crawl_hooks") if on == "PostgreSQL" else ""
    tracker = ("--database", database) if database else ()
    plugins, out, url = tmp_path / "plugins", tmp_path / "out", site.url
    daemon = f"trap 'curl -sS {url}data.txt?daemon-ends > last; exit 0' TERM\ncurl -sS {url}data.txt?daemon > first\n"
    hook(plugins, "daemon", "on_CrawlSetup__1_daemon.bg.sh", f"{daemon}echo ready\nwhile :; do sleep 0.05; done")
    wget = f"wget -q {url}data.txt?wget {url}no.txt; [ $? = 8 ]"
    hook(plugins, "wget", "on_CrawlSetup__2_wget.sh", f'{wget} && echo "$EXTRA_CONTEXT" > context')
    hook(plugins, "page", "on_Snapshot__1_page.sh", f"curl -sS {url}data.txt?page > got")
    hook(plugins, "end", "on_CrawlEnd__1_end.sh", f"curl -sS {url}data.txt?end > got; {SAY} {url}no.txt > said")
    private = f"{SAY} http://10.1.2.3/ > said"
    hook(plugins, "bye", "on_CrawlCleanup__1_bye.sh", f"{private}; curl -sS {url}data.txt?cleanup > got; env > env")
    done = muniment("crawl", url, "-o", out, "--hooks", plugins, *tracker, *ALONE)
    assert done.code == 0, done
    crawl = out / "hooks" / "crawl"
    assert [(crawl / name / "said").read_text().split() for name in ("end", "bye")] == [["403"], ["403"]]
    for got in ("daemon/first", "daemon/last", "end/got", "bye/got"):
        assert (crawl / got).read_text() == "data\n" * 1000, got
    assert_log_is_archived(site, out)
    asked = {row["url"].partition("?")[2]: row for row in table(out) if row["engine"] == "hook"}
    assert set(asked) == {"daemon", "daemon-ends", "wget", "page", "end", "cleanup"}
    of_crawl = [asked[name] for name in ("daemon", "daemon-ends", "wget", "end", "cleanup")]
    [crawl_id] = {row["page_id"].replace("-", "") for row in of_crawl}
    assert json.loads((crawl / "wget" / "context").read_text())["crawl_id"] == crawl_id
    assert asked["page"]["page_id"].replace("-", "") != crawl_id
    assert not (crawl / "muniment_network").exists()
    assert str(crawl / "muniment_network") in (crawl / "bye" / "env").read_text()
    assert [row["error"] for row in results_of(out) if row["status"] != "succeeded"] == []
    assert payload_bytes_of(out, database) == sum(row["body_length"] for row in table(out))
    assert muniment("check", out).code == 0
