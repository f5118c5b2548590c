"""Removing content codings: what comes out, and what a hostile payload may cost."""

from __future__ import annotations

import gzip
import time
import zlib

import pytest

from muniment.extract import coding, html
from muniment.extract.coding import decode
from muniment.testing.hostile_responses import bomb

LIMIT = 1 << 20


def test_members_one_after_another_are_one_text() -> None:
    members = [gzip.compress(b"%d" % n * 99, mtime=0) for n in range(50)]
    assert decode(b"".join(members), "gzip", LIMIT) == b"".join(b"%d" % n * 99 for n in range(50))


@pytest.mark.parametrize(("codings", "data"), [("gzip", bomb(64 << 20)), ("gzip, gzip", bomb(64 << 20, 2))])
def test_no_more_comes_out_than_is_asked_for(codings: str, data: bytes) -> None:
    assert len(decode(data, codings, LIMIT)) == LIMIT


def test_no_more_is_inflated_than_is_asked_for() -> None:
    assert len(coding._inflate(bomb(64 << 20), 31, LIMIT)) == LIMIT


def test_a_deflate_bomb_is_bounded_too() -> None:
    assert len(decode(zlib.compress(b"\0" * (8 << 20)), "deflate", LIMIT)) == LIMIT


def test_empty_members_take_no_time() -> None:
    data = gzip.compress(b"", mtime=0) * 500_000
    started = time.process_time()
    assert decode(data, "gzip", LIMIT) == b""
    assert time.process_time() - started < 2


def test_more_codings_than_a_few_are_not_removed() -> None:
    data = b"hi"
    for _ in range(4):
        data = gzip.compress(data, mtime=0)
    assert decode(data, "gzip, gzip, gzip, gzip", LIMIT) == b""
    assert decode(gzip.decompress(data), "gzip, identity, gzip, gzip", LIMIT) == b"hi"


def test_a_large_document_is_parsed_in_parts() -> None:
    parts = list(html._slices(b"<p>\0words" * (1 << 20)))
    assert len(parts) > 1
    assert max(map(len, parts)) <= html._MOST_AT_ONCE
    assert not any(b"\0" in part for part in parts)
