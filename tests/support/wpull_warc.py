"""A WARC file in the form in which ArchiveBot's crawler writes it: old version, named gzip members, its own revisits.

The request goes before its response; a revisit names the first record by its id alone and calls itself truncated; logs
are resources with addresses of their own, and FTP is told by records that are not HTTP.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import uuid
from pathlib import Path

__all__ = ["DATE", "write_wpull_warc"]

DATE = "2016-05-04T03:02:01Z"
_LATER = "2016-05-04T03:02:09Z"
_REVISIT = "http://netpreserve.org/warc/1.0/revisit/identical-payload-digest"


def write_wpull_warc(path: Path) -> None:
    """Write one of `http://bot.test/`, its pages and what lies beside them."""
    warc = _WpullFile(path)
    chunked = b"1a\r\n<title>Bot</title><p id=text>\r\n9\r\nbot words\r\n0\r\n\r\n"
    first = warc.exchange("http://bot.test/", b"Transfer-Encoding: chunked\r\n", chunked)
    warc.exchange("http://bot.test/again", b"Transfer-Encoding: chunked\r\n", chunked, same_as=first)
    packed = gzip.compress(b"<p>packed words", mtime=0)
    warc.exchange("http://bot.test/packed", b"Content-Encoding: gzip\r\n", packed)
    warc.exchange("http://bot.test/a b?q=ä", b"", b"<p>odd words")
    warc.record("metadata", "text/x-ftp-control-conversation", b"* Opening\n> LIST\n", url="ftp://bot.test/")
    warc.record("resource", "application/octet-stream", b"file", url="ftp://bot.test/file")
    warc.record("resource", "text/plain", b"log\n", url="urn:X-wpull:log")


class _WpullFile:
    def __init__(self, path: Path) -> None:
        self._path = path
        path.write_bytes(b"")
        about = b"Software: Wpull/1.2.3 Python/3.4.3\r\nformat: WARC File Format 1.0\r\n\r\n"
        self.record("warcinfo", "application/warc-fields", about)

    def exchange(self, url: str, headers: bytes, body: bytes, same_as: str = "") -> str:
        """Request and response, or revisit; the id of the latter."""
        sent = self.record(
            "request", "application/http;msgtype=request", b"GET / HTTP/1.1\r\nHost: bot.test\r\n\r\n", url=url
        )
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n" + headers + b"\r\n"
        about = [("WARC-Concurrent-To", sent), ("WARC-Payload-Digest", _digest(body))]
        kind, block = "response", head + body
        if same_as:
            kind, block = "revisit", head
            about += [("WARC-Refers-To", same_as), ("WARC-Profile", _REVISIT), ("WARC-Truncated", "length")]
        answer = "application/http;msgtype=response"
        return self.record(kind, answer, block, url=url, about=about)

    def record(
        self, kind: str, content: str, block: bytes, *, url: str = "", about: list[tuple[str, str]] | None = None
    ) -> str:
        """Append one member; the id of its record."""
        identity = f"<urn:uuid:{uuid.uuid4()}>"
        place = [("WARC-Target-URI", url), ("WARC-IP-Address", "192.0.2.9")] if url else []
        fields = [
            ("WARC-Type", kind),
            ("Content-Type", content),
            ("WARC-Date", _LATER if "again" in url else DATE),
            ("WARC-Record-ID", identity),
            *place,
            *(about or []),
            ("WARC-Block-Digest", _digest(block)),
            ("Content-Length", str(len(block))),
        ]
        head = "".join(f"{name}: {value}\r\n" for name, value in fields)
        held = io.BytesIO()
        with gzip.GzipFile(self._path.name, "wb", fileobj=held) as member:  # the name goes into the member, as there
            member.write(b"WARC/1.0\r\n" + head.encode() + b"\r\n" + block + b"\r\n\r\n")
        with self._path.open("ab") as file:
            file.write(held.getvalue())
        return identity


def _digest(data: bytes) -> str:
    return f"sha1:{base64.b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()}"
