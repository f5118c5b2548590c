"""What servers really send is recorded as they sent it: a table of odd responses, through the command line."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from crawled import run_muniment
from fastwarc.warc import ArchiveIterator
from tests.support.odd_responses import ODD_RESPONSES, OddResponse, scripts
from tests.support.raw_server import Exchanged, RawServer, Send, make_certificate
from warc_reading import Record, captures, record_at, records, sha1_base32

START = b"<!doctype html>" + b"".join(b'<a href="%s">odd</a>' % odd.path.encode() for odd in ODD_RESPONSES)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(START)


@dataclass(frozen=True)
class Archived:
    """One crawl of the whole table, and the server's own log of it."""

    out: Path
    base: str
    rows: dict[str, list[dict[str, Any]]]
    """By path."""
    records: dict[str, list[Record]]
    """By path."""
    log: list[Exchanged]

    def row(self, path: str) -> dict[str, Any]:
        [row] = self.rows[path]
        return row


def by_path(base: str, items: list[Any], url_of: Callable[[Any], str]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(url_of(item).removeprefix(base), []).append(item)
    return found


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archived]:
    cwd = tmp_path_factory.mktemp("odd")
    with RawServer({"/": (Send(HEAD + START),), **scripts()}) as server:
        patience = ("--tries", 1, "--rounds", 0, "--timeout", 2, "--connect-timeout", 2, "--per-host", 16)
        run_muniment(cwd, "crawl", server.url("/"), "--no-robots", "--no-sitemaps", "--quiet", *patience)
        out, base = cwd / "muniment-out", server.url("")
        stored = [record for path in out.glob("*.warc.gz") for record in records(path) if record.type != "warcinfo"]
        rows = by_path(base, captures(out), lambda row: row["url"])
        yield Archived(out, base, rows, by_path(base, stored, lambda record: record.url), list(server.log))


def answered(archived: Archived, odd: OddResponse) -> Exchanged:
    """What the server logged of the request that was answered; a request is repeated when a kept connection broke."""
    return [entry for entry in archived.log if entry.path == odd.path][-1]


KEPT = [odd for odd in ODD_RESPONSES if odd.head]
LOST = [odd for odd in ODD_RESPONSES if not odd.head]


def test_the_table_is_whole(archived: Archived) -> None:
    assert len(ODD_RESPONSES) >= 40
    assert {"/", *(odd.path for odd in ODD_RESPONSES)} <= set(archived.rows)


def test_each_has_one_row_that_tells_how_it_ended(archived: Archived) -> None:
    rows = {odd.name: archived.row(odd.path) for odd in ODD_RESPONSES}
    ends = {name: (row["status"], row["error"].partition(": ")[0], row["truncated"]) for name, row in rows.items()}
    assert ends == {odd.name: (odd.status, odd.failure, odd.truncated) for odd in ODD_RESPONSES}
    assert [odd.name for odd in ODD_RESPONSES if bool(rows[odd.name]["error"]) != bool(odd.failure)] == []


def test_the_responses_are_kept_as_sent(archived: Archived) -> None:
    for odd in KEPT:
        row = archived.row(odd.path)
        record = record_at(archived.out / row["warc_file"], row["warc_offset"], row["warc_length"])
        assert record.block == odd.head + odd.body, odd.name
        assert record.block in answered(archived, odd).sent, odd.name
        assert (record.type, record.url) == ("response", archived.base + odd.path)
        assert record.all("warc-truncated") == ([odd.truncated] if odd.truncated else []), odd.name
        assert record["warc-block-digest"] == sha1_base32(record.block), odd.name
        # The payload has no transfer coding any more; a 304 has none at all.
        digests = [sha1_base32(odd.payload)] if odd.status != 304 else []
        assert record.all("warc-payload-digest") == digests, odd.name
        assert row["body_length"] == len(odd.payload), odd.name
        assert row["digest"] == (hashlib.sha1(odd.payload).hexdigest() if odd.payload else ""), odd.name


def test_the_requests_are_kept_as_received(archived: Archived) -> None:
    for odd in KEPT:
        [request] = [record for record in archived.records[odd.path] if record.type == "request"]
        assert request.block == answered(archived, odd).received, odd.name
        assert request["warc-block-digest"] == sha1_base32(request.block), odd.name
        assert request["warc-concurrent-to"] == f"<{archived.row(odd.path)['record_id']}>", odd.name


def test_without_a_header_block_there_is_no_record(archived: Archived) -> None:
    assert LOST
    for odd in LOST:
        row = archived.row(odd.path)
        assert odd.path not in archived.records, odd.name
        assert (row["warc_file"], row["warc_offset"], row["warc_length"]) == ("", None, None), odd.name
        assert (row["status"], row["body_length"], row["digest"], row["record_id"]) == (0, 0, "", ""), odd.name


def test_nothing_is_asked_for_twice_but_after_a_lost_connection(archived: Archived) -> None:
    for odd in ODD_RESPONSES:
        requests = [entry for entry in archived.log if entry.path == odd.path]
        if len(requests) > 1:
            # A kept connection may be closed by the server while the request is on its way: then it is sent again.
            assert not odd.head, odd.name
            assert [entry.sent for entry in requests[:-1]] == [b""] * (len(requests) - 1), odd.name


def test_fastwarc_reads_every_record(archived: Archived) -> None:
    seen = 0
    for path in archived.out.glob("*.warc.gz"):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, parse_http=False):
                assert record.verify_block_digest(), record.headers["WARC-Target-URI"]
                seen += record.headers["WARC-Type"] != "warcinfo"
    assert seen == sum(map(len, archived.records.values()))


def test_check_finds_no_fault_in_what_was_recorded(archived: Archived, muniment: Callable[..., Any]) -> None:
    checked = muniment("check", archived.out)
    assert (checked.code, checked.stderr) == (0, ""), checked.stdout


def test_the_start_page_holds_every_link(archived: Archived) -> None:
    [metadata] = [record for record in archived.records["/"] if record.type == "metadata"]
    lines = metadata.block.decode().split("\r\n")
    outlinks = [line.split(" ")[1] for line in lines if line.startswith("outlink: ")]
    assert outlinks == [archived.base + odd.path for odd in ODD_RESPONSES]


def test_a_server_that_speaks_tls_1_0_alone_is_archived_where_that_is_asked_for(tmp_path: Path) -> None:
    page = (Send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi"),)
    with RawServer({"/": page}, make_certificate(tmp_path, "old"), old_ciphers="ECDHE-ECDSA-AES128-SHA") as server:
        run_muniment(tmp_path, "crawl", server.url("/"), "--insecure", "--level", 0, "--no-robots", "--quiet")
    out = tmp_path / "muniment-out"
    [response] = [one for path in out.glob("*.warc.gz") for one in records(path) if one.type == "response"]
    assert "tls/1.0" in response.all("warc-protocol")
