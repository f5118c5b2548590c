"""A real documentation tree, crawled by one command, is archived whole, once and byte for byte."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from crawled import Crawled, run_muniment
from fastwarc.warc import ArchiveIterator as FastIterator
from tests.support.chromium import Chromium
from tests.support.nginx import Nginx
from tests.support.player import PlayerSite
from warc_reading import Record, microseconds, record_at, sha1_base32
from warcio.archiveiterator import ArchiveIterator

CAPTURES = ("response", "revisit")


@pytest.fixture(scope="module")
def docs(python_docs: Path, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    """The Python documentation, crawled from its start page requisites and all."""
    cwd = tmp_path_factory.mktemp("docs")
    with Nginx(python_docs) as site:
        run_muniment(cwd, "crawl", site.url, "--no-offsite-links", "--no-robots", "--no-sitemaps", "--quiet")
        return Crawled(cwd, site.url, python_docs)


def exchanges(docs: Crawled) -> dict[str, dict[str, Record]]:
    """The records of each exchange, by type, under the id of its response."""
    found: dict[str, dict[str, Record]] = defaultdict(dict)
    for record in docs.records:
        if record.type != "warcinfo":
            of = record["warc-record-id"] if record.type in CAPTURES else record["warc-concurrent-to"]
            assert record.type not in found[of]
            found[of][record.type] = record
    return found


def answer(exchange: dict[str, Record]) -> Record:
    return exchange.get("response") or exchange["revisit"]


def fields(block: bytes) -> list[tuple[str, str]]:
    """The lines of an application/warc-fields block."""
    lines = block.decode().split("\r\n")
    assert lines.pop() == ""
    return [(name, value) for name, _, value in (line.partition(": ") for line in lines)]


# -- the site


def test_every_reachable_file_is_captured_once_and_nothing_else(docs: Crawled) -> None:
    assert len(docs.reached.files) > 500
    captured = Counter(row["url"] for row in docs.rows)
    assert set(captured) == set(docs.reached.files) | docs.reached.missing
    assert set(captured.values()) == {1}
    assert {row["url"] for row in docs.rows if row["error"]} == set()


def test_the_dangling_links_and_only_these_are_404(docs: Crawled) -> None:
    by_status = {status: {row["url"] for row in docs.rows if row["status"] == status} for status in (200, 404)}
    assert by_status == {200: set(docs.reached.files), 404: docs.reached.missing}
    assert docs.reached.missing


def bodies_by_fastwarc(warcs: Sequence[Path]) -> dict[str, bytes]:
    found = {}
    for path in warcs:
        with path.open("rb") as file:
            for record in FastIterator(file, parse_http=False):
                assert record.verify_block_digest()
                if record.headers["WARC-Type"] in CAPTURES:
                    record.parse_http()
                    found[record.headers["WARC-Record-ID"]] = record.reader.read()
    return found


def bodies_by_warcio(warcs: Sequence[Path]) -> dict[str, bytes]:
    found = {}
    for path in warcs:
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                if record.rec_type in CAPTURES:
                    found[record.rec_headers.get_header("WARC-Record-ID")] = record.content_stream().read()
    return found


@pytest.mark.parametrize("read", [bodies_by_fastwarc, bodies_by_warcio])
def test_bodies_are_the_files_byte_for_byte(docs: Crawled, read: Callable[[Sequence[Path]], dict[str, bytes]]) -> None:
    bodies = read(docs.warcs)
    rows = {row["url"]: row for row in docs.rows}
    for url, path in docs.reached.files.items():
        row, content = rows[url], path.read_bytes()
        stored = content if row["record_type"] == "response" else b""
        assert bodies.pop(f"<{row['record_id']}>") == stored, url
        assert (row["body_length"], row["digest"]) == (len(content), hashlib.sha1(content).hexdigest())
    assert len(bodies) == len(docs.reached.missing)


# -- the files


def test_check_finds_no_fault(docs: Crawled, muniment: Callable[..., Any]) -> None:
    checked = muniment("check", docs.out, "--json")
    assert (checked.code, checked.stderr) == (0, "")
    found = json.loads(checked.stdout)
    assert (found["files"], found["records"], found["rows"]) == (len(docs.warcs), len(docs.records), len(docs.rows))


def test_the_output_directory_holds_what_the_contract_names(docs: Crawled) -> None:
    numbered = [f"muniment-{number:05d}.warc.gz" for number in range(len(docs.warcs))]
    assert [path.name for path in docs.warcs] == numbered
    others = {"captures.parquet", "crawl.jsonl", "tracker.sqlite"}
    assert {path.name for path in docs.out.iterdir()} == {*numbered, *others}


def test_other_readers_accept_the_files(docs: Crawled, run_tool: Callable[..., Any]) -> None:
    checked = run_tool("warcio", "check", *docs.warcs)
    assert (checked.returncode, checked.stdout) == (0, "")
    for path in docs.warcs:
        assert run_tool("fastwarc", "check", path).returncode == 0
        unzipped = subprocess.run(["gzip", "-t", path], capture_output=True, check=False)
        assert (unzipped.returncode, unzipped.stderr) == (0, b"")
    indexed = run_tool("cdxj-indexer", *docs.warcs)
    assert indexed.returncode == 0
    lines = [json.loads(line.split(" ", 2)[2]) for line in indexed.stdout.splitlines()]
    assert {(x["url"], x["filename"], int(x["offset"]), int(x["length"])) for x in lines} == {
        (row["url"], row["warc_file"], row["warc_offset"], row["warc_length"]) for row in docs.rows
    }


def test_each_record_is_a_gzip_member_of_its_own(docs: Crawled) -> None:
    for path in docs.warcs:
        # The tests' own reader takes a member that is not exactly one record for a fault.
        with path.open("rb") as file:
            seen = sum(1 for _ in ArchiveIterator(file))
        assert seen == sum(record.file == path.name for record in docs.records)


def test_every_row_points_to_exactly_its_record(docs: Crawled) -> None:
    for row in docs.rows:
        record = record_at(docs.out / row["warc_file"], row["warc_offset"], row["warc_length"])
        assert (record.type, record.url) == (row["record_type"], row["url"])
        assert record["warc-record-id"] == f"<{row['record_id']}>"
        assert record["warc-ip-address"] == row["ip"] == "127.0.0.1"
        assert record.http[0].startswith(b"HTTP/1.1 %d " % row["status"])
        assert microseconds(record["warc-date"]) == row["started_at"]
        assert base64.b32decode(record["warc-payload-digest"].removeprefix("sha1:")).hex() == row["digest"]
        assert 0 <= row["fetched_at"] - row["started_at"] // 1000 - row["duration_ms"] <= 1
        assert row["ttfb_ms"] <= row["duration_ms"]
    pointed = {(row["warc_file"], row["warc_offset"]) for row in docs.rows}
    assert pointed == {(record.file, record.offset) for record in docs.records if record.type in CAPTURES}


# -- the records


def test_every_exchange_has_three_records_of_one_date(docs: Crawled) -> None:
    found = exchanges(docs)
    assert len(found) == len(docs.rows)
    for exchange in found.values():
        assert set(exchange) in ({kind, "request", "metadata"} for kind in CAPTURES)
        assert len({(record["warc-date"], record.url, record.file) for record in exchange.values()}) == 1
        assert exchange["metadata"]["warc-refers-to"] == exchange["metadata"]["warc-concurrent-to"]


def test_record_ids_are_unique_and_warcinfo_is_referred_to(docs: Crawled) -> None:
    ids = [record["warc-record-id"] for record in docs.records]
    assert len(set(ids)) == len(ids)
    infos = {record.file: record["warc-record-id"] for record in docs.records if record.type == "warcinfo"}
    assert all(r["warc-warcinfo-id"] == infos[r.file] for r in docs.records if r.type != "warcinfo")


def test_digests_are_those_of_the_stored_bytes(docs: Crawled) -> None:
    for record in docs.records:
        assert record["warc-block-digest"] == sha1_base32(record.block)
        if record.type == "response":
            assert record["warc-payload-digest"] == sha1_base32(record.http[1])
        elif record.type != "revisit":
            assert not record.all("warc-payload-digest")


def test_every_file_begins_with_a_warcinfo_that_tells_the_truth(docs: Crawled) -> None:
    for path in docs.warcs:
        first, *others = [record for record in docs.records if record.file == path.name]
        assert (first.type, first["warc-filename"], first["content-type"]) == (
            "warcinfo",
            path.name,
            "application/warc-fields",
        )
        assert "warcinfo" not in {record.type for record in others}
        said = dict(fields(first.block))
        assert said["software"].startswith("muniment/")
        assert said["format"] == "WARC File Format 1.1"
        assert said["conformsTo"].startswith("https://iipc.github.io/warc-specifications/")
        assert said["http-header-user-agent"].startswith(said["software"])
        assert said["command"] == f"muniment crawl {docs.base} --no-offsite-links --no-robots --no-sitemaps --quiet"
        assert {"operator", "robots"} <= set(said)


def test_requests_are_recorded_as_sent(docs: Crawled) -> None:
    host = docs.base.removeprefix("http://").removesuffix("/")
    for exchange in exchanges(docs).values():
        request = exchange["request"]
        first, *lines = request.block.removesuffix(b"\r\n\r\n").decode().split("\r\n")
        assert first == f"GET /{request.url.removeprefix(docs.base)} HTTP/1.1"
        assert f"Host: {host}" in lines
        assert "Accept-Encoding: identity" in lines
        assert any(line.startswith("User-Agent: muniment/") for line in lines)


def test_metadata_names_the_way_here_and_every_outlink(docs: Crawled) -> None:
    rows = {row["url"]: row for row in docs.rows}
    for exchange in exchanges(docs).values():
        said = fields(exchange["metadata"].block)
        url, single = exchange["metadata"].url, dict(said)
        outlinks = {value.split(" ")[0] for name, value in said if name == "outlink"}
        assert outlinks == docs.reached.references.get(url, set()), url
        assert int(single["fetchTimeMs"]) == rows[url]["duration_ms"]
        if rows[url]["depth"] < 0:
            assert "hopsFromSeed" not in single
        else:
            assert int(single["hopsFromSeed"]) == rows[url]["depth"] >= docs.reached.steps[url]
        if url == docs.base:
            assert "via" not in single
        else:
            assert url in docs.reached.references[single["via"]]


# -- revisits and replay


def test_a_revisit_refers_to_an_earlier_record_of_the_same_payload(docs: Crawled) -> None:
    revisits = [record for record in docs.records if record.type == "revisit"]
    # The start page is reached once more under its file name.
    assert f"{docs.base}index.html" in {record.url for record in revisits}
    responses = {record["warc-record-id"]: record for record in docs.records if record.type == "response"}
    for record in revisits:
        original = responses[record["warc-refers-to"]]
        assert record["warc-profile"].endswith("/revisit/identical-payload-digest")
        assert record["warc-refers-to-target-uri"] == original.url
        assert record["warc-refers-to-date"] == original["warc-date"] < record["warc-date"]
        assert record["warc-payload-digest"] == original["warc-payload-digest"]
        assert record["warc-truncated"] == "length"
        assert record.http[1] == b""


def test_another_player_has_pages_and_revisits(docs: Crawled, browser: Chromium) -> None:
    run_muniment(docs.cwd, "export", "muniment-out", "--wacz", "docs.wacz", "--quiet")
    revisits = [row["url"] for row in docs.rows if row["record_type"] == "revisit"]
    by_type: dict[str, list[str]] = defaultdict(list)
    for row in sorted(docs.rows, key=lambda row: row["url"]):
        if row["status"] == 200:
            by_type[row["content_type"]].append(row["url"])
    assert {"text/html", "text/css", "image/png", "text/javascript", "image/svg+xml"} <= set(by_type)
    when = {row["url"]: datetime.fromtimestamp(row["started_at"] // 10**6, UTC) for row in docs.rows}
    with PlayerSite(docs.cwd / "docs.wacz", docs.base) as player:
        page = browser.page()
        player.open(page)
        for url in [*revisits, *(url for urls in by_type.values() for url in urls[:: len(urls) // 6 + 1])]:
            body = docs.reached.files[url].read_bytes()
            assert player.kept(page, f"{when[url]:%Y%m%d%H%M%S}", url) == (200, body), url


# -- the index


STATEMENTS = """
-- status breakdown for a run
SELECT status, count(*) AS n
FROM 'muniment-out/captures.parquet'
GROUP BY status ORDER BY n DESC;

-- the hosts that contributed the most bytes
SELECT host, sum(body_length) AS bytes, count(*) AS pages
FROM 'muniment-out/captures.parquet'
WHERE error = ''
GROUP BY host ORDER BY bytes DESC LIMIT 25;

-- everything that failed, with the reason
SELECT url, error FROM 'muniment-out/captures.parquet' WHERE error <> '';

-- pull a seed's passthrough metadata back out
SELECT url, json_extract_string(meta_json, '$.source') AS source
FROM 'muniment-out/captures.parquet' WHERE meta_json <> '';
"""


def test_duckdb_runs_the_statements_that_users_are_shown(docs: Crawled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(docs.cwd)
    statuses, hosts, failed, passed_through = (
        duckdb.sql(text).fetchall() for text in STATEMENTS.split(";") if text.strip()
    )
    assert statuses == [(200, len(docs.reached.files)), (404, len(docs.reached.missing))]
    missing = sum(row["body_length"] for row in docs.rows if row["status"] == 404)
    size = missing + sum(path.stat().st_size for path in docs.reached.files.values())
    assert hosts == [("127.0.0.1", size, len(docs.rows))]
    assert (failed, passed_through) == ([], [])


def test_pandas_reads_the_index(docs: Crawled) -> None:
    line = "import pandas; print(pandas.read_parquet('muniment-out/captures.parquet').head())"
    done = subprocess.run([sys.executable, "-c", line], cwd=docs.cwd, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    header, *_, shape = done.stdout.splitlines()
    assert header.split()[0] == "url"
    assert shape == f"[5 rows x {len(docs.rows[0])} columns]"


def test_the_indexes_of_several_runs_union(
    muniment: Callable[..., Any], nginx: Callable[..., Nginx], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "site"
    root.mkdir()
    (root / "index.html").write_text('<a href="b.html">b</a>')
    (root / "b.html").write_text("b")
    site = nginx(root)
    for start, run_id in ((site.url, "monday"), (f"{site.url}b.html", "tuesday")):
        alone = ("--no-robots", "--no-sitemaps", "--quiet")
        assert muniment("crawl", start, "--out", "runs", "--run-id", run_id, *alone).code == 0
    monkeypatch.chdir(tmp_path)
    assert duckdb.sql("SELECT count(*) FROM 'runs/*/captures.parquet';").fetchall() == [(3,)]
