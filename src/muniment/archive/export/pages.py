"""The page lists of a WACZ: which captures are pages, their titles, and the lines, sorted by time in flat memory."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
from msgspec import Struct

from muniment.archive.export.cdxj import LineSorter
from muniment.archive.warc.inflate import DamageError
from muniment.archive.warc.stored import read_message
from muniment.clock import iso_us
from muniment.extract import coding
from muniment.extract.text import PageText, early_title, page_text

__all__ = ["HTML", "PackagePages", "PageRow", "is_page", "is_start", "list_head", "page_time", "words_of"]

HTML = re.compile(r"\s*(?:text/html|application/xhtml\+xml)\b", re.IGNORECASE)
"""The types of documents that are pages."""
_RESPONSE = re.compile(rb"^warc-type:[ \t]*response[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
_MOST_READ = 4 << 20
"""Bytes of a record that are read for the title and the text of its page."""
_MOST_EARLY = 16 << 10
"""Bytes of a record in which its title is looked for first: most titles are there."""
_MOST_TEXT = 1 << 20
"""Characters of a page's text."""


class PageRow(Struct, frozen=True, array_like=True):
    """A capture that is a page."""

    url: str
    started_at: int
    """Unix microseconds."""
    start: bool
    digest: str
    """Of the payload, hex."""
    revisit: bool


class _Listed(Struct, frozen=True, array_like=True):
    """A line of the lists on its way to its place."""

    row: PageRow
    words: PageText | None
    """None where an earlier record has them."""


_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(_Listed).decode
_decode_words = msgspec.json.Decoder(PageText).decode


def is_page(status: int, error: str, depth: int, found_as: str, content_type: str) -> bool:
    """Whether a row is a complete capture of an HTML page with status 200: neither a requisite nor robots.txt."""
    return status == 200 and not error and depth >= 0 and found_as != "robots" and bool(HTML.match(content_type))


def is_start(depth: int, found_as: str) -> bool:
    """Whether a row is that of a start URL, or of what one redirects to."""
    return found_as == "start" or (found_as == "redirect" and depth == 0)


def page_time(at_us: int) -> str:
    """RFC 3339, in whole seconds, UTC."""
    return f"{iso_us(at_us)[:19]}Z"


def words_of(pieces: Iterator[bytes], content_type: str, *, with_text: bool) -> PageText:
    """Title and text of the page in a response record, all of which is read. Raises DamageError."""
    record = b"".join(_up_to(pieces, _MOST_READ))
    for _ in pieces:  # to its end: a member is as sound as its checksum
        pass
    end = record.find(b"\r\n\r\n")
    header = record[:end]
    if end < 0 or not header.startswith(b"WARC/"):
        raise DamageError("not a whole record header")
    if not _RESPONSE.search(header):
        return PageText("", "")
    if not with_text:
        title = early_title(*_payload(record[end + 4 : end + _MOST_EARLY], content_type))
        if title is not None:
            return PageText(title, "")
    words = page_text(*_payload(record[end + 4 :], content_type), with_text=with_text)
    return PageText(words.title, words.text[:_MOST_TEXT])


def _payload(block: bytes, content_type: str) -> tuple[bytes, str]:
    """The document in a response, without its codings, and its type."""
    head, body = read_message(iter((block,)))
    if head is None:
        return b"", content_type
    plain = coding.decode(b"".join(body), head.field("content-encoding"), _MOST_READ)
    return plain, head.field("content-type") or content_type


def _up_to(pieces: Iterator[bytes], most: int) -> Iterator[bytes]:
    for piece in pieces:
        yield piece[:most]
        most -= len(piece)
        if most <= 0:
            return


class PackagePages:
    """Takes pages in any order and gives the lines of both lists. A revisit has the words of its original record."""

    def __init__(self, scratch: Path, wanted: set[bytes], *, with_text: bool) -> None:
        """`wanted` are the digests of revisits, for whose originals the words are kept in the file `scratch`."""
        self._stack, self._with_text = ExitStack(), with_text
        self._sorter = self._stack.enter_context(LineSorter())
        self._kept = self._stack.enter_context(scratch.open("x+b"))
        self._wanted, self._places = wanted, dict[bytes, tuple[int, int]]()

    def __enter__(self) -> PackagePages:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, row: PageRow, words: PageText | None) -> None:
        """Take in a page; without words for a revisit. Raises OSError."""
        digest = bytes.fromhex(row.digest)
        if words is not None and digest in self._wanted and digest not in self._places:
            data = _encode(words)
            self._places[digest] = self._kept.tell(), len(data)
            self._kept.write(data)
        line = _encode(_Listed(row, words)).decode()
        self._sorter.add(f"{row.started_at // 1_000_000:012d} {row.url}\t{not row.start:d} {line}\n")

    def lines(self) -> Iterator[tuple[PageRow, str, str]]:
        """Row, line and title; one of each URL and second. Once. Raises OSError."""
        before = ""
        for line in self._sorter.lines():
            key, _, rest = line.partition("\t")
            if key == before:
                continue
            before = key
            listed = _decode(rest[2:])
            words = listed.words or self._earlier(bytes.fromhex(listed.row.digest))
            title = words.title or listed.row.url
            yield listed.row, self._line(listed.row, title, words.text), title

    def _earlier(self, digest: bytes) -> PageText:
        if digest not in self._places:
            return PageText("", "")
        at, length = self._places[digest]
        self._kept.seek(at)
        return _decode_words(self._kept.read(length))

    def _line(self, row: PageRow, title: str, text: str) -> str:
        ts = page_time(row.started_at)
        known = hashlib.sha256(f"{ts} {row.url}".encode()).hexdigest()[:20]
        page = {"id": known, "url": row.url, "ts": ts, "title": title, **({"text": text} if self._with_text else {})}
        return f"{_encode(page).decode()}\n"


def list_head(name: str, title: str, *, with_text: bool) -> str:
    """The first line of a list."""
    return f"{_encode({'format': 'json-pages-1.0', 'id': name, 'title': title, 'hasText': with_text}).decode()}\n"
