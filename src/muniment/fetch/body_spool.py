"""The storage of message bodies: in memory when small, in an unnamed temporary file when not."""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from itertools import chain, islice
from pathlib import Path
from typing import IO

from muniment.fetch.held_head import HeldHead
from muniment.fetch.memory_use import SMALL, MemoryUse
from muniment.http.chunked import Piece, decode

__all__ = [
    "EMPTY_BODY",
    "PROCESS_USE",
    "SMALL_BODY",
    "SPOOL_AT",
    "BodyBuilder",
    "MemoryBody",
    "MemoryUse",
    "SpooledBody",
]

SPOOL_AT = 1 << 20
"""Bytes above which a body goes to a file."""
SMALL_BODY = SMALL
"""Bytes above which it does when memory is scarce."""

_READ = 1 << 18
# Pieces below this are gathered, so that a server that dribbles does not make a list of millions of bytes objects.
_DRIBBLE = 2048
_GATHERED = 64 << 10
_MOST_PIECES = 1 << 20
"""Chunks from which a payload is put together: a server may send one for each byte, and each takes its microseconds."""


PROCESS_USE = MemoryUse()
"""What all bodies and header blocks of this process take."""

LARGE_HEAD = 16 << 10
"""Bytes above which a complete header block counts as long as its body."""
_HEAD_TIMES, _FIELD = 4, 200
"""A complete header block is in memory as it came, as fields, and in what is made of them."""


def _sha1(pieces: Iterable[Piece]) -> bytes:
    digest = hashlib.sha1(usedforsecurity=False)
    for piece in pieces:
        digest.update(piece)
    return digest.digest()


def _first(pieces: Iterable[Piece], limit: int) -> bytes:
    taken = islice(pieces, _MOST_PIECES)
    first = next(taken, b"")
    second = next(taken, None) if len(first) < limit else None
    if second is None:
        # one piece of `bytes` is handed out as it is
        return bytes(first[:limit])
    whole = BytesIO()
    whole.write(first)
    for piece in chain((second,), taken):
        whole.write(piece)
        if whole.tell() >= limit:
            whole.truncate(limit)
            break
    return whole.getvalue()


class _HeadWeight:
    """What a large header block takes beside its body."""

    __slots__ = ("_size", "_use")

    def __init__(self, size: int, use: MemoryUse) -> None:
        self._size, self._use = size, use
        use.add_head(self._size)

    def drop(self) -> None:
        if self._size:
            self._use.add_head(-self._size)
            self._size = 0


class MemoryBody:
    """A body in memory, once: in the pieces in which it came."""

    __slots__ = ("_chunked", "_head", "_pieces", "_sha1", "_use", "block_sha1", "length", "payload_length")
    in_memory = True

    def __init__(
        self,
        pieces: list[Piece],
        length: int,
        payload_length: int,
        *,
        chunked: bool,
        use: MemoryUse,
        head: _HeadWeight | None = None,
    ) -> None:
        self._pieces = pieces
        self._chunked = chunked
        self._sha1: bytes | None = None
        self.block_sha1 = b""
        self._use: MemoryUse | None = use
        self._head = head
        self.length = length
        self.payload_length = payload_length

    @property
    def payload_sha1(self) -> bytes:
        """SHA-1 of the payload, 20 bytes, computed when first asked for."""
        if self._sha1 is None:
            self._sha1 = _sha1(decode(self._pieces) if self._chunked else self._pieces)
        return self._sha1

    def know(self, payload_sha1: bytes, block_sha1: bytes) -> None:
        """Take digests in from who computed them: the payload's is not computed again."""
        self._sha1, self.block_sha1 = payload_sha1, block_sha1

    def wire(self) -> Iterator[Piece]:
        """The bytes as received, in pieces."""
        return iter(self._pieces)

    def payload(self, limit: int) -> bytes:
        """At most `limit` bytes of the payload."""
        return _first(decode(self._pieces) if self._chunked else self._pieces, limit)

    def close(self) -> None:
        """Give the bytes back to the memory budget; the body stays readable."""
        if self._use:
            self._use.used -= self.length
            self._use = None
            if self._head is not None:
                self._head.drop()

    def __del__(self) -> None:
        self.close()


class SpooledBody:
    """A body in an unnamed temporary file, which is gone with the process."""

    __slots__ = ("_chunked", "_file", "_head", "block_sha1", "length", "payload_length", "payload_sha1")
    in_memory = False

    def __init__(
        self,
        file: IO[bytes],
        length: int,
        payload_length: int,
        payload_sha1: bytes,
        *,
        chunked: bool,
        head: _HeadWeight | None = None,
    ) -> None:
        self._file = file
        self._head = head
        self._chunked = chunked
        self.length = length
        self.payload_length = payload_length
        self.payload_sha1 = payload_sha1
        self.block_sha1 = b""

    def know(self, payload_sha1: bytes, block_sha1: bytes) -> None:
        """Take digests in from who computed them."""
        self.payload_sha1, self.block_sha1 = payload_sha1, block_sha1

    def wire(self) -> Iterator[bytes]:
        """The bytes as received, in pieces of 256 KB. Raises OSError when the file cannot be read."""
        at = 0
        while at < self.length:
            self._file.seek(at)
            piece = self._file.read(min(_READ, self.length - at))
            if not piece:
                raise OSError("a spooled body is shorter than what was written to it")
            yield piece
            at += len(piece)

    def payload(self, limit: int) -> bytes:
        """At most `limit` bytes of the payload."""
        return _first(decode(self.wire()) if self._chunked else self.wire(), limit)

    def close(self) -> None:
        """Give the file's room back."""
        self._file.close()
        if self._head is not None:
            self._head.drop()

    def __del__(self) -> None:
        self.close()


class BodyBuilder:
    """Takes a body as it comes (a `wire.Sink`) and ends as a `MemoryBody` or a `SpooledBody`."""

    # Defaults of the class: a builder is made for each response, and most never set these.
    _chunked = False
    _gathered: bytearray | None = None
    _head: _HeadWeight | None = None
    _spool: _Spool | None = None
    length = 0
    payload_length = 0

    def __init__(self, spool_dir: Path, use: MemoryUse = PROCESS_USE) -> None:
        self._spool_dir = spool_dir
        self._use = use
        self._pieces: list[Piece] = []

    def hold_head(self) -> HeldHead:
        """A place for a header block that is not complete yet."""
        return HeldHead(self._spool_dir, self._use)

    def keep_head(self, length: int, fields: int) -> None:
        """A header block is complete: when it is large, it counts as long as its body."""
        if length > LARGE_HEAD:
            self._head = _HeadWeight(length * _HEAD_TIMES + fields * _FIELD, self._use)

    def begin_chunked(self) -> None:
        """The payload differs from the wire bytes."""
        self._chunked = True

    def add(self, wire: Piece, payload: Sequence[Piece] | None) -> None:
        """Keep more bytes. Raises OSError when the temporary file cannot take them."""
        size = len(wire)
        self.length += size
        self.payload_length += size if payload is None else sum(map(len, payload))
        if self._spool:
            self._spool.write(wire, (wire,) if payload is None else payload)
            return
        self._use.used += size
        # the first piece as it is: a small page has no other
        if size >= _DRIBBLE or not (self._pieces or self._gathered or not size):
            if self._gathered:
                self._settle()
            self._pieces.append(wire)
        elif size:
            self._gather(wire)
        if self.length > SMALL_BODY and (self.length > SPOOL_AT or self._use.scarce):
            self._to_file()

    def finish(self) -> MemoryBody | SpooledBody:
        """The body as it is now; nothing may be added after it. Raises OSError when the file cannot be completed."""
        if not self._spool:
            if self._gathered:
                self._settle()
            return MemoryBody(
                self._pieces, self.length, self.payload_length, chunked=self._chunked, use=self._use, head=self._head
            )
        file = self._spool.file
        file.flush()
        digest = self._spool.digest.digest()
        return SpooledBody(file, self.length, self.payload_length, digest, chunked=self._chunked, head=self._head)

    def discard(self) -> None:
        """Throw away what was kept, in place of `finish`."""
        if self._head is not None:
            self._head.drop()
        if self._spool:
            self._spool.close()
        else:
            self._use.used -= self.length

    def _gather(self, wire: Piece) -> None:
        if self._gathered is None:
            self._gathered = bytearray()
        self._gathered += wire
        if len(self._gathered) >= _GATHERED:
            self._settle()

    def _settle(self) -> None:
        if self._gathered:
            self._pieces.append(bytes(self._gathered))
            self._gathered = None

    def _to_file(self) -> None:
        self._settle()
        spool = _Spool(self._spool_dir)
        # From here on `discard` has no memory to give back, even when the file takes nothing.
        self._use.used -= self.length
        self._spool = spool
        for piece in self._pieces:
            spool.write(piece, ())
        for part in decode(self._pieces, ended=False) if self._chunked else self._pieces:
            spool.digest.update(part)
        self._pieces = []


class _Spool:
    """A temporary file and the payload digest that grows with it."""

    __slots__ = ("digest", "file")

    def __init__(self, folder: Path) -> None:
        self.digest = hashlib.sha1(usedforsecurity=False)
        self.file: IO[bytes] = tempfile.TemporaryFile(dir=folder, buffering=_READ)  # noqa: SIM115 - lives with the body

    def write(self, wire: Piece, payload: Sequence[Piece]) -> None:
        self.file.write(wire)
        for part in payload:
            self.digest.update(part)

    def close(self) -> None:
        # Closing writes what is buffered, which fails again on a full disk; the file is thrown away in any case.
        with contextlib.suppress(OSError):
            self.file.close()


EMPTY_BODY = MemoryBody([], 0, 0, chunked=False, use=PROCESS_USE)
"""The body of an exchange that has none; one for all."""
