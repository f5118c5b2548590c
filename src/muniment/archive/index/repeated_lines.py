"""Lines of a list whose URL an earlier line has: their rows of the index are made when it is joined (decision 0165).

Whoever has the list writes these lines to `parts/`. While all rows go by on their way into the index, those of these
URLs are put aside, in a file for each partition of the keys, and so are the lines; then each line gets a copy of the
last row of its URL. Nothing of it is held in memory but the rows of one partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct, structs

from muniment.archive.durable import archive_error, rename, sync_path
from muniment.archive.index.journal import frame, frames
from muniment.model.capture import LISTED_AGAIN, Capture
from muniment.model.link import FoundAs
from muniment.model.url import url_key

__all__ = ["RepeatedLines", "Said", "again_path", "write_again", "writing_again"]

_A_PARTITION = 20_000
"""Lines whose URLs' rows are in memory at once."""
_MOST_PARTITIONS = 64
_PREFIX = 3
"""Bytes of a key that are enough to find it."""
_ROBOTS = FoundAs.ROBOTS.label

Said = tuple[bytes, str]
"""What a line says: the key of its URL, and its `meta_json`."""


class _Put(Struct, frozen=True, array_like=True):
    key: bytes
    row: Capture


_encode = msgspec.msgpack.Encoder().encode
_said = msgspec.msgpack.Decoder(tuple[bytes, str])
_put = msgspec.msgpack.Decoder(_Put)


def again_path(parts: Path) -> Path:
    """The file with these lines."""
    return parts / LISTED_AGAIN


def write_again(parts: Path, lines: Iterable[Said]) -> None:
    """Tell the next join of these lines, all that there are; nothing is written for none."""
    lines = iter(lines)
    if (first := next(lines, None)) is not None:
        with writing_again(parts) as write:
            write(chain([first], lines))


@contextmanager
def writing_again(parts: Path) -> Iterator[Callable[[Iterable[Said]], None]]:
    """The same, bit by bit: yields what takes the next lines, of which there are some."""
    path = again_path(parts)
    aside = path.with_name(path.name + ".tmp")
    try:
        parts.mkdir(exist_ok=True)
        with aside.open("wb") as file:
            yield lambda lines: file.writelines(frame(_encode(line)) for line in lines)
        sync_path(aside)
        rename(aside, path)
    except OSError as error:
        raise archive_error(error, path) from error


class RepeatedLines:
    """One join's view of them; a context, whose files are gone when it ends."""

    def __init__(self, parts: Path) -> None:
        self._path = again_path(parts)
        self._met = bytearray(1 << 8 * _PREFIX)
        count = 0
        for payload in self._payloads():
            self._met[int.from_bytes(_said.decode(payload)[0][:_PREFIX])] = 1
            count += 1
        self._partitions = min(max(1, count // _A_PARTITION), _MOST_PARTITIONS)
        self._files = ExitStack()
        self._rows: list[BinaryIO] = []
        self._lines: list[BinaryIO] = []

    def __enter__(self) -> RepeatedLines:
        """Make the files, and divide the lines among theirs."""
        try:
            for number in range(self._partitions):
                self._rows.append(self._made(f"rows-{number}"))
                self._lines.append(self._made(f"lines-{number}"))
            for payload in self._payloads():
                self._lines[self._partition(_said.decode(payload)[0])].write(frame(payload))
        except OSError:
            self.__exit__()
            raise
        return self

    def _made(self, name: str) -> BinaryIO:
        path = self._path.with_name(f"{self._path.name}-{name}.tmp")
        self._files.callback(path.unlink, missing_ok=True)
        return self._files.enter_context(path.open("wb+"))

    def __exit__(self, *_: object) -> None:
        """Remove them."""
        with suppress(OSError):  # what could not be written for want of room
            self._files.close()

    def concerns(self, url: str) -> bool:
        """Whether a row of a URL may be one to put aside."""
        return bool(self._met[int.from_bytes(url_key(url)[:_PREFIX])])

    def put_aside(self, row: Capture) -> None:
        """Keep a row that may be the one that a line gets a copy of."""
        if row.found_as != _ROBOTS:
            key = url_key(row.url)
            self._rows[self._partition(key)].write(frame(_encode(_Put(key, row))))

    def rows(self) -> Iterator[Capture]:
        """The row of each line whose URL has one."""
        for rows, lines in zip(self._rows, self._lines, strict=True):
            last = _last_rows(rows)
            lines.seek(0)
            for key, meta_json in map(_said.decode, frames(lines)):
                if (row := last.get(key)) is not None:
                    yield structs.replace(row, meta_json=meta_json, found_as=LISTED_AGAIN, seed_url=row.url)

    def _payloads(self) -> Iterator[bytes]:
        with self._path.open("rb") as file:
            yield from frames(file)

    def _partition(self, key: bytes) -> int:
        return int.from_bytes(key[:4]) * self._partitions >> 32


def _last_rows(file: BinaryIO) -> dict[bytes, Capture]:
    """Of each URL the row of its last try."""
    last: dict[bytes, Capture] = {}
    file.seek(0)
    for payload in frames(file):
        put = _put.decode(payload)
        row = last.get(put.key)
        if row is None or (row.attempt, row.started_at) <= (put.row.attempt, put.row.started_at):
            last[put.key] = put.row
    return last
