"""The pattern for usual headers takes nothing that the grammar would not, and reads it the same."""

from hypothesis import example, given
from hypothesis import strategies as st

from muniment.archive.check.fast_path import usual_header
from muniment.archive.warc.digest_labels import sha1_label
from muniment.archive.warc.grammar import parse_header, violations
from muniment.archive.warc.records import ExchangeHeader, metadata_record, request_record, response_header

EVENT = ExchangeHeader(
    "https://a.example/way?q=%20&z=1",
    "2026-11-18T11:06:40.123456Z",
    "urn:uuid:01234567-89ab-4def-8123-456789abcdef",
    "WARC-IP-Address: ::1\r\nWARC-Protocol: http/1.1\r\nWARC-Protocol: tls/1.3\r\nWARC-Cipher-Suite: TLS_AES_128\r\n",
)
ONE, OTHER = "urn:uuid:11111111-89ab-4def-8123-456789abcdef", "urn:uuid:22222222-89ab-4def-8123-456789abcdef"
LABEL = sha1_label(bytes(20))
RESPONSE = response_header(EVENT, ONE, truncated="length", payload=LABEL, block=LABEL, length=77)
HEADERS = [
    RESPONSE,
    response_header(EVENT, ONE, truncated="", payload="", block=LABEL, length=0),
    request_record(EVENT, OTHER, ONE, b"GET", LABEL)[:-7],
    metadata_record(EVENT, OTHER, ONE, b"via")[:-7],
]


def judged(block):
    """Whether the pattern takes a header; if so, it is sound and says the same by the grammar."""
    usual = usual_header(block)
    if usual is None:
        return False
    header = parse_header(block[:-4])
    assert violations(header) == violations(header, own=False) == []
    assert header.get("warc-type") == (usual.response or usual.metadata or "request")
    assert header.get("warc-record-id") == usual.record_id
    assert header.get("warc-date") == usual.date
    assert header.get("warc-target-uri") == usual.target
    assert header.get("warc-warcinfo-id") == usual.warcinfo
    assert header.all("warc-concurrent-to") == [usual.concurrent_to] * bool(usual.concurrent_to)
    assert header.get("warc-refers-to") == usual.refers_to
    assert header.get("warc-ip-address") == usual.ip
    assert header.get("warc-truncated") == usual.truncated
    assert header.get("warc-payload-digest") == usual.payload_digest
    assert header.get("warc-block-digest") == usual.block_digest
    assert header.get("content-length") == usual.length
    assert usual.protocols == "".join(f"WARC-Protocol: {one}\r\n" for one in header.all("warc-protocol"))
    return True


def test_what_muniment_writes_is_usual():
    assert [judged(header) for header in HEADERS] == [True] * 4


@given(
    header=st.sampled_from(HEADERS),
    at=st.integers(0, 900),
    length=st.integers(0, 60),
    new=st.one_of(st.sampled_from([b"", b"\r\n", b"\n", b" ", b"<", "é".encode(), b"\xff", b":", b"0"]), st.binary()),
)
@example(header=HEADERS[2], at=19 + 2, length=7, new=b"response")
@example(header=HEADERS[3], at=19 + 2, length=8, new=b"request")
def test_a_changed_header_is_sound_or_not_usual(header, at, length, new):
    at %= len(header)
    judged(header[:at] + new + header[at + length :])


@given(header=st.sampled_from(HEADERS), data=st.data())
def test_lines_in_another_order_or_number_are_sound_or_not_usual(header, data):
    version, *lines = header[:-4].split(b"\r\n")
    lines = data.draw(st.one_of(st.permutations(lines), st.lists(st.sampled_from(lines), max_size=16)))
    judged(b"\r\n".join((version, *lines)) + b"\r\n\r\n")
