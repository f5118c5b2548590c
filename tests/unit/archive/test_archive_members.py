"""Gzip members: deflated and stored, whole and streamed."""

import gzip
import os
import zlib

import pytest

from muniment.archive.warc import members

TEXT = b"<p>a text that deflates</p>\n" * 5000
NOISE = os.urandom(200_000)


@pytest.mark.parametrize("data", [b"", b"x", TEXT, NOISE, b"z" * 65_535, b"z" * 65_536])
def test_members_hold_what_was_given(data):
    assert gzip.decompress(members.deflate_member(data)) == data
    assert gzip.decompress(members.store_member([data[:10], data[10:]])) == data


def test_stored_members_cost_five_bytes_a_block():
    assert len(members.store_member([NOISE])) - len(NOISE) <= 10 + 5 * 5 + 8


@pytest.mark.parametrize("stream", [members.stream_deflated, members.stream_stored])
def test_streams_are_one_member(stream):
    out: list[bytes] = []
    stream([TEXT, b"", NOISE, b"q" * (3 << 20)], out.append)
    inflater = zlib.decompressobj(31)
    assert inflater.decompress(b"".join(out)) == TEXT + NOISE + b"q" * (3 << 20)
    assert inflater.eof
    assert not inflater.unused_data


@pytest.mark.parametrize(
    ("kind", "coding", "length", "stored"),
    [
        ("text/html", "", 5000, False),
        ("text/html; charset=utf-8", "gzip", 5000, True),
        ("text/html", "identity", 5000, False),
        ("text/html", "br", 5000, True),
        ("text/html", "deflate, ZSTD ", 5000, True),
        ("image/png", "", 5000, True),
        ("IMAGE/PNG; x=y", "", 5000, True),
        ("image/png", "", 50, False),
        ("image/svg+xml", "", 5000, False),
        ("image/svg+xml", "gzip", 5000, True),
        ("application/zip", "", 5000, True),
        ("video/mp4", "", 5000, True),
        ("audio/ogg", "", 5000, True),
        ("audio/wav", "", 5000, False),
        ("", "", 5000, False),
    ],
)
def test_what_is_stored(kind, coding, length, stored):
    assert members.stores(kind, coding, length) is stored
