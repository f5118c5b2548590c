"""Segments against the disk: what is where after a sync, a full disk, a broken body, a crash."""

import errno
import os
from pathlib import Path

import pytest
from tests.support.exchanges import MemoryBody, exchange, page_context

from muniment.archive.check.directory import check
from muniment.archive.index.journal import entries
from muniment.archive.recovery.cut import repair
from muniment.archive.recovery.verify import open_names, verify_and_seal
from muniment.errors import ArchiveError, DiskFullError
from muniment.model.failure import Failure


def rows(directory):
    return [e.capture for e in entries(directory.journal()) if e.capture is not None]


def test_nothing_is_promised_before_a_sync(directory):
    segment = directory.segment()
    assert directory.files() == [directory.name() + ".open", "parts/" + directory.name() + ".journal"]
    capture = segment.write(exchange(), page_context())
    assert rows(directory) == []
    assert segment.sync() == [capture]
    assert segment.sync() == []
    assert rows(directory) == [capture]
    assert directory.open_warc().stat().st_size == segment.size
    segment.seal()
    assert directory.files() == [directory.name(), "parts/" + directory.name() + ".journal"]


def test_records_are_synced_before_rows(directory, monkeypatch):
    segment = directory.segment()
    segment.write(exchange(), page_context())
    order = []
    real = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: order.append(Path(f"/proc/self/fd/{fd}").readlink()) or real(fd))
    segment.sync()
    assert [path.suffix for path in order] == [".open", ".journal"]


def test_a_name_is_never_written_twice(directory):
    segment = directory.segment()
    with pytest.raises(ArchiveError):
        directory.segment()
    segment.seal()
    with pytest.raises(ArchiveError, match="exists already"):
        directory.segment()


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, DiskFullError), (errno.EDQUOT, DiskFullError), (errno.EIO, ArchiveError)]
)
@pytest.mark.parametrize("call", ["writev", "fdatasync"])
@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("synced_before", [False, True])
def test_a_failing_disk_loses_only_what_was_not_synced(directory, monkeypatch, number, kind, call, at, synced_before):
    segment = directory.segment()
    kept = []
    if synced_before:
        kept.append(segment.write(exchange("http://a.example/1"), page_context()))
        segment.sync()
    segment.write(exchange("http://a.example/2"), page_context())
    real, count = getattr(os, call), 0

    def failing(*args):
        nonlocal count
        count += 1
        if count == at:
            raise OSError(number, os.strerror(number))
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing)
        with pytest.raises(kind) as caught:
            segment.sync()
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)
    assert rows(directory) == kept
    kept.append(segment.write(exchange("http://a.example/3"), page_context()))
    segment.seal()
    assert rows(directory) == kept
    assert check(directory.out).faults == ()


really_write = os.write


def written_short(fd, parts):
    return really_write(fd, parts[0][:100])


def test_a_short_write_is_gone_on_with(directory, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(os, "writev", written_short)
        patch.setattr(os, "write", lambda fd, data: really_write(fd, data[:1000]))
        segment = directory.segment()
        segment.write(exchange(body=os.urandom(50_000)), page_context())
        segment.sync()
        assert segment.size == directory.open_warc().stat().st_size > 50_000
    segment.seal()
    assert check(directory.out).faults == ()


def test_more_parts_than_one_write_takes_are_all_written(directory):
    segment = directory.segment()
    for _ in range(600):
        segment.write(exchange(), page_context())
    segment.sync()
    assert segment.size == directory.open_warc().stat().st_size
    segment.seal()
    assert check(directory.out).faults == ()


def test_a_short_write_is_cut_back(directory, monkeypatch):
    segment = directory.segment()
    segment.write(exchange(), page_context())
    segment.sync()
    size = segment.size
    segment.write(exchange(body=os.urandom(50_000)), page_context())

    def full(_fd, _data):
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "writev", written_short)
        patch.setattr(os, "write", full)
        with pytest.raises(DiskFullError):
            segment.sync()
    assert segment.size == size == directory.open_warc().stat().st_size
    segment.seal()
    assert check(directory.out).faults == ()


class BrokenBody(MemoryBody):
    """A body whose temporary file fails in the middle, in its second pass."""

    def __init__(self, size):
        super().__init__(b"x" * size)
        self.passes = 0

    def wire(self):
        self.passes += 1
        for n in range(100):
            if n == 50 and self.passes == (2 if self.length > 1 << 20 else 1):
                raise OSError(errno.EIO, "temporary file")
            yield os.urandom(self.length // 100)


@pytest.mark.parametrize("size", [100_000, 20_000_000])
def test_a_broken_body_leaves_no_half_record(directory, size):
    segment = directory.segment()
    first = segment.write(exchange("http://a.example/1"), page_context())
    length = segment.size
    with pytest.raises(ArchiveError):
        segment.write(exchange("http://a.example/2", BrokenBody(size)), page_context())
    assert segment.size == length
    third = segment.write(exchange("http://a.example/3"), page_context())
    assert segment.sync() == [first, third]
    segment.seal()
    assert check(directory.out).faults == ()


def test_failures_are_rows_without_records(directory):
    segment = directory.segment()
    made = segment.write_failure("http://a.example/", Failure("robots", "disallowed"), page_context())
    size = segment.size
    segment.seal()
    assert directory.warc().stat().st_size == size
    assert rows(directory) == [made]


def test_a_failing_rename_at_the_seal_is_repaired(directory, kill_at):
    n = 1
    while True:
        for path in directory.out.rglob("*"):
            if path.is_file():
                path.unlink()
        segment = directory.segment()
        capture = segment.write(exchange(), page_context())
        ended = kill_at(segment.seal, n)
        segment.close()
        repair(directory.out, directory.parts)
        for name in open_names(directory.out):
            assert verify_and_seal(directory.out, directory.parts, name) is None
        if directory.warc().exists():
            assert rows(directory) in ([capture], [])
            assert check(directory.out).faults == ()
        else:
            assert directory.files() == []
        if ended:
            break
        n += 1
    assert n > 4
