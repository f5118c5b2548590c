"""`--repair`: nothing is destroyed, twice is once, and a kill at any step leaves it to the next time."""

import gzip
import re
import shutil

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.exchanges import MemoryBody, chunk, exchange, page_context

from muniment.archive.check.directory import check
from muniment.archive.index.journal import entries, rewrite
from muniment.archive.index.parquet import join
from muniment.control.check import check_directory, repair_directory
from muniment.errors import BusyError
from muniment.model.capture import EarlierCapture
from muniment.model.failure import Failure
from muniment.procs.lock import lock_directory

HTML = b"<p>words</p>" * 50
NO_ROW_TELLS = {"meta_json", "seed_url", "attempt", "found_as", "ttfb_ms", "error"}
UTF_8 = "/é".encode().decode("latin-1")


def written(directory, seal=True):
    """Records of every kind that has a row."""
    segment = directory.segment()
    date = ("Last-Modified", "Wed, 18 Nov 2026 11:06:40 GMT")
    head = (("Content-Type", "text/html"), ("ETag", '"1"'), date, ("ETag", '"2"'))
    segment.write(exchange("http://a.example/1", HTML, headers=head), page_context(depth=2, via="http://a.example/"))
    chunked = MemoryBody(chunk(HTML), HTML)
    segment.write(exchange("http://a.example/2", chunked, headers=(("Transfer-Encoding", "chunked"),)), page_context())
    moved = exchange("http://a.example/3", b"x", status_line="HTTP/1.1 301 Moved", headers=(("Location", UTF_8),))
    segment.write(moved, page_context(redirect_to="http://a.example/%C3%A9"))
    earlier = EarlierCapture("http://a.example/1", 1_795_000_000_123_456)
    segment.write(exchange("http://a.example/4", HTML), page_context(), earlier)
    not_modified = exchange("http://a.example/5", b"", status_line="HTTP/1.1 304 Not Modified")
    segment.write(not_modified, page_context(), earlier, unchanged=True)
    cut = exchange("http://a.example/6", HTML, truncated="disconnect", failure=Failure("reset", "after 9 bytes"))
    segment.write(cut, page_context())
    segment.sync()
    if seal:
        segment.seal()
    else:
        segment.close()
    return [entry.capture for entry in entries(directory.journal()) if entry.capture]


def rows(directory):
    found = duckdb.sql(f"SELECT * FROM '{directory.out}/captures.parquet' ORDER BY warc_file, warc_offset")
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def asdict(capture):
    return dict(zip(capture.__struct_fields__, msgspec.structs.astuple(capture), strict=True))


def mended(directory):
    """The directory is mended, nothing is left to do, and what was cut off is kept."""
    first = repair_directory(directory.out)
    files = {path: (directory.out / path).read_bytes() for path in directory.files()}
    again = repair_directory(directory.out)
    assert again.repaired == ()
    assert {path: (directory.out / path).read_bytes() for path in directory.files()} == files
    return first


def test_an_index_from_records_alone(directory):
    known = written(directory)
    directory.journal().unlink()
    directory.parts.rmdir()
    (directory.out / "crawl.jsonl").touch()
    assert [fault.code for fault in check_directory(directory.out).faults] == ["index"]
    done = mended(directory)
    assert done.faults == ()
    assert [one.file for one in done.repaired] == ["captures.parquet", directory.name()]
    for row, before in zip(rows(directory), map(asdict, known), strict=True):
        assert {name for name in row if row[name] != before[name]} <= NO_ROW_TELLS
        assert bool(row["error"]) == bool(before["error"])


def test_a_row_that_is_wrong_keeps_what_no_record_tells(directory):
    known = written(directory)
    kept = list(entries(directory.journal()))
    kept[3] = msgspec.structs.replace(kept[3], capture=msgspec.structs.replace(known[2], status=404))
    rewrite(directory.journal(), kept)
    join(directory.out, directory.parts)
    before = (directory.out / "captures.parquet").read_bytes()
    assert {fault.code for fault in check_directory(directory.out).faults} == {"row"}
    assert mended(directory).faults == ()
    assert rows(directory) == [asdict(one) for one in known]
    assert (directory.out / "captures.parquet.before").read_bytes() == before


def test_an_unreadable_index_is_kept_and_rebuilt(directory):
    written(directory)
    join(directory.out, directory.parts)
    (directory.out / "captures.parquet").write_bytes(b"PAR1 and no more")
    assert [fault.code for fault in check_directory(directory.out).faults] == ["index"]
    assert mended(directory).faults == ()
    assert len(rows(directory)) == 6
    assert (directory.out / "captures.parquet.damaged").read_bytes() == b"PAR1 and no more"


@pytest.mark.parametrize("cut", [1, 9, 300])
def test_a_torn_end_is_kept_beside(directory, cut):
    written(directory)
    join(directory.out, directory.parts)
    whole = directory.warc().read_bytes()
    directory.warc().write_bytes(whole[:-cut])
    done = mended(directory)
    [torn] = directory.out.glob("*.torn-*")
    offset = int(torn.name.rpartition("-")[2])
    assert directory.warc().read_bytes() == whole[:offset]
    assert torn.read_bytes() == whole[offset:-cut]
    assert done.faults == ()


def test_all_that_is_damaged_at_the_end_is_cut_at_once(directory):
    """The records before the torn end begin as records do."""
    written(directory)
    join(directory.out, directory.parts)
    data = bytearray(directory.warc().read_bytes()[:-9])
    begins = [found.start() for found in re.finditer(rb"\x1f\x8b\x08\0\0\0\0\0", data)]
    for begin in begins[-3:]:
        data[begin - 6] ^= 0xFF  # a checksum
    directory.warc().write_bytes(data)
    assert mended(directory).faults == ()
    assert directory.warc().stat().st_size == begins[-4]


def test_parts_deleted_by_hand(directory):
    known = written(directory, seal=False)
    with directory.open_warc().open("ab") as file:
        file.write(b"\x1f\x8b\x08 half a member")
    shutil.rmtree(directory.parts)
    (directory.out / "crawl.jsonl").touch()
    assert "journal" in {fault.code for fault in check_directory(directory.out).faults}
    assert mended(directory).faults == ()
    assert [row["url"] for row in rows(directory)] == [one.url for one in known]
    assert len(list(directory.out.glob("*.torn-*"))) == 1


def test_a_killed_run_is_sealed_by_its_journal(directory):
    written(directory, seal=False)
    with directory.open_warc().open("ab") as file:
        file.write(b"never safe")
    done = mended(directory)
    assert done.faults == ()
    assert "10 bytes of incomplete captures" in done.repaired[0].text
    assert directory.files() == ["captures.parquet", directory.name()]


def test_damage_in_the_middle_costs_no_row(directory):
    known = written(directory)
    join(directory.out, directory.parts)
    data = bytearray(directory.warc().read_bytes())
    data[known[1].warc_offset + 40] ^= 0xFF
    directory.warc().write_bytes(data)
    done = mended(directory)
    assert done.repaired == ()
    assert {fault.code for fault in done.faults} >= {"gzip", "row"}
    assert done.records > 10
    assert len(rows(directory)) == 6


def test_a_file_of_one_member_keeps_the_rows_of_all_its_records(directory):
    """Somebody unpacked it and packed it again: every record is there, and other programs can read them."""
    written(directory)
    join(directory.out, directory.parts)
    before = rows(directory)
    directory.warc().write_bytes(gzip.compress(gzip.decompress(directory.warc().read_bytes())))
    done = mended(directory)
    assert done.repaired == ()
    assert {fault.code for fault in done.faults} == {"member", "row"}
    assert rows(directory) == before


def test_an_open_file_beside_the_sealed_one_of_its_name_is_set_aside(directory):
    written(directory)
    join(directory.out, directory.parts)
    whole = directory.warc().read_bytes()
    directory.open_warc().write_bytes(whole[:900])
    [fault] = check_directory(directory.out).faults
    assert (fault.file, fault.code) == (directory.open_warc().name, "journal")
    assert mended(directory).faults == ()
    assert directory.warc().read_bytes() == whole
    assert (directory.out / (directory.name() + ".second")).read_bytes() == whole[:900]


def test_a_journal_that_cannot_be_read_is_told_and_kept(directory):
    written(directory, seal=False)
    directory.journal().write_bytes(b"no journal at all")
    assert "journal" in {fault.code for fault in check_directory(directory.out).faults}
    assert mended(directory).faults == ()
    assert (directory.out / (directory.journal().name + ".damaged")).exists()
    assert len(rows(directory)) == 6


def test_the_rows_of_an_emptied_file_are_told_and_kept(directory):
    written(directory)
    join(directory.out, directory.parts)
    directory.warc().write_bytes(b"")
    done = mended(directory)
    assert done.repaired == ()
    assert sorted(fault.code for fault in done.faults) == [*["row"] * 6, "warcinfo"]
    assert len(rows(directory)) == 6


def test_a_copy_of_a_file_gets_no_rows(directory):
    written(directory)
    join(directory.out, directory.parts)
    shutil.copy(directory.warc(), directory.warc(7))
    done = mended(directory)
    assert done.repaired == ()
    assert {fault.code for fault in done.faults} == {"id", "row"}
    directory.warc(7).unlink()
    assert check_directory(directory.out).faults == ()


@pytest.mark.parametrize(
    ("name", "told"), [("muniment-00009.warc.gz", "muniment-00009.warc.gz"), ("a\udcff.warc.gz", "a\\xff.warc.gz")]
)
def test_a_file_that_cannot_be_opened_is_told(directory, name, told):
    written(directory)
    join(directory.out, directory.parts)
    (directory.out / name).symlink_to("nowhere")
    done = mended(directory)
    assert done.repaired == ()
    [fault] = done.faults
    assert (fault.file, fault.code) == (told, "gzip")
    assert "cannot be read: No such file or directory" in fault.text


def test_a_row_that_another_program_left_holes_in(directory):
    written(directory)
    join(directory.out, directory.parts)
    before = rows(directory)
    path = directory.out / "captures.parquet"
    table = pq.read_table(path)
    holed = table.to_pylist()
    kept = ("warc_file", "warc_offset", "warc_length", "record_id")
    holed[2] = {name: value if name in kept else None for name, value in holed[2].items()}
    pq.write_table(pa.Table.from_pylist(holed, schema=table.schema), path)
    assert {fault.code for fault in check_directory(directory.out).faults} == {"row"}
    assert mended(directory).faults == ()
    after = rows(directory)
    assert [row["record_id"] for row in after] == [row["record_id"] for row in before]
    assert after[:2] + after[3:] == before[:2] + before[3:]


def test_an_index_with_one_wrong_bit_is_never_taken_for_another_one(directory):
    written(directory)
    join(directory.out, directory.parts)
    path = directory.out / "captures.parquet"
    before, data = pq.read_table(path), path.read_bytes()
    told = 0
    for at in range(0, len(data), 41):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        # what is no row may be wrong: statistics that nobody uses, the names of who wrote it
        if check_directory(directory.out).faults:
            told += 1
        else:
            assert pq.read_table(path).equals(before), at
    assert told > 100


def test_a_directory_of_other_files_gets_no_index(directory, tmp_path):
    written(directory)
    plain = tmp_path / "plain"
    plain.mkdir()
    data = directory.warc().read_bytes()
    (plain / "other.warc.gz").write_bytes(data + b"\x1f\x8b\x08")
    assert repair_directory(plain).faults == ()
    assert sorted(path.name for path in plain.iterdir()) == ["other.warc.gz", f"other.warc.gz.torn-{len(data)}"]


def test_a_run_under_way_is_left_alone(directory):
    written(directory, seal=False)
    before = directory.files()
    lock_directory(directory.out)
    with pytest.raises(BusyError):
        repair_directory(directory.out)
    assert directory.files() == sorted([*before, "crawl.jsonl"])


@pytest.mark.parametrize("state", ["open", "without journal", "torn", "no index"])
def test_killed_at_every_step(directory, kill_at, tmp_path, state):
    written(directory, seal=state in {"torn", "no index"})
    if state != "no index":
        warc = directory.warc() if state == "torn" else directory.open_warc()
        warc.write_bytes(warc.read_bytes() + b"\x1f\x8b\x08tail")
    if state in {"without journal", "no index"}:
        shutil.rmtree(directory.parts)
    (directory.out / "crawl.jsonl").touch()
    kept = tmp_path / "kept"
    shutil.copytree(directory.out, kept)
    n, ended, results = 1, False, set()
    while not ended:
        shutil.rmtree(directory.out)
        shutil.copytree(kept, directory.out)
        ended = kill_at(lambda: repair_directory(directory.out), n)
        done = repair_directory(directory.out)
        assert done.faults == ()
        results.add((len(rows(directory)), *(name for name in directory.files() if ".before" not in name)))
        n += 1
    assert len(results) == 1
    assert n > 3
    assert check(directory.out).faults == ()
