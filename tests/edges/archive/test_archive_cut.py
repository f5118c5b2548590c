"""Repair: cut at every kind of place, killed at every step."""

import shutil

import pyarrow.parquet as pq
import pytest
from tests.support.exchanges import exchange, page_context

from muniment.archive.check.directory import check
from muniment.archive.index.journal import entries, header_frame
from muniment.archive.index.parquet import join
from muniment.archive.recovery.cut import repair, repair_file
from muniment.archive.recovery.verify import verify_and_seal
from muniment.errors import ArchiveError


def crashed(directory, synced=3, torn=b"half a member"):
    """A directory whose worker was killed after `synced` safe captures."""
    segment = directory.segment()
    for n in range(synced):
        segment.write(exchange(f"http://a.example/{n}"), page_context())
        segment.sync()
    segment.close()
    with directory.open_warc().open("ab") as file:
        file.write(torn)


def rows(directory):
    return [e.capture for e in entries(directory.journal()) if e.capture is not None]


def test_the_unfinished_end_is_cut_and_the_file_waits_to_be_walked(directory):
    crashed(directory)
    (done,) = repair(directory.out, directory.parts)
    assert (done.name, done.freed, done.rows, done.cut_bytes, done.dropped_rows) == (directory.name(), False, 3, 13, 0)
    assert check(directory.out).faults == ()
    (again,) = repair(directory.out, directory.parts)
    assert (again.rows, again.cut_bytes) == (3, 0)
    assert verify_and_seal(directory.out, directory.parts, directory.name()) is None
    assert repair(directory.out, directory.parts) == []


def test_torn_journal_at_every_length(directory):
    crashed(directory, synced=2, torn=b"")
    whole = directory.journal().read_bytes()
    warc = directory.open_warc().read_bytes()
    for length in range(len(header_frame(directory.name())), len(whole) + 1, 11):
        for path in directory.out.glob("*.warc.gz*"):
            path.unlink()
        directory.journal().write_bytes(whole[:length])
        directory.open_warc().write_bytes(warc)
        (done,) = repair(directory.out, directory.parts)
        assert done.dropped_rows == 0
        if done.freed:
            assert directory.files() == []
        else:
            assert len(rows(directory)) == done.rows
    assert done.rows >= 1


def test_warc_cut_at_every_length_drops_the_rows_it_does_not_hold(directory):
    crashed(directory, synced=2, torn=b"")
    journal = directory.journal().read_bytes()
    warc = directory.open_warc().read_bytes()
    for length in range(0, len(warc) + 1, 41):
        for path in directory.out.glob("*.warc.gz*"):
            path.unlink()
        directory.journal().write_bytes(journal)
        directory.open_warc().write_bytes(warc[:length])
        (done,) = repair(directory.out, directory.parts)
        assert done.rows + done.dropped_rows == 2
        if not done.freed:
            assert len(rows(directory)) == done.rows
            assert check(directory.out).faults == ()


def test_a_file_without_anything_safe_frees_its_number(directory):
    segment = directory.segment()
    segment.write(exchange(), page_context())
    segment.close()
    (done,) = repair(directory.out, directory.parts)
    assert (done.name, done.freed) == (directory.name(), True)
    assert directory.files() == []
    directory.segment().seal()


def test_so_does_one_whose_first_record_was_not_safe(directory):
    """It would be a file with nothing but what it says of itself."""
    segment = directory.segment()
    segment.sync()
    segment.close()
    [done] = repair(directory.out, directory.parts)
    assert (done.name, done.freed) == (directory.name(), True)
    assert directory.files() == []


def test_a_journal_from_before_its_warc_frees_its_number(directory):
    directory.parts.mkdir()
    directory.journal().write_bytes(header_frame(directory.name()))
    (done,) = repair(directory.out, directory.parts)
    assert done.freed
    assert directory.files() == []


def test_a_name_of_which_nothing_was_made_is_free(tmp_path):
    done = repair_file(tmp_path, tmp_path / "parts", "muniment-00000.warc.gz")
    assert (done.freed, done.rows, done.cut_bytes) == (True, 0, 0)


def test_a_missing_journal_is_one_clear_line(directory):
    crashed(directory)
    directory.journal().unlink()
    with pytest.raises(ArchiveError, match=r"row journal .* is missing") as caught:
        repair(directory.out, directory.parts)
    assert "\n" not in str(caught.value)
    assert directory.open_warc().exists()


def test_a_damaged_journal_head_does_not_cost_the_file(directory):
    crashed(directory)
    directory.journal().write_bytes(b"\0" * 100)
    with pytest.raises(ArchiveError, match="damaged at its beginning"):
        repair(directory.out, directory.parts)
    assert directory.open_warc().stat().st_size > 1000


def test_rows_of_a_missing_file_are_not_forgotten(directory):
    crashed(directory)
    directory.open_warc().unlink()
    assert repair(directory.out, directory.parts) == []
    with pytest.raises(ArchiveError, match="put it back"):
        repair_file(directory.out, directory.parts, directory.name())
    join(directory.out, directory.parts)
    assert pq.read_table(directory.out / "captures.parquet")["warc_file"].to_pylist() == [directory.name()] * 3
    assert [fault.text for fault in check(directory.out).faults] == ["the index has rows for a missing file"]


def test_one_worker_is_repaired_beside_the_others(directory):
    crashed(directory)
    other = directory.segment(1)
    done = repair_file(directory.out, directory.parts, directory.name())
    assert done.rows == 3
    other.write(exchange(), page_context())
    other.seal()
    assert check(directory.out).faults == ()


@pytest.mark.parametrize("state", ["torn", "short", "empty"])
def test_killed_at_every_step(directory, kill_at, tmp_path, state):
    if state == "empty":
        directory.segment().close()
    else:
        crashed(directory)
    if state == "short":
        with directory.open_warc().open("rb+") as file:
            file.truncate(2000)
    kept = tmp_path / "kept"
    shutil.copytree(directory.out, kept)
    n, ended, results = 1, False, set()
    while not ended:
        shutil.rmtree(directory.out)
        shutil.copytree(kept, directory.out)
        ended = kill_at(lambda: repair(directory.out, directory.parts), n)
        repair(directory.out, directory.parts)
        files = directory.files()
        results.add((tuple(files), len(rows(directory)) if directory.journal().exists() else 0))
        assert check(directory.out).faults == ()
        n += 1
    assert len(results) == 1
    assert n > 3
