"""The rows of one source of captures: in a file that is mapped into memory, with an index of their keys.

A database takes milliseconds to plan what an index answers in microseconds, and pages ask for many captures.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left
from itertools import count, takewhile
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import structs

from muniment.archive.durable import scratch_error
from muniment.replay.captures.url_keys import BUSTERS, kept_arguments
from muniment.replay.choice import Entry

__all__ = ["ENTRY_FIELDS", "KEY_MACROS", "CaptureRows", "key_of", "loose_url_key", "url_key"]

ENTRY_FIELDS = [field.name for field in structs.fields(Entry) if field.name != "part"]
"""Fields of an entry that have a column of their name."""
_MOST = 2_000
"""Captures of a URL among which one is chosen: the nearest."""
KEY_MACROS = (
    "CREATE MACRO rest(url) AS substr(url, instr(url, '://') + 3)",
    "CREATE MACRO plain(text) AS CASE WHEN contains(text, '%') "
    "THEN coalesce(TRY(url_decode(text)), upper(text)) ELSE text END",
    "CREATE MACRO key_of(text) AS CAST('0x' || left(md5(text), 16) AS UBIGINT)",
    "CREATE MACRO kept(query) AS array_to_string(list_sort(list_filter(string_split(query, '&'), "
    f"lambda one: one <> '' AND NOT regexp_full_match(one, '{BUSTERS}', 'i'))), '&')",
    "CREATE MACRO url_key(url) AS key_of(plain(rest(url)))",
    "CREATE MACRO path_of(url) AS plain(split_part(rest(url), '?', 1))",
    "CREATE MACRO loose_url_key(url) AS key_of(CASE WHEN contains(url, '?') "
    "THEN path_of(url) || '?' || kept(substr(url, instr(url, '?') + 1)) ELSE path_of(url) || '?' END)",
)
"""SQL for the keys of URLs, each with a function of its name here.

They are coarse, in either scheme and whatever is escaped: `choose` compares what is found by them.
"""


def url_key(url: str) -> int:
    """The key of a URL."""
    return key_of(_plain(_rest(url)))


def loose_url_key(url: str) -> int:
    """The key of a URL whose arguments may have another order and other cache-busters."""
    path, _, query = _rest(url).partition("?")
    return key_of(f"{_plain(path)}?{'&'.join(sorted(kept_arguments(query)))}")


def key_of(text: str) -> int:
    """A number for a text."""
    return int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:16], 16)


def _rest(url: str) -> str:
    return url[url.index("://") + 3 :]


def _plain(text: str) -> str:
    if "%" not in text:
        return text
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text.upper()


class CaptureRows:
    """Rows that never change; they may be read by many threads."""

    def __init__(self, path: Path, rows: pa.RecordBatchReader) -> None:
        """Write the rows to a file, which is gone when they are no more needed. Raises ArchiveError."""
        try:
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
                for batch in rows:
                    writer.write_batch(batch)
            self.table: pa.Table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        except OSError as error:
            raise scratch_error(error, path.parent) from error
        finally:
            path.unlink(missing_ok=True)
        self._entries = self.table.select(ENTRY_FIELDS)
        self._by_url, self._by_loose_url, self._by_payload = (
            _KeyIndex(self.table[name]) for name in ("exact", "loose", "payload")
        )

    def of_url(self, key: int, at: int) -> list[Entry]:
        """The captures with a key of their URL; of very many, complete ones, then those nearest to a time."""
        return self._some(self._by_url.places(key), at)

    def all_of_url(self, key: int) -> list[Entry]:
        """The captures with a key of their URL, however many."""
        return self._read(self._by_url.places(key))

    def of_loose_url(self, key: int, at: int) -> list[Entry]:
        """The captures with a loose key of their URL, as `of_url`."""
        return self._some(self._by_loose_url.places(key), at)

    def of_payload(self, key: int, at: int) -> list[Entry]:
        """The stored answers with a key of their payload's digest, as `of_url`."""
        return self._some(self._by_payload.places(key), at)

    def _some(self, places: list[int], at: int) -> list[Entry]:
        if len(places) > _MOST:
            some = self._entries.select(["whole", "at"]).take(_numbers(places))
            order = zip(some["whole"].to_pylist(), some["at"].to_pylist(), places, strict=True)
            near = sorted(order, key=lambda one: (not one[0], abs(int(one[1] or 0) - at)))
            places = [place for _, _, place in near[:_MOST]]
        return self._read(places)

    def _read(self, places: list[int]) -> list[Entry]:
        if len(places) == 1:  # as nearly always
            return [Entry(**row) for row in self._entries.slice(places[0], 1).to_pylist()]
        return [Entry(**row) for row in self._entries.take(_numbers(places)).to_pylist()] if places else []


def _numbers(places: list[int]) -> pa.Array[Any]:
    """Numbers of rows, not as a list: of one, Arrow would ask whether it is one of pandas, which takes long to load."""
    return pa.Array.from_buffers(pa.uint32(), len(places), [None, pa.py_buffer(array("I", places))])


class _KeyIndex:
    """Where the rows with a key are; rows without one are left out."""

    def __init__(self, keys: Any) -> None:
        order = cast("Any", pc.sort_indices(keys))[: len(keys) - keys.null_count]
        self._order = _buffer(pa.chunked_array([order.cast(pa.uint32())])).cast("I")
        self._keys = _buffer(keys.take(order)).cast("Q")

    def places(self, key: int) -> list[int]:
        """The rows, in order."""
        first = bisect_left(self._keys, key)
        same = takewhile(lambda n: n < len(self._keys) and self._keys[n] == key, count(first))
        return sorted(self._order[n] for n in same)


def _buffer(column: Any) -> memoryview[int]:
    """The bytes of the values of a column without nulls."""
    # what was made in one piece begins at the beginning of its buffer
    values = pa.concat_arrays(column.chunks) if column.num_chunks else None
    return memoryview(values.buffers()[1] or b"") if values is not None else memoryview(b"")
