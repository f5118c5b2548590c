"""Names of records over all files of a directory: whether each is unique, and whether those that records use exist.

A name is held as eight bytes of a hash, beside eight that say where it stands, in 64 heaps on the disk; the heaps are
judged one after the other. So memory does not grow with the records: two different names are taken for one with a
chance of one in a million among five million records.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from tempfile import SpooledTemporaryFile

from msgspec import Struct
from xxhash import xxh3_64_intdigest

__all__ = ["CONCURRENT_TO", "REFERS_TO", "WARCINFO_ID", "IdHeaps", "IdJudge", "IdPlace"]

_HEAPS = 64
_IN_MEMORY = 256 << 10
"""Of each heap; a small directory needs no file."""
_NAME, CONCURRENT_TO, REFERS_TO, WARCINFO_ID = range(4)
_OFFSET_BITS, _FILE_BITS = 42, 20
"""Four terabytes a file, and a million files."""
_OFFSET, _FILE = (1 << _OFFSET_BITS) - 1, (1 << _FILE_BITS) - 1
_INFO = "warcinfo "
"""Before the names of warcinfo records, which a Warcinfo-ID must mean."""


class IdPlace(Struct, frozen=True):
    """The place of a name."""

    file: int
    offset: int


class IdHeaps:
    """The names that the records of one range have, and use."""

    def __init__(self, file: int) -> None:
        self._base = file << _OFFSET_BITS
        self._heaps = [array("Q") for _ in range(_HEAPS)]

    def named(self, record_id: str, offset: int, *, warcinfo: bool) -> None:
        """A record at `offset` has this name."""
        self._add(record_id, self._base | offset)
        if warcinfo:
            self._add(_INFO + record_id, self._base | offset)

    def used(self, field: int, record_id: str, offset: int) -> None:
        """A record at `offset` names another one in a field: `CONCURRENT_TO`, `REFERS_TO` or `WARCINFO_ID`."""
        name = _INFO + record_id if field == WARCINFO_ID else record_id
        self._add(name, field << _OFFSET_BITS + _FILE_BITS | self._base | offset)

    def _add(self, name: str, place: int) -> None:
        key = xxh3_64_intdigest(name.encode("utf-8", "surrogatepass"))
        heap = self._heaps[key % _HEAPS]
        heap.append(key)
        heap.append(place)

    def packed(self) -> list[bytes]:
        """Each heap as bytes."""
        return [heap.tobytes() for heap in self._heaps]


class IdJudge:
    """Takes in the heaps of all ranges; a context manager, since its heaps are temporary files."""

    def __enter__(self) -> IdJudge:
        self._stack = ExitStack()
        files = [SpooledTemporaryFile(_IN_MEMORY) for _ in range(_HEAPS)]  # noqa: SIM115
        self._files = [self._stack.enter_context(file) for file in files]
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, packed: Sequence[bytes]) -> None:
        """Take in the heaps of a range."""
        for file, heap in zip(self._files, packed, strict=True):
            file.write(heap)

    def doubled(self) -> Iterator[tuple[IdPlace, IdPlace]]:
        """(place, earlier place) of each record whose name another record has, too."""
        for pairs in self._heaps():
            own = [(key, place) for key, place in pairs if not _field(place)]
            if len({key for key, _ in own}) < len(own):
                yield from _repeated(sorted(own))

    def dangling(self) -> Iterator[tuple[int, IdPlace]]:
        """(field, place) of each use of a name that no record has."""
        for pairs in self._heaps():
            known = {key for key, place in pairs if not _field(place)}
            for key, place in pairs:
                if _field(place) and key not in known:
                    yield _field(place), _place(place)

    def _heaps(self) -> Iterator[list[tuple[int, int]]]:
        for file in self._files:
            file.seek(0)
            heap = array("Q")
            heap.frombytes(file.read())
            yield list(zip(heap[::2], heap[1::2], strict=True))


def _repeated(own: list[tuple[int, int]]) -> Iterator[tuple[IdPlace, IdPlace]]:
    first_key, first_place = own[0]
    for key, place in own[1:]:
        if key == first_key:
            yield _place(place), _place(first_place)
        else:
            first_key, first_place = key, place


def _field(place: int) -> int:
    return place >> _OFFSET_BITS + _FILE_BITS


def _place(place: int) -> IdPlace:
    return IdPlace(place >> _OFFSET_BITS & _FILE, place & _OFFSET)
