"""The oracle of the fault harness can say no: each kind of damage to a sound directory is named."""

from __future__ import annotations

import dataclasses
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from footprint import Sample, grown
from oracle import Evidence, complaints
from places import make_site
from rounds import Round
from strikes import undisturbed


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """The directory of an undisturbed round, and what its server saw."""
    work = tmp_path_factory.mktemp("sound")
    one = Round(undisturbed(), make_site(work / "site"), work, lambda *_, **__: None, keep=True)
    verdict = one.run()
    assert verdict.complaints == []
    assert one.evidence is not None
    return dataclasses.replace(one.evidence, out=work / "kept", temporary=None)


@pytest.fixture
def copy(sound: Evidence, tmp_path: Path) -> Evidence:
    """The same, to be damaged."""
    shutil.copytree(sound.out, tmp_path / "out")
    return dataclasses.replace(sound, out=tmp_path / "out")


def _drop_a_row(out: Path) -> None:
    table = pq.read_table(out / "captures.parquet")
    pq.write_table(table.slice(1), out / "captures.parquet")


def _flip_a_byte(out: Path) -> None:
    row = pq.read_table(out / "captures.parquet").to_pylist()[100]
    with (out / row["warc_file"]).open("r+b") as file:
        file.seek(row["warc_offset"] + row["warc_length"] // 2)
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([byte ^ 0x10]))


def _lose_a_page(out: Path) -> None:
    _tracker(out, "UPDATE pages SET attempts_remaining = 3, state = 'READY' WHERE id = 20")


def _try_too_often(out: Path) -> None:
    columns = "job_id, page_id, worker, ruleset, started_at, finished_at, status, error"
    _tracker(out, f"INSERT INTO attempts ({columns}, number) SELECT {columns}, 2 FROM attempts WHERE page_id = 20")


def _tracker(out: Path, statement: str) -> None:
    tracker = sqlite3.connect(out / "tracker.sqlite")
    with tracker:
        tracker.execute(statement)
    tracker.close()


def _leave_a_journal(out: Path) -> None:
    (out / "parts").mkdir()


def _leave_a_gap(out: Path) -> None:
    (out / "muniment-00000.warc.gz").rename(out / "muniment-00007.warc.gz")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_drop_a_row, "a record without its row"),
        (_flip_a_byte, "check: muniment-0000"),
        (_lose_a_page, "is not done: 3 attempts remain"),
        (_try_too_often, "the network was never struck"),
        (_leave_a_journal, "other files: 1 too many: ['parts']"),
        (_leave_a_gap, "WARC files: 1 missing"),
    ],
)
def test_damage_is_named(copy: Evidence, damage: Callable[[Path], None], said: str) -> None:
    assert complaints(copy) == []
    damage(copy.out)
    assert [line for line in complaints(dataclasses.replace(copy)) if said in line]


def test_a_page_that_is_missing_or_is_another_is_named(copy: Evidence) -> None:
    more = dataclasses.replace(copy, expected={**copy.expected, "/never.html": "00"})
    assert "complete captures: 1 missing: ['/never.html']" in complaints(more)
    other = dataclasses.replace(copy, expected={**copy.expected, "/p7.html": "00"})
    assert [line for line in complaints(other) if "another payload than undisturbed" in line]
    fewer = dataclasses.replace(
        copy, expected={path: sha1 for path, sha1 in copy.expected.items() if path != "/p7.html"}
    )
    assert "complete captures: 1 too many: ['/p7.html']" in complaints(fewer)


def test_requests_are_counted_both_ways(copy: Evidence) -> None:
    twice = dataclasses.replace(copy, served=Counter({path: 2 * count for path, count in copy.served.items()}))
    assert [line for line in complaints(twice) if "requests are no attempt, and no more than 0" in line]
    unseen = dataclasses.replace(copy, served=Counter({**copy.served, "/p7.html": 0}))
    assert "/p7.html has 1 more records than the server has answers" in complaints(unseen)


def test_what_robots_txt_forbids_and_what_no_strike_answered_is_named(copy: Evidence) -> None:
    assert copy.forbidden
    asked = dataclasses.replace(copy, served=Counter({**copy.served, copy.forbidden: 2}))
    assert f"{copy.forbidden} is forbidden, and was asked for 2 times" in complaints(asked)
    table = pq.read_table(copy.out / "captures.parquet")
    rows = table.to_pylist()
    statuses = [502 if row["url"].endswith("/p7.html") else row["status"] for row in rows]
    column = table.schema.get_field_index("status")
    pq.write_table(
        table.set_column(column, table.schema.field(column), pa.array(statuses, pa.int32())),
        copy.out / "captures.parquet",
    )
    assert "complete captures: 1 missing: ['/p7.html']" in complaints(dataclasses.replace(copy))


def _throttle(out: Path, *, told: bool) -> None:
    """Nine attempts of a page, of which two were throttled, if the tracker says so."""
    columns = "job_id, page_id, worker, ruleset, started_at, finished_at, status, error"
    for number in range(2, 10):
        _tracker(
            out,
            f"INSERT INTO attempts ({columns}, number) SELECT {columns}, {number} FROM attempts "
            "WHERE page_id = 20 AND number = 1",
        )
    _tracker(out, f"UPDATE pages SET throttled = {2 * told} WHERE id = 20")


@pytest.mark.parametrize("told", [True, False])
def test_attempts_that_were_throttled_are_no_tries(copy: Evidence, told: bool) -> None:
    _throttle(copy.out, told=told)
    struck = dataclasses.replace(copy, cuts=1)
    assert bool([line for line in complaints(struck) if "8 are allowed" in line]) is not told


def test_temporary_files_are_named(copy: Evidence, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp" / "body").touch()
    assert "temporary files are left: ['body']" in complaints(dataclasses.replace(copy, temporary=tmp_path / "tmp"))


@pytest.mark.parametrize(
    ("sockets", "rss", "workers", "said"),
    [
        (4, 60, 1, []),
        (5, 60, 1, ["descriptors: 5 socket, 4 before"]),
        (4, 90, 1, ["memory: 31457280 bytes more than before"]),
        (6, 60, 2, []),
    ],
)
def test_what_an_orchestrator_does_not_give_back_is_named(
    sockets: int, rss: int, workers: int, said: list[str]
) -> None:
    now = time.monotonic()
    before = [Sample(now + tenth / 10, 1, 0, Counter(socket=4), 60 << 20) for tenth in range(15)]
    after = [Sample(now + 3 + tenth / 10, workers, 0, Counter(socket=sockets), rss << 20) for tenth in range(5)]
    assert grown([*before, *after], [now + 2]) == said
    # while it starts it has less, which says nothing
    assert grown([*before[:5], *after], [now + 1]) == []


def test_a_single_look_says_nothing() -> None:
    now = time.monotonic()
    samples = [Sample(now, 1, 0, Counter(socket=4), 60 << 20), Sample(now + 2, 1, 0, Counter(socket=10), 60 << 20)]
    assert grown(samples, [now + 1]) == []
