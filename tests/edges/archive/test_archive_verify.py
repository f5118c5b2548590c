"""Verifying before sealing: every kind of damage is found, nothing whole is, and a kill leaves sealed or not sealed."""

import gzip

import pytest
from tests.support.exchanges import exchange, page_context

from muniment.archive.check.directory import check
from muniment.archive.index.journal import JournalEntry, entries, rewrite
from muniment.archive.recovery.cut import repair
from muniment.archive.recovery.quarantine import set_aside
from muniment.archive.recovery.verify import open_names, verify_and_seal

COUNT = 3


@pytest.fixture
def full(directory):
    """A file that a worker has ended."""
    segment = directory.segment()
    for n in range(COUNT):
        segment.write(exchange(f"http://a.example/{n}", b"<p>%d</p>" % n * 50), page_context())
        segment.write_failure(f"http://a.example/{n}/gone", exchange_failure(), page_context())
    segment.end()
    return directory


def exchange_failure():
    from muniment.model.failure import Failure

    return Failure("refused", "nobody listens")


def verify(directory, number=0):
    return verify_and_seal(directory.out, directory.parts, directory.name(number))


def known(directory):
    return list(entries(directory.journal()))


def without_checksums(directory):
    """As an older version wrote it."""
    rewrite(directory.journal(), [JournalEntry(entry.warc_length, entry.capture) for entry in known(directory)])


def test_a_whole_file_is_sealed_and_a_second_walk_finds_nothing_to_do(full):
    assert open_names(full.out) == [full.name()]
    assert verify(full) is None
    assert full.warc().exists()
    assert open_names(full.out) == []
    assert verify(full) is None
    assert check(full.out).faults == ()


def test_every_step_has_its_checksum(full):
    assert all(entry.checksum is not None for entry in known(full))


def test_one_wrong_bit_anywhere_is_found_where_it_lies(full):
    whole = full.open_warc().read_bytes()
    lengths = [0, *(entry.warc_length for entry in known(full))]
    for at in range(0, len(whole), 7):
        full.open_warc().write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        damage = verify(full)
        assert (damage.name, damage.offset) == (full.name(), max(length for length in lengths if length <= at))
    assert full.files() == [full.open_warc().name, "parts/" + full.journal().name], "a damaged file stays as it is"


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"x", lambda data: b""])
def test_a_file_of_another_length_is_damaged(full, change):
    full.open_warc().write_bytes(change(full.open_warc().read_bytes()))
    assert "row journal" in verify(full).text


def test_without_checksums_every_member_is_inflated(full):
    without_checksums(full)
    assert verify(full) is None
    full.warc().rename(full.open_warc())
    whole = full.open_warc().read_bytes()
    third = known(full)[3].capture
    at = third.warc_offset + third.warc_length - 6
    full.open_warc().write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    assert verify(full).offset == third.warc_offset


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda record: record + b"more", "does not fit its member"),
        (lambda record: record.replace(b"Content-Length", b"Content-Lentgh", 1), "record header"),
        (lambda record: b"junk" + record, "record header"),
        (
            lambda record: record.replace(b"Content-Length: ", b"Content-Length: " + b"9" * 5000, 1),
            "record header",
        ),
    ],
)
def test_a_record_that_does_not_fit_its_member_is_damage(full, change, text):
    capture = known(full)[1].capture
    end = capture.warc_offset + capture.warc_length
    data = full.open_warc().read_bytes()
    member = gzip.compress(change(gzip.decompress(data[capture.warc_offset : end])), mtime=0)
    grown = len(member) - capture.warc_length
    full.open_warc().write_bytes(data[: capture.warc_offset] + member + data[end:])
    kept = known(full)
    moved = [JournalEntry(entry.warc_length + grown * (place > 0), entry.capture) for place, entry in enumerate(kept)]
    rewrite(full.journal(), moved)
    assert text in verify(full).text


def test_members_lie_where_the_journal_says(full):
    first, second, *rest = known(full)
    without_checksums(full)
    rewrite(
        full.journal(),
        [JournalEntry(first.warc_length - 1, None), JournalEntry(second.warc_length, second.capture), *rest],
    )
    assert "ends after byte" in verify(full).text
    rewrite(full.journal(), [JournalEntry(second.warc_length, second.capture), *rest])
    assert "not at its offset" in verify(full).text


def test_killed_at_any_step_it_is_sealed_or_not(full, kill_at):
    n, ended = 1, False
    while not ended:
        if full.warc().exists():
            full.warc().rename(full.open_warc())
        ended = kill_at(lambda: verify(full), n)
        assert full.warc().exists() != full.open_warc().exists()
        assert len(repair(full.out, full.parts)) == full.open_warc().exists()
        assert verify(full) is None
        n += 1
    assert n > 2


def test_set_aside_it_leaves_archive_and_index(full):
    set_aside(full.out, full.parts, full.name())
    aside = f"damaged/{full.name()}"
    assert full.files() == [aside, aside + ".journal"]
    segment = full.segment()
    segment.write(exchange(), page_context())
    segment.end()
    set_aside(full.out, full.parts, full.name())
    second = "damaged/muniment-00000.2.warc.gz"
    assert full.files() == sorted([aside, aside + ".journal", second, second + ".journal"])


def test_killed_at_any_step_setting_aside_is_finished_by_the_repair(directory, kill_at):
    n, ended = 1, False
    while not ended:
        for path in directory.out.rglob("*"):
            if path.is_file():
                path.unlink()
        segment = directory.segment()
        segment.write(exchange(), page_context())
        segment.end()
        ended = kill_at(lambda: set_aside(directory.out, directory.parts, directory.name()), n)
        checked = check(directory.out)
        assert checked.faults == ()
        assert checked.rows == checked.files
        repair(directory.out, directory.parts)
        if directory.open_warc().exists():
            assert directory.journal().exists()
        else:
            aside = f"damaged/{directory.name()}"
            assert directory.files() == [aside, aside + ".journal"]
        n += 1
    assert n > 4
