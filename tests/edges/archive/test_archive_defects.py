"""Each defect that a study of other checkers listed, built as a real WARC of another program, and found."""

import base64
import gzip
import hashlib

import pytest

from muniment.archive.check.directory import check

INFO, RESPONSE, REQUEST, REVISIT, METADATA = (f"<urn:uuid:0000000{n}-0000-4000-8000-000000000000>" for n in range(5))
IDS = {"warcinfo": INFO, "request": REQUEST, "revisit": REVISIT, "metadata": METADATA}
DATE = "2026-11-18T11:06:40Z"
URL = "http://a.example/"
HTTP = "application/http; msgtype=response"
PAYLOAD = b"<p>words</p>" * 20
BLOCK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(PAYLOAD), PAYLOAD)
PROFILE = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
CHUNKS = b"2\r\nhi\r\n0\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def sha1(data):
    return "sha1:" + base64.b32encode(hashlib.sha1(data).digest()).decode()


def record(kind, block=b"", *more, **changed):
    """One record; `changed` gives fields other values, None leaves them out."""
    fields = {
        "WARC-Type": kind,
        "WARC-Record-ID": IDS.get(kind, RESPONSE),
        "WARC-Date": DATE,
        "WARC-Target-URI": None if kind == "warcinfo" else URL,
        "WARC-Block-Digest": sha1(block),
        "Content-Type": "application/warc-fields" if kind in {"warcinfo", "metadata"} else HTTP,
        "Content-Length": str(len(block)),
    }
    fields |= {name.replace("_", "-"): value for name, value in changed.items()}
    lines = [f"{name}: {value}\r\n" for name, value in fields.items() if value is not None]
    head = "WARC/1.1\r\n" + "".join((*lines, *(f"{line}\r\n" for line in more)))
    return head.encode() + b"\r\n" + block + b"\r\n\r\n"


SOUND_INFO = record("warcinfo", b"software: other/1.0\r\n")
SOUND = record("response", BLOCK, WARC_Payload_Digest=sha1(PAYLOAD), WARC_Warcinfo_ID=INFO)
SENT = record("request", b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", WARC_Concurrent_To=RESPONSE)
AGAIN = {"WARC_Profile": PROFILE, "WARC_Payload_Digest": sha1(PAYLOAD), "WARC_Refers_To": RESPONSE}
HEAD = BLOCK[: -len(PAYLOAD)]


def response(block, payload, **changed):
    return record("response", block, WARC_Payload_Digest=sha1(payload), **changed)


def lf(block):
    return block.replace(b"\r\n", b"\n")


@pytest.fixture
def codes(tmp_path, check_every_way):
    """Write files into a directory of nobody's, and give the codes of the faults that are found."""

    def found(*files):
        for number, file in enumerate(files):
            data = file if isinstance(file, bytes) else b"".join(map(gzip.compress, file))
            (tmp_path / f"other-{number}.warc.gz").write_bytes(data)
        return {fault.code for fault in check_every_way(tmp_path).faults}

    return found


LONGER, SHORTER = str(len(BLOCK) + 1), str(len(BLOCK) - 1)
LATER = {"WARC_Concurrent_To": RESPONSE, "WARC_Date": "2026-11-18T11:06:41Z"}
EMPTY = {"WARC_Payload_Digest": sha1(b"")}
RESOURCE = {"WARC_Record_ID": METADATA, "Content_Type": "text/plain", **EMPTY}
DEFECTS = {
    "wrong block digest": (record("response", BLOCK, WARC_Block_Digest=sha1(b"")), {"block-digest"}),
    "wrong payload digest": (response(BLOCK, b""), {"payload-digest"}),
    "wrong digest of a revisit": (record("revisit", HEAD, **AGAIN, WARC_Block_Digest=sha1(b"")), {"block-digest"}),
    "longer": (record("response", BLOCK, Content_Length=LONGER), {"block-digest", "trailer", "http"}),
    "shorter": (record("response", BLOCK, Content_Length=SHORTER), {"block-digest", "trailer", "http"}),
    "no CRLFCRLF": (SOUND[:-4], {"trailer"}),
    "two records in a member": (SOUND + SENT, {"member"}),
    "LF-only HTTP headers": (response(lf(HEAD) + PAYLOAD, PAYLOAD), {"http"}),
    "missing WARC-Date": (record("response", BLOCK, WARC_Date=None), {"field"}),
    "missing Target-URI": (record("response", BLOCK, WARC_Target_URI=None), {"field"}),
    "revisit without profile": (record("revisit", HEAD, **AGAIN | {"WARC_Profile": None}), {"field"}),
    "two WARC-Block-Digest fields": (record("response", BLOCK, f"WARC-Block-Digest: {sha1(BLOCK)}"), {"header"}),
    "dangling Concurrent-To": (record("request", b"GET", WARC_Concurrent_To=METADATA), {"link"}),
    "dangling Refers-To": (record("revisit", HEAD, **AGAIN | {"WARC_Refers_To": METADATA}), {"link"}),
    "dangling Warcinfo-ID": (record("response", BLOCK, WARC_Warcinfo_ID=RESPONSE), {"link"}),
    "<URI>": (record("response", BLOCK, WARC_Target_URI=f"<{URL}>"), {"field"}),
    "HTTP Content-Length less than the body": (response(BLOCK + b"more", PAYLOAD + b"more"), {"http"}),
    "HTTP/2 200": (response(BLOCK.replace(b"HTTP/1.1", b"HTTP/2"), PAYLOAD), {"http"}),
    "interim 103 before 200": (response(b"HTTP/1.1 103 Early Hints\r\n\r\n" + BLOCK, BLOCK), {"http"}),
    "de-chunked, and its header kept": (response(CHUNKED + PAYLOAD, PAYLOAD), {"http"}),
    "digest of the chunks": (response(CHUNKED + CHUNKS, CHUNKS), {"payload-digest"}),
    "payload digest on metadata": (record("metadata", b"", **EMPTY), {"field"}),
    "two dates in one capture": (record("request", b"GET", **LATER), {"field"}),
    "payload digest of a resource": (record("resource", b"x", **RESOURCE), {"payload-digest"}),
    "payload digest of a request": (record("request", b"POST / HTTP/1.1\r\n\r\nx", **EMPTY), {"payload-digest"}),
    "another version": (SOUND.replace(b"WARC/1.1", b"WARC/2.0"), {"version"}),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_found_and_nothing_else(codes, name):
    spoilt, expected = DEFECTS[name]
    sound = () if b"WARC-Type: response" in spoilt else (SOUND,)
    assert codes((SOUND_INFO, *sound, spoilt)) == expected


def test_a_duplicate_id_in_one_file_or_in_two(codes, tmp_path):
    assert codes((SOUND_INFO, SOUND, SOUND)) == {"id"}
    other = SOUND_INFO.replace(INFO.encode(), METADATA.encode())
    assert codes((SOUND_INFO, SOUND), (other, SOUND)) == {"id"}
    [fault] = check(tmp_path).faults
    assert (fault.file, fault.offset) == ("other-1.warc.gz", len(gzip.compress(other)))
    assert f"other-0.warc.gz:{len(gzip.compress(SOUND_INFO))}" in fault.text


def test_a_revisit_of_a_record_in_another_file(codes):
    other = SOUND_INFO.replace(INFO.encode(), METADATA.encode())
    assert (
        codes((SOUND_INFO, record("revisit", HEAD, **AGAIN)), (other, SOUND.replace(INFO.encode(), METADATA.encode())))
        == set()
    )


def test_a_revisit_of_another_archive_says_where(codes):
    where = {"WARC_Refers_To": METADATA, "WARC_Refers_To_Target_URI": URL, "WARC_Refers_To_Date": DATE}
    assert codes((SOUND_INFO, record("revisit", HEAD, **AGAIN | where))) == set()


def test_warcinfo_with_target_and_none_at_all(codes):
    assert codes((record("warcinfo", b"a: b\r\n", WARC_Target_URI=URL),)) == {"field"}
    assert codes((SOUND.replace(f"WARC-Warcinfo-ID: {INFO}\r\n".encode(), b""),)) == {"warcinfo"}
    assert codes(b"") == {"warcinfo"}


def test_whole_file_gzip(codes):
    assert codes(gzip.compress(SOUND_INFO + SOUND)) == {"member"}


@pytest.mark.parametrize("cut", [1, 8, 60])
def test_a_file_cut_in_a_record(codes, cut):
    whole = gzip.compress(SOUND_INFO) + gzip.compress(SOUND)
    assert codes(whole[:-cut]) == {"gzip"}


def test_another_programs_files_are_sound(codes):
    old = [one.replace(b"WARC/1.1", b"WARC/1.0") for one in (SOUND_INFO, SOUND, SENT)]
    assert codes((SOUND_INFO, SOUND, SENT, record("revisit", HEAD, **AGAIN))) == set()
    assert codes(old) == set()


def test_what_follows_damage_is_read(codes, tmp_path):
    first, broken, last = map(gzip.compress, (SOUND_INFO, SOUND, record("request", b"GET")))
    broken = broken[:60] + bytes(20) + broken[80:]
    assert codes(first + broken + last) == {"gzip"}
    assert check(tmp_path).records == 2
