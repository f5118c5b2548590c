"""The row journal: any prefix of it, and any garbage after it, gives a valid prefix of its entries."""

import os

import msgspec
import pytest
from tests.support.exchanges import page_context

from muniment.archive.index.journal import (
    JournalEntry,
    entries,
    entry_frame,
    header_frame,
    journalled_length,
    read_header,
    rewrite,
)
from muniment.archive.index.rows import failure_row
from muniment.errors import ArchiveError
from muniment.model.failure import Failure

NAME = "muniment-00000.warc.gz"
ROW = failure_row("http://a.example/", Failure("dns", "no such name"), page_context(), 1_000_000, None)
ENTRIES = [JournalEntry(326, None), JournalEntry(326, ROW), JournalEntry(900, ROW), JournalEntry(1500, ROW)]


@pytest.fixture
def journal(tmp_path):
    return tmp_path / (NAME + ".journal")


def write(path, frames):
    path.write_bytes(b"".join(frames))


def test_round_trip(journal):
    write(journal, [header_frame(NAME), *map(entry_frame, ENTRIES)])
    assert read_header(journal) == NAME
    assert list(entries(journal)) == ENTRIES
    assert journalled_length(journal) == 1500


def test_torn_at_every_byte(journal):
    frames = [header_frame(NAME), *map(entry_frame, ENTRIES)]
    ends = [sum(map(len, frames[: n + 1])) for n in range(len(frames))]
    whole = b"".join(frames)
    for length in range(len(whole) + 1):
        journal.write_bytes(whole[:length])
        complete = sum(end <= length for end in ends)
        assert list(entries(journal)) == ENTRIES[: max(0, complete - 1)]
        assert read_header(journal) == (NAME if complete else "")


def test_every_flipped_byte_ends_the_prefix(journal):
    frames = [header_frame(NAME), *map(entry_frame, ENTRIES)]
    whole = b"".join(frames)
    for at in range(len(frames[0]), len(whole)):
        data = bytearray(whole)
        data[at] ^= 0x40
        journal.write_bytes(data)
        found = list(entries(journal))
        assert found == ENTRIES[: len(found)]
        assert len(found) < len(ENTRIES)


@pytest.mark.parametrize("tail", [b"\0" * 4096, b"\xff" * 64, os.urandom(1000), b"\x01\0\0\0"])
def test_garbage_after_the_last_frame(journal, tail):
    write(journal, [header_frame(NAME), *map(entry_frame, ENTRIES), tail])
    assert list(entries(journal)) == ENTRIES


def test_a_sound_frame_that_is_no_entry_ends_the_prefix(journal):
    foreign = header_frame("other")
    write(journal, [header_frame(NAME), entry_frame(ENTRIES[0]), foreign, entry_frame(ENTRIES[1])])
    assert list(entries(journal)) == ENTRIES[:1]


def test_another_version_is_refused_with_a_reason(journal):
    from muniment.archive.index import journal as module

    frame = module.frame(msgspec.msgpack.encode([99, NAME]))
    journal.write_bytes(frame)
    with pytest.raises(ArchiveError, match="format 99"):
        list(entries(journal))


def test_rewrite_keeps_the_given_entries(journal):
    write(journal, [header_frame(NAME), *map(entry_frame, ENTRIES), b"torn"])
    rewrite(journal, ENTRIES[:2])
    assert list(entries(journal)) == ENTRIES[:2]
    assert [p.name for p in journal.parent.iterdir()] == [journal.name]
