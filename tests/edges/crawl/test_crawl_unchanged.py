"""What a seed line knows of a page, against real servers: engine, harvest and recorder as a worker joins them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import uvloop
from fastwarc.warc import ArchiveIterator as FastIterator
from fastwarc.warc import WarcRecordType
from tests.support.channels import AnsweringChannel
from tests.support.chromium import Chromium
from tests.support.pages import claim
from tests.support.player import PlayerSite
from tests.support.raw_server import Close, RawServer, Send
from warcio.archiveiterator import ArchiveIterator

from muniment.archive.check.directory import check
from muniment.archive.index.journal import entries
from muniment.archive.recovery.verify import verify_and_seal
from muniment.archive.warc.warcinfo import WarcInfo
from muniment.crawl.worker.evaluate import ReadPolicy, evaluate
from muniment.crawl.worker.hosts.held_pages import HeldPages
from muniment.crawl.worker.http_session import HttpSession
from muniment.crawl.worker.outlinks import Outlinks
from muniment.crawl.worker.recorder import Recorder
from muniment.fetch.client import Client
from muniment.fetch.config import FetchConfig
from muniment.http.auth import Account
from muniment.http.credentials import CredentialReach, Credentials
from muniment.model.host import HostTerms
from muniment.model.seed import Prior
from muniment.settings.option_table import DelayRange

BODY = b"<p>words that stay the same</p>\n" * 20
DIGEST = hashlib.sha1(BODY).hexdigest()
AT = 1_790_000_000_123_456
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n%bContent-Length: %d\r\n\r\n%b"
BARE = b'HTTP/1.1 304 Not Modified\r\nETag: W/"a"\r\n\r\n'


class Archive:
    """Pages fetched and recorded in one directory."""

    def __init__(self, out: Path, name: str = "again-00000.warc.gz") -> None:
        self.out, self.name = out, name
        self.warc = out / name

    def take(self, *pages, store_unchanged=False, accounts=None):
        """Fetch (URL, prior) one after another, record them in one batch; their rows."""
        return uvloop.run(self._take(pages, ReadPolicy(3, store_unchanged=store_unchanged), accounts or {}))

    async def _take(self, pages, manner, accounts):
        config = FetchConfig(user_agent="test/1", allowed_classes=frozenset({"loopback"}), timeout=2.0)
        client = Client(config, self.out)
        held = HeldPages(1, DelayRange(0, 0), client.permits)
        held.add([], [HostTerms("127.0.0.1", 1)])
        visitor = HttpSession(client, CredentialReach(Credentials(accounts=accounts)), held)
        recorder = Recorder(self.out, WarcInfo(software="test"), 1 << 30, AnsweringChannel(self.name))
        for url, prior in pages:
            page = claim(url, prior=prior)
            visit = await visitor.visit(url, page.host, manner.conditions(page))
            assert visit is not None
            recorder.add(evaluate(page, visit.exchange, Outlinks(), manner))
        recorder.close()
        async for _ in recorder.batches():
            pass
        await client.close()
        assert verify_and_seal(self.out, self.out / "parts", self.name) is None
        return self.rows()

    def rows(self):
        assert check(self.out).faults == ()
        found = entries(self.out / "parts" / (self.name + ".journal"))
        return [entry.capture for entry in found if entry.capture is not None]

    def records(self, kind):
        """The records of a type, as warcio reads them: (fields, block)."""
        with self.warc.open("rb") as file:
            return [
                (dict(record.rec_headers.headers), record.raw_stream.read())
                for record in ArchiveIterator(file, no_record_parse=True)
                if record.rec_type == kind
            ]


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    out = tmp_path / "out"
    out.mkdir()
    return Archive(out)


@pytest.fixture
def first(tmp_path: Path) -> Archive:
    """An earlier archive of the same site."""
    out = tmp_path / "first"
    out.mkdir()
    return Archive(out, "first-00000.warc.gz")


def test_nginx_says_not_modified_and_sends_what_changed(archive, first, nginx, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "a.html").write_bytes(BODY)
    (site / "b.html").write_bytes(BODY + b"b")
    server = nginx(site)
    before = first.take((server.url + "a.html", None), (server.url + "b.html", None))
    assert not any(row.unchanged for row in before)
    (site / "b.html").write_bytes(b"another")
    priors = [Prior(row.digest, row.etag, row.last_modified, row.started_at) for row in before]
    same, changed = archive.take((before[0].url, priors[0]), (before[1].url, priors[1]))
    assert (same.status, same.unchanged, same.record_type, same.body_length, same.digest) == (
        304,
        True,
        "revisit",
        0,
        "",
    )
    assert (changed.status, changed.unchanged, changed.record_type) == (200, False, "response")
    [(fields, block)] = archive.records("revisit")
    assert fields["WARC-Profile"] == "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
    assert fields["WARC-Refers-To-Target-URI"] == before[0].url
    assert fields["WARC-Refers-To-Date"] == first.records("response")[0][0]["WARC-Date"]
    assert not {"WARC-Refers-To", "WARC-Payload-Digest", "WARC-Truncated"} & set(fields)
    assert block.startswith(b"HTTP/1.1 304 ") and f"ETag: {priors[0].etag}".encode() in block


@pytest.mark.parametrize("known", ["etag", "last_modified"])
def test_nginx_needs_one_validator_only(archive, first, nginx, tmp_path, known):
    site = tmp_path / "site"
    site.mkdir()
    (site / "a.html").write_bytes(BODY)
    server = nginx(site)
    [row] = first.take((server.url + "a.html", None))
    [same] = archive.take((row.url, Prior(**{known: getattr(row, known)})))
    assert (same.status, same.unchanged) == (304, True)
    [(fields, _)] = archive.records("revisit")
    named = {name: value for name, value in fields.items() if name.startswith("WARC-Refers-To")}
    assert named == {"WARC-Refers-To-Target-URI": row.url}, "the date is not known"


def sent(server, path="/"):
    """The fields of the last request for a path."""
    lines = server.exchanges(path)[-1].received.decode("latin-1").split("\r\n")[1:-2]
    return dict(line.split(": ", 1) for line in lines)


@pytest.mark.parametrize("etag", ['W/"a"', '"x", W/"a"', '"\xe9"'])
def test_odd_entity_tags_go_out_as_they_came(archive, etag):
    with RawServer({"/": (Send(BARE),)}) as server:
        [row] = archive.take((server.url("/"), Prior(etag=etag)))
        assert sent(server)["If-None-Match"] == etag
    assert (row.unchanged, row.etag) == (True, 'W/"a"')


@pytest.mark.parametrize("evil", ['"a"\r\nX-Evil: 1', '"a\r\nX-Evil: 1"', "*", "a"])
def test_no_validator_brings_a_header_of_its_own(archive, evil):
    with RawServer({"/": (Send(OK % (b"", len(BODY), BODY)),)}) as server:
        archive.take((server.url("/"), Prior(etag=evil, last_modified=evil)))
        assert not {"X-Evil", "If-None-Match", "If-Modified-Since"} & set(sent(server))


def test_a_server_that_answers_304_to_everything(archive):
    """Only what was asked for on a condition is unchanged: a digest is no condition."""
    with RawServer(default=(Send(BARE),)) as server:
        rows = archive.take(
            (server.url("/asked"), Prior(DIGEST, '"a"')),
            (server.url("/digest"), Prior(DIGEST)),
            (server.url("/"), None),
        )
    assert [(row.unchanged, row.record_type) for row in rows] == [
        (True, "revisit"), (False, "response"), (False, "response"),
    ]  # fmt: skip
    assert {(row.status, row.body_length, row.digest, row.error) for row in rows} == {(304, 0, "", "")}


def test_a_304_with_a_body_is_one_without(archive):
    wrong = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello"
    with RawServer({"/304": (Send(wrong),), "/": (Send(OK % (b"", len(BODY), BODY)),)}) as server:
        rows = archive.take((server.url("/304"), Prior(etag='"a"')), (server.url("/"), None))
    assert [(row.status, row.body_length) for row in rows] == [(304, 0), (200, len(BODY))]
    assert archive.records("revisit")[0][1] == wrong[:-5]


@pytest.mark.parametrize("body", [b"x", BODY])
def test_the_seeds_digest_makes_a_revisit_whatever_the_length(archive, body):
    prior = Prior(hashlib.sha1(body).hexdigest(), captured_at=AT)
    with RawServer({"/": (Send(OK % (b"", len(body), body)),)}) as server:
        [row] = archive.take((server.url("/"), prior))
    assert (row.status, row.unchanged, row.record_type) == (200, True, "revisit")
    assert (row.body_length, row.digest) == (len(body), prior.digest)
    [(fields, block)] = archive.records("revisit")
    assert fields["WARC-Profile"].endswith("/identical-payload-digest")
    label = base64.b32encode(bytes.fromhex(prior.digest)).decode()
    assert fields["WARC-Payload-Digest"] == f"sha1:{label}"
    assert fields["WARC-Refers-To-Date"] == "2026-09-21T14:13:20.123456Z"
    assert block == OK % (b"", len(body), b"")


def test_store_unchanged_asks_without_conditions_and_keeps_the_body(archive):
    with RawServer({"/": (Send(OK % (b"", len(BODY), BODY)),)}) as server:
        [row] = archive.take((server.url("/"), Prior(DIGEST, '"a"', captured_at=AT)), store_unchanged=True)
        assert "If-None-Match" not in sent(server)
    assert (row.unchanged, row.record_type) == (True, "response")
    assert archive.records("response")[0][1].endswith(b"\r\n\r\n" + BODY)


def test_digests_are_of_the_coded_payload(archive):
    coded = gzip.compress(BODY, mtime=0)
    answer = OK % (b"Content-Encoding: gzip\r\n", len(coded), coded)
    with RawServer({"/": (Send(answer),)}) as server:
        rows = archive.take((server.url("/"), Prior(hashlib.sha1(coded).hexdigest())), (server.url("/"), Prior(DIGEST)))
    assert [row.unchanged for row in rows] == [True, False]


def test_chunks_are_no_part_of_the_payload(archive):
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
    with RawServer({"/": (Send(chunked),)}) as server:
        [row] = archive.take((server.url("/"), Prior(DIGEST)))
    assert (row.unchanged, row.record_type, row.body_length) == (True, "revisit", len(BODY))


@pytest.mark.parametrize("answer", [b"HTTP/1.0 304 Not Modified\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n" + BODY])
def test_a_server_of_http_1_0(archive, answer):
    date = "Wed, 21 Oct 2015 07:28:00 GMT"
    with RawServer({"/": (Send(answer), Close())}) as server:
        [row] = archive.take((server.url("/"), Prior(DIGEST, last_modified=date)))
        assert sent(server)["If-Modified-Since"] == date
    assert (row.unchanged, row.record_type) == (True, "revisit")


@pytest.mark.parametrize("digest", [DIGEST, hashlib.sha1(BODY[:50]).hexdigest()])
def test_a_cut_body_is_kept_and_marked_whatever_it_matches(archive, digest):
    with RawServer({"/": (Send(OK % (b"", len(BODY), BODY[:50])), Close())}) as server:
        [row] = archive.take((server.url("/"), Prior(digest, captured_at=AT)))
    assert (row.unchanged, row.record_type, row.truncated) == (False, "response", "disconnect")
    assert row.error.startswith("cut: ")
    [(fields, block)] = archive.records("response")
    assert fields["WARC-Truncated"] == "disconnect"
    assert block.endswith(BODY[:50])


def test_an_account_is_asked_for_on_the_same_condition(archive):
    asks = b'HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm="r"\r\nContent-Length: 0\r\n\r\n'
    with RawServer(turns={"/": ((Send(asks),), (Send(BARE),))}) as server:
        [row] = archive.take((server.url("/"), Prior(etag='"a"')), accounts={"127.0.0.1": Account("u", "p")})
        assert [b'If-None-Match: "a"' in one.received for one in server.exchanges("/")] == [True, True]
    assert (row.status, row.unchanged) == (304, True)


def test_other_tools_read_both_profiles_and_replay_finds_the_body(archive, first, tmp_path):
    """FastWARC, cdxj-indexer, which has a 304 as it is, and ReplayWeb.page, which needs no date to find the body."""
    answer = Send(OK % (b"", len(BODY), BODY))
    with RawServer(turns={"/304": ((answer,), (Send(BARE),))}, default=(answer,)) as server:
        urls = [server.url(path) for path in ("/dated", "/undated", "/304")]
        at = first.take(*((url, None) for url in urls))[0].started_at
        time.sleep(1.1)  # replay tools tell captures apart by their second
        priors = [Prior(DIGEST, captured_at=at), Prior(DIGEST), Prior(etag='"a"', captured_at=at)]
        after = archive.take(*zip(urls, priors, strict=True))
    with archive.warc.open("rb") as file:
        found = [(record.record_type, record.verify_block_digest()) for record in FastIterator(file, parse_http=False)]
    assert len(found) == 1 + 3 * 3
    assert all(good for _, good in found)
    assert sum(kind is WarcRecordType.revisit for kind, _ in found) == 3
    command = [Path(sys.executable).with_name("cdxj-indexer"), str(archive.warc)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    again = [json.loads(line.split(" ", 2)[2]) for line in lines if '"mime": "warc/revisit"' in line]
    assert {one["url"]: one["status"] for one in again} == dict(zip(urls, ("200", "200", "304"), strict=True))
    both = tmp_path / "both.warc.gz"
    both.write_bytes(first.warc.read_bytes() + archive.warc.read_bytes())
    stamps = [time.strftime("%Y%m%d%H%M%S", time.gmtime(row.started_at // 1_000_000)) for row in after]
    with Chromium() as browser, PlayerSite(both, urls[0]) as player:
        page = browser.page()
        player.open(page)
        replayed = [player.kept(page, stamp, url) for stamp, url in zip(stamps, urls, strict=True)]
    assert replayed == [(200, BODY)] * 3
