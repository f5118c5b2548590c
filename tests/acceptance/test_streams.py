"""Answers without an end: each is cut after its time, and neither its site nor the run waits for it longer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crawled import wait_until
from tests.support.raw_server import Flood, RawServer, Script, Send
from warc_reading import captures, records

STREAMS = [f"/stream{number}" for number in range(6)]
PAGES = [f"/page{number}" for number in range(20)]
DRIP = b"tick " * 40
CUT = "limit: cut after {} s (--max-fetch-time)"


def scripts() -> dict[str, Script]:
    """A start page that leads to the streams first, so that they have all connections; most of them have a length."""
    links = "".join(f'<a href="{path}">x</a>' for path in (*STREAMS, *PAGES)).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
    whole = {path: (Send(_sized(head, path.encode())),) for path in PAGES}
    endless = {path: (Send(head + b"\r\n"), Flood(DRIP, 0.1)) for path in STREAMS}
    return {"/": (Send(_sized(head, links)),), **whole, **endless}


def _sized(head: bytes, body: bytes) -> bytes:
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def at(start: str, paths: list[str]) -> list[str]:
    """The URLs of paths."""
    return [start + path[1:] for path in paths]


def test_six_endless_streams_do_not_keep_a_site_from_being_captured(
    muniment: Callable[..., Any], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with RawServer(scripts()) as server:
        start = server.url("/")
        done = muniment("crawl", start, "-o", out, "--no-robots", "--no-sitemaps", "--max-fetch-time", 2)
    assert done.code == 0, done.stderr
    asked = [one.path for one in server.log]
    assert sorted(asked) == sorted(["/", *STREAMS, *PAGES]), "each is asked for once: another try changes nothing"
    rows = {row["url"]: row for row in captures(out)}
    assert {url for url, row in rows.items() if not row["error"]} == {start, *at(start, PAGES)}
    for url in at(start, STREAMS):
        row = rows[url]
        assert (row["status"], row["truncated"], row["error"]) == (200, "time", CUT.format(2))
        assert 2_000 <= row["duration_ms"] < 20_000
        assert row["body_length"] >= len(DRIP)
    cut = [one for file in out.glob("*.warc.gz") for one in records(file) if one.all("warc-truncated")]
    assert sorted(one.url for one in cut) == sorted(at(start, STREAMS))
    assert {one["warc-truncated"] for one in cut} == {"time"}
    events = [json.loads(line) for line in (out / "crawl.jsonl").read_text().splitlines()]
    assert not [event for event in events if event["event"] == "pause"], "a host that sends is not silent"
    assert muniment("check", out).code == 0
    told = json.loads(muniment("why", at(start, STREAMS)[0], "-o", out, "--json").stdout)
    assert (told["verdict"], told["text"]) == ("failed", CUT.format(2))


def test_the_time_of_one_exchange_is_changed_for_what_is_under_way(
    muniment: Callable[..., Any], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with RawServer(scripts()) as server:
        start = server.url("/")
        options = ("--no-robots", "--no-sitemaps", "--quiet")
        process = muniment.start("crawl", start, "-o", out, *options)
        wait_until(lambda: {one.path for one in server.log} >= set(STREAMS), "the streams")
        assert not {one.path for one in server.log} & set(PAGES), "they have all connections"
        done = muniment("set", "-o", out, "max-fetch-time=1.5", "--json")
        assert json.loads(done.stdout) == [{"what": "max-fetch-time", "before": "3600.0", "after": "1.5"}]
        _, complaints = process.communicate(timeout=30)
    assert process.returncode == 0, complaints
    rows = {row["url"]: row["error"] for row in captures(out)}
    assert rows == dict.fromkeys([start, *at(start, PAGES)], "") | dict.fromkeys(at(start, STREAMS), CUT.format(1.5))
