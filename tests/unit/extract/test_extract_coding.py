"""Removing content codings: what comes out, and what a hostile payload may cost."""

from __future__ import annotations

import gzip
import random
import sys
import time
import zlib
from collections.abc import Callable

import brotli
import pytest
from tests.support.hostile_responses import bomb, brotli_bomb, zstd_bomb

from muniment.extract import coding, html
from muniment.extract.coding import decode
from muniment.extract.coding_stream import decoded

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LIMIT = 1 << 20


def test_members_one_after_another_are_one_text() -> None:
    members = [gzip.compress(b"%d" % n * 99, mtime=0) for n in range(50)]
    assert decode(b"".join(members), "gzip", LIMIT) == b"".join(b"%d" % n * 99 for n in range(50))


@pytest.mark.parametrize(("codings", "layers"), [("gzip", 1), ("gzip, gzip", 2)])
def test_no_more_comes_out_than_is_asked_for(codings: str, layers: int) -> None:
    assert len(decode(bomb(64 << 20, layers), codings, LIMIT)) == LIMIT


def test_no_more_is_inflated_than_is_asked_for() -> None:
    assert len(coding._inflate(bomb(64 << 20), 31, LIMIT)) == LIMIT


def test_a_deflate_bomb_is_bounded_too() -> None:
    assert len(decode(zlib.compress(b"\0" * (8 << 20)), "deflate", LIMIT)) == LIMIT


@pytest.mark.parametrize(("coding", "press"), [("br", brotli.compress), ("zstd", zstd.compress)])
def test_brotli_and_zstd_are_bounded_cut_and_damaged_like_the_others(coding: str, press: Callable[..., bytes]) -> None:
    text = random.Random(3).randbytes(150_000).hex().encode()
    data = press(text)
    assert decode(data, coding, LIMIT) == text
    assert decode(data, coding, 1000) == text[:1000]
    cut = decode(data[:-20_000], coding, LIMIT)
    assert cut
    assert text.startswith(cut)
    assert decode(b"nonsense" * 99, coding, LIMIT) == b""
    assert decode(b"", coding, LIMIT) == b""
    assert decode(gzip.compress(data), f"{coding}, gzip", LIMIT) == text


@pytest.mark.parametrize(("coding", "bomb_of"), [("br", brotli_bomb), ("zstd", zstd_bomb)])
def test_their_bombs_give_no_more_than_is_asked_for(coding: str, bomb_of: Callable[[int], bytes]) -> None:
    assert len(decode(bomb_of(1 << 30), coding, LIMIT)) == LIMIT


def test_frames_of_zstd_one_after_another_are_one_text_and_not_without_end() -> None:
    frames = [zstd.compress(b"%d " % n * 99) for n in range(500)]
    assert decode(b"".join(frames), "zstd", LIMIT) == b"".join(b"%d " % n * 99 for n in range(500))
    started = time.process_time()
    assert decode(zstd.compress(b"") * 500_000, "zstd", LIMIT) == b""
    assert time.process_time() - started < 2


def test_a_window_that_http_forbids_is_not_allocated() -> None:
    large = zstd.compress(random.Random(4).randbytes(64 << 20), options={zstd.CompressionParameter.window_log: 26})
    assert decode(large, "zstd", LIMIT) == b""


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


CODINGS = [
    ("utf-8", b"plain", b"plain"),
    ("none", b"plain", b"plain"),
    ("UTF-8, gzip", gzip.compress(b"packed"), b"packed"),
    ("gzip, binary", gzip.compress(b"packed"), b"packed"),
    ("x-compressed", gzip.compress(b"packed"), b"packed"),
    ("iso-8859-1", zstd.compress(b"packed"), b"packed"),
    ("text/html", zlib.compress(b"packed"), b"packed"),
    ("identity, , UTF8", b"x\x01 is no mark", b"x\x01 is no mark"),
    ("gzip", b"plain", b""),
    ("aws-chunked,br", brotli.compress(b"packed"), b"packed"),
]


@pytest.mark.parametrize(("coding", "payload", "text"), CODINGS)
def test_words_that_are_no_codings_are_passed_over(coding: str, payload: bytes, text: bytes) -> None:
    assert decode(payload, coding, LIMIT) == text
    assert b"".join(decoded(iter([b"", payload[:1], payload[1:]]), coding)) == text


def test_a_large_document_is_parsed_in_parts() -> None:
    parts = list(html._slices(b"<p>\0words" * (1 << 20)))
    assert len(parts) > 1
    assert max(map(len, parts)) <= html._MOST_AT_ONCE
