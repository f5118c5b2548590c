"""An answer that is handed on while it comes: the same reader and body as of any other, with somebody who follows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Protocol

from muniment.fetch.body_spool import BodyBuilder, MemoryBody, SpooledBody
from muniment.fetch.wire import ResponseReader
from muniment.http.chunked import Piece
from muniment.http.head import Head

__all__ = ["FollowedBody", "FollowedReader", "Follower", "SpooledBytes"]


class Follower(Protocol):
    """Gets an answer as it comes."""

    def begin(self, head: Head) -> None:
        """The final header block is complete."""

    def more(self, piece: Piece, stored: SpooledBytes | None) -> None:
        """More bytes of the body, as on the wire; from `stored` all so far can be read, once they are in a file."""


class SpooledBytes:
    """The bytes of a body in its temporary file, also while it grows, and when the body itself was closed."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._number = os.dup(file.fileno())
        self.growing = True
        self.length = 0

    def read(self, at: int, most: int) -> bytes:
        """Bytes from a place on."""
        if self.growing:
            self._file.flush()
        return os.pread(self._number, most, at)

    def close(self) -> None:
        """They are read no more."""
        if self._number >= 0:
            os.close(self._number)
            self._number = -1

    def __del__(self) -> None:
        self.close()


class FollowedBody(BodyBuilder):
    """A body that somebody gets while it comes."""

    def __init__(self, spool_dir: Path, follower: Follower) -> None:
        super().__init__(spool_dir)
        self._follower = follower
        self._stored: SpooledBytes | None = None

    def add(self, wire: Piece, payload: Sequence[Piece] | None) -> None:
        """Keep more bytes, then hand them on. Raises OSError when the temporary file cannot take them."""
        super().add(wire, payload)
        if self._spool is not None and self._stored is None:
            self._stored = SpooledBytes(self._spool.file)
        if self._stored is not None:
            self._stored.length = self.length
        if len(wire):
            self._follower.more(wire, self._stored)

    def finish(self) -> MemoryBody | SpooledBody:
        """The body as it is now. Raises OSError when the file cannot be completed."""
        body = super().finish()
        self._settle_stored()
        return body

    def discard(self) -> None:
        """Throw away what was kept."""
        self._settle_stored()
        super().discard()

    def _settle_stored(self) -> None:
        if self._stored is not None:
            self._stored.growing = False


class FollowedReader(ResponseReader):
    """A reader whose header block is handed on as soon as it is complete."""

    def __init__(self, sink: FollowedBody, follower: Follower, max_body: int | None, *, head_only: bool) -> None:
        super().__init__(sink, max_body, head_only=head_only)
        self._follower = follower

    def _take_head(self, raw: bytes) -> bool:
        final = super()._take_head(raw)
        if final and self.head is not None:
            self._follower.begin(self.head)
        return final
