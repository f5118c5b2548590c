"""WARC files as other tools write them: seconds for dates, requests before or after their answers, odd revisits."""

from __future__ import annotations

import base64
import gzip
import hashlib
import uuid
from pathlib import Path
from typing import Self

__all__ = ["Fields", "WarcWriter", "digest_of"]

Fields = tuple[tuple[str, str | bytes], ...]


def digest_of(body: bytes) -> str:
    """The payload digest in its usual spelling."""
    return "sha1:" + base64.b32encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode()


class WarcWriter:
    """Writes one file, a gzip member for each record."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(b"")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def exchange(
        self,
        url: str,
        body: bytes = b"",
        *,
        at: int = 0,
        status: int = 200,
        headers: Fields = (("Content-Type", "text/html"),),
        length: int | None = None,
        method: str = "GET",
        sent: bytes = b"",
        sent_as: str = "",
        asked_first: bool = False,
        digest: str = "",
        about: Fields = (),
    ) -> None:
        """An answer and its request; `length` is what the answer claims, -1 for nothing."""
        claimed = len(body) if length is None else length
        lines: Fields = (*headers, ("Content-Length", str(claimed))) if claimed >= 0 else headers
        block = _head(f"HTTP/1.1 {status} Said", lines) + body
        named = f"<urn:uuid:{uuid.uuid4()}>"
        typed: Fields = (("Content-Type", sent_as),) if sent_as else ()
        request = _head(f"{method} / HTTP/1.1", (("Host", "x"), *typed, ("Content-Length", str(len(sent))))) + sent
        told: Fields = (("WARC-Payload-Digest", digest or digest_of(body)), *about)
        records = [
            ("response", block, (("WARC-Record-ID", named), *told)),
            ("request", request, (("WARC-Concurrent-To", named),)),
        ]
        for kind, held, fields in reversed(records) if asked_first else records:
            self.record(kind, url, held, at=at, fields=fields)

    def revisit(
        self, url: str, *, at: int, head: bytes = b"", digest: str = "", of: str = "", of_at: int | None = None
    ) -> None:
        """A revisit with a head alone or without block, naming its original as given."""
        fields: list[tuple[str, str | bytes]] = [
            ("WARC-Profile", "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest")
        ]
        if digest:
            fields.append(("WARC-Payload-Digest", digest))
        if of:
            fields.append(("WARC-Refers-To-Target-URI", of))
        if of_at is not None:
            fields.append(("WARC-Refers-To-Date", _date(of_at)))
        self.record("revisit", url, head, at=at, fields=tuple(fields))

    def record(self, kind: str, url: str, block: bytes, *, at: int, fields: Fields = ()) -> None:
        """Any record."""
        given: list[tuple[str, str | bytes]] = [("WARC-Type", kind), ("WARC-Target-URI", url), ("WARC-Date", _date(at))]
        if not any(name == "WARC-Record-ID" for name, _ in fields):
            given.append(("WARC-Record-ID", f"<urn:uuid:{uuid.uuid4()}>"))
        if block or kind != "revisit":
            given.append(
                ("Content-Type", f"application/http; msgtype={'request' if kind == 'request' else 'response'}")
            )
        given += [*fields, ("Content-Length", str(len(block)))]
        with self.path.open("ab") as file:
            file.write(gzip.compress(_head("WARC/1.1", tuple(given)) + block + b"\r\n\r\n", mtime=0))


def _date(at: int) -> str:
    return f"2026-05-04T03:{at // 60:02d}:{at % 60:02d}Z"


def _head(first: str, fields: Fields) -> bytes:
    lines = [name.encode() + b": " + (value if isinstance(value, bytes) else value.encode()) for name, value in fields]
    return b"\r\n".join([first.encode(), *lines, b"", b""])
