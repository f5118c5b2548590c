"""Records as bytes: fields, digests, and values that try to inject lines."""

import base64
import hashlib

import msgspec
import pytest
from msgspec import structs
from tests.support.exchanges import exchange, page_context

from muniment.archive.warc import records
from muniment.archive.warc.digest_labels import sha1_label, sha1_labels, sha1_of
from muniment.archive.warc.grammar import parse_header, violations
from muniment.archive.warc.warcinfo import WarcInfo, warcinfo_record
from muniment.clock import new_record_urn, record_urn
from muniment.model.capture import EarlierCapture

INFO = new_record_urn()
LABEL = sha1_label(bytes(20))
URN = new_record_urn()
EVIL = "x\r\nWARC-Type: evil\r\n\r\n\x00\x85\u2028y"


def parts(record: bytes):
    head, _, block = record.partition(b"\r\n\r\n")
    header = parse_header(head)
    assert list(violations(header)) == []
    assert block.endswith(b"\r\n\r\n")
    assert len(block) - 4 == int(header.get("content-length"))
    return header, block[:-4]


def test_label_is_unpadded_upper_base32():
    for n in range(50):
        digest = hashlib.sha1(bytes([n])).digest()
        assert sha1_label(digest) == "sha1:" + base64.b32encode(digest).decode()
    assert sha1_label(bytes(20)) == "sha1:" + "A" * 32


def test_labels_of_many_are_those_of_each():
    digests = [hashlib.sha1(bytes([n])).digest() for n in range(50)] + [bytes(20), b"\xff" * 20] * 2
    for count in range(len(digests) + 1):
        labels = [f"sha1:{base64.b32encode(digest).decode()}" for digest in digests[:count]]
        assert sha1_labels(digests[:count]) == labels


def test_sha1_of_pieces():
    assert sha1_of(b"ab", [b"c", b"d"]) == hashlib.sha1(b"abcd").digest()


def test_warcinfo_says_what_is_known_and_leaves_out_the_rest():
    info = WarcInfo(software="muniment/1", user_agent="m/1 (+https://x.example/)", robots="obey")
    header, block = parts(warcinfo_record(info, "a.warc.gz", URN, 1_000_000))
    assert header.get("warc-filename") == "a.warc.gz"
    assert header.get("warc-date") == "1970-01-01T00:00:01.000000Z"
    names = [line.split(b": ")[0] for line in block.splitlines()]
    assert names == [b"software", b"format", b"conformsTo", b"http-header-user-agent", b"robots"]


def test_response_fields_come_in_one_order():
    event = records.ExchangeHeader.of(exchange(ip="2001:db8::1"), INFO)
    record = records.response_header(event, URN, truncated="time", payload=LABEL, block=LABEL, length=0)
    header, _ = parts(record + records.RECORD_END)
    assert [name for name, _ in header.fields] == [
        "warc-type", "warc-record-id", "warc-date", "warc-target-uri", "warc-warcinfo-id", "warc-ip-address",
        "warc-protocol", "warc-protocol", "warc-cipher-suite", "warc-truncated", "warc-payload-digest",
        "warc-block-digest", "content-type", "content-length",
    ]  # fmt: skip
    assert header.all("warc-protocol") == ["http/1.1", "tls/1.3"]
    assert header.get("warc-target-uri") == "https://site.example/"


def test_plain_http_and_unknown_address_leave_no_fields():
    event = records.ExchangeHeader.of(exchange(ip="", tls="", status_line="HTTP/1.0 200 OK"), INFO)
    assert event.connection == "WARC-Protocol: http/1.0\r\n"


def test_revisit_refers_to_the_earlier_capture():
    earlier = EarlierCapture("https://site.example/first", 5_000_001, bytes(range(16)))
    x = exchange()
    event, length = records.ExchangeHeader.of(x, INFO), len(x.head)
    record = records.revisit_header(event, URN, earlier, payload=LABEL, block=LABEL, length=length)
    header, block = parts(record + x.head + records.RECORD_END)
    assert block == x.head
    assert header.get("warc-profile").endswith("/1.1/revisit/identical-payload-digest")
    assert header.get("warc-refers-to") == f"<{record_urn(earlier.record_id)}>"
    assert header.get("warc-refers-to-target-uri") == "https://site.example/first"
    assert header.get("warc-refers-to-date") == "1970-01-01T00:00:05.000001Z"
    assert header.get("warc-truncated") == "length"


@pytest.mark.parametrize("captured_at", [None, 5_000_001])
def test_revisits_name_only_what_is_known(captured_at):
    x = exchange()
    earlier = EarlierCapture("https://site.example/", captured_at)
    event, length = records.ExchangeHeader.of(x, INFO), len(x.head)
    for label, profile in ((LABEL, "identical-payload-digest"), ("", "server-not-modified")):
        # a 304 has no digest to be found by: its URL is named always
        known = ["warc-refers-to-target-uri"] * bool(captured_at or not label) + ["warc-refers-to-date"] * bool(
            captured_at
        )
        record = records.revisit_header(event, URN, earlier, payload=label, block=LABEL, length=length)
        header, _ = parts(record + x.head + records.RECORD_END)
        assert header.get("warc-profile") == f"http://netpreserve.org/warc/1.1/revisit/{profile}"
        assert [name for name, _ in header.fields if name.startswith("warc-refers-to")] == known
        payload = [name for name, _ in header.fields if name in {"warc-payload-digest", "warc-truncated"}]
        assert bool(payload) is bool(label)


def test_metadata_names_links_and_leaves_out_an_unknown_depth():
    links = (("https://a.example/", "a"), ("https://b.example/x y", "img"))
    block = records.metadata_block(page_context(links, via="https://via.example/", depth=3), 34)
    assert block == (
        b"via: https://via.example/\r\nhopsFromSeed: 3\r\nfetchTimeMs: 34\r\n"
        b"outlink: https://a.example/ a\r\noutlink: https://b.example/x y img\r\n"
    )
    assert records.metadata_block(page_context(depth=-1), 1) == b"fetchTimeMs: 1\r\n"


@pytest.mark.parametrize("field", ["via", "link", "label"])
def test_metadata_values_cannot_inject_lines(field):
    context = page_context((("u" + EVIL * (field == "link"), "a" + EVIL * (field == "label")),))
    if field == "via":
        context = msgspec.structs.replace(context, via=EVIL)
    lines = records.metadata_block(context, 1).split(b"\r\n")
    assert {line.split(b":")[0] for line in lines if line} <= {b"via", b"hopsFromSeed", b"fetchTimeMs", b"outlink"}


def test_header_values_cannot_inject_lines():
    x = exchange(url=f"https://a.example/{EVIL}", ip=EVIL, tls=EVIL, truncated="time")
    event = records.ExchangeHeader.of(x, INFO)
    earlier = EarlierCapture("https://b.example/" + EVIL, 1, bytes(16))
    made = [
        records.response_header(event, URN, truncated=EVIL, payload="", block=LABEL, length=0),
        records.revisit_header(event, URN, earlier, payload=LABEL, block=LABEL, length=len(x.head)),
        records.request_record(event, URN, URN, b"GET", LABEL),
        records.metadata_record(event, URN, URN, b""),
        warcinfo_record(WarcInfo(software=EVIL, command=EVIL), EVIL, URN, 1),
    ]
    for record in made:
        head = record.partition(b"\r\n\r\n")[0]
        assert head.count(b"WARC-Type: ") == 1 + head.count(b"  WARC-Type: evil")
        assert b"\r\nWARC-Type: evil" not in head
        assert not parse_header(head).bad_lines


def test_foreign_characters_are_utf8_and_lone_surrogates_do_not_fail():
    event = records.ExchangeHeader.of(exchange(url="https://a.example/ä\udcff"), INFO)
    assert "WARC-Target-URI: https://a.example/ä?".encode() in records.request_record(event, URN, URN, b"", LABEL)


def test_a_line_of_a_list_has_nothing_to_tell_beside_its_row():
    line = structs.replace(page_context(), seed_url="https://site.example/")
    assert records.metadata_block(line, 1) == b""
    assert records.metadata_block(structs.replace(line, via="https://site.example/"), 1).startswith(b"via: https:")
