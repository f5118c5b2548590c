"""WARC files of other tools: methods and bodies by requests beside their answers, lengths, digests in any spelling."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from tests.support.warc_files import WarcWriter, digest_of

from muniment.archive.reading.containers import containers_of
from muniment.archive.reading.foreign import FoundCapture, captures_in
from muniment.archive.warc.digest_labels import digest_key

FORM = "application/x-www-form-urlencoded"
U = "http://x.test/"


def found(path: Path) -> list[FoundCapture]:
    (container,) = containers_of(path, path.parent)
    return sorted(captures_in(container), key=lambda one: one.offset)


@pytest.fixture
def warc(tmp_path: Path) -> WarcWriter:
    return WarcWriter(tmp_path / "x.warc.gz")


@pytest.mark.parametrize("first", [False, True])
def test_a_request_before_or_after_its_answer_says_the_method(warc: WarcWriter, first: bool) -> None:
    for method, sent in (("POST", b"a=1"), ("PATCH", b"a=2"), ("HEAD", b""), ("GET", b"a=3"), ("DELETE", b"a=4")):
        warc.exchange(U, b"", method=method, sent=sent, sent_as=FORM, asked_first=first, length=9)
    assert [(one.method, one.body) for one in found(warc.path)] == [
        ("POST", "a=1"), ("PATCH", "a=2"), ("HEAD", None), ("GET", None), ("DELETE", None),
    ]  # fmt: skip
    assert [one.whole for one in found(warc.path)] == [False, False, True, False, False], "HEAD leaves its body out"


def test_without_ids_they_are_known_by_url_and_date(warc: WarcWriter) -> None:
    block = b"HTTP/1.1 200 OK\r\n\r\nbody"
    for at, method in enumerate((b"HEAD", b"POST")):
        warc.record("request", U, method + b" / HTTP/1.1\r\n\r\n", at=at)
        warc.record("response", U, block, at=at)
    warc.record("response", U, block, at=9)
    assert [(one.method, one.length) for one in found(warc.path)] == [("HEAD", 4), ("POST", 4), ("GET", 4)]


def test_many_answers_before_their_requests_are_all_there(warc: WarcWriter) -> None:
    for number in range(200):
        warc.record("response", f"{U}{number}", b"HTTP/1.1 200 OK\r\n\r\n", at=0)
    assert [one.url for one in found(warc.path)] == [f"{U}{number}" for number in range(200)]


@pytest.mark.parametrize(
    ("headers", "body", "length", "whole"),
    [
        ((("Content-Length", "4"),), b"body", 4, True),
        ((("Content-Length", "5"),), b"body", 4, False),
        ((("Content-Length", "3"),), b"body", 4, True),
        ((), b"body", 4, True),
        ((("Transfer-Encoding", "chunked"),), b"4\r\nbody\r\n0\r\n\r\n", 4, True),
        ((("Transfer-Encoding", "chunked"),), b"4\r\nbody\r\n", 4, False),
        ((("Transfer-Encoding", "chunked"),), b"9\r\nbody", 4, False),
        ((("Transfer-Encoding", "chunked"),), b"<p>no chunk", 11, True),
    ],
)
def test_the_length_of_a_payload_and_what_it_lacks(
    warc: WarcWriter, headers: tuple[tuple[str, str], ...], body: bytes, length: int, whole: bool
) -> None:
    warc.exchange(U, body, headers=headers, length=-1)
    (one,) = found(warc.path)
    assert (one.length, one.whole) == (length, whole)


def test_what_says_that_it_was_cut_is_not_whole(warc: WarcWriter) -> None:
    warc.exchange(U, b"body", about=(("WARC-Truncated", "length"),))
    warc.revisit(U, at=1)
    assert [(one.whole, one.status) for one in found(warc.path)] == [(False, 200), (True, 0)]


DIGEST = hashlib.sha1(b"x", usedforsecurity=False).hexdigest()
WIDE = hashlib.sha256(b"x").hexdigest()


@pytest.mark.parametrize(
    ("label", "key"),
    [
        (digest_of(b"x"), DIGEST), (digest_of(b"x").lower(), DIGEST), (f"sha1:{DIGEST}", DIGEST),
        (f"SHA-1:{DIGEST.upper()}", DIGEST), (DIGEST, DIGEST), (f"sha256:{WIDE}", f"sha256:{WIDE}"),
        (f"SHA-256:{WIDE.upper()}", f"sha256:{WIDE}"), ("sha1:short", "sha1:short"), ("odd:thing", "odd:thing"),
        ("", ""), ("md5:9DD4E461268C8034F5C8564E155C67A6", "md5:9dd4e461268c8034f5c8564e155c67a6"),
    ],
)  # fmt: skip
def test_digests_have_one_spelling(label: str, key: str) -> None:
    assert digest_key(label) == key
