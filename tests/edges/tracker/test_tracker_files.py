"""Tracker files that cannot be used: one line each, whatever is wrong with them."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from msgspec import structs
from tests.support.disks import fill, small_disk
from tracker_harness import A, Tracker, site

from muniment.errors import DiskFullError, TrackerError, UsageError
from muniment.model.place import TrackerPlace
from muniment.tracker.db import database as engine
from muniment.tracker.db.database import SCHEMA_REVISION
from muniment.tracker.db.sqlite import SqliteDatabase
from muniment.tracker.jobs import store as jobs


@contextmanager
def refused():
    with pytest.raises(TrackerError) as caught:
        yield caught
    assert "\n" not in str(caught.value)


def use(path: Path) -> None:
    tracker = Tracker(TrackerPlace(path.parent))
    tracker.close()


def made(path: Path, pages: int = 300) -> Path:
    tracker = Tracker(TrackerPlace(path.parent))
    tracker.finish(tracker.take(site("")), {site(""): [(site(str(n)), A) for n in range(pages)]})
    tracker.close()
    return path


def test_a_file_that_is_no_database(tmp_path):
    path = tmp_path / "tracker.sqlite"
    path.write_bytes(b"not a database, but long enough to be taken for one" * 100)
    with refused() as caught:
        use(path)
    assert str(path) in str(caught.value)
    assert str(caught.value).endswith("; put a backup in its place")


def test_a_directory_in_its_place(tmp_path):
    (tmp_path / "tracker.sqlite").mkdir()
    with refused():
        use(tmp_path / "tracker.sqlite")


def test_a_damaged_database(tmp_path):
    path = made(tmp_path / "tracker.sqlite")
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(size - 4096))
    with refused():
        use(path)


def test_a_database_cut_short(tmp_path):
    path = made(tmp_path / "tracker.sqlite")
    os.truncate(path, path.stat().st_size // 2)
    with refused():
        use(path)


def test_a_tracker_of_a_newer_version(tmp_path):
    path = made(tmp_path / "tracker.sqlite")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE alembic_version SET version_num = '9999'")
    with refused() as caught:
        use(path)
    assert "newer" in str(caught.value)


def test_a_tracker_that_another_program_holds(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "PATIENCE_S", 1.0)
    path = tmp_path / "tracker.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE t (x)")
        other.execute("BEGIN EXCLUSIVE")
        with refused():
            use(path)


def test_a_tracker_that_another_program_locks_later(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "PATIENCE_S", 1.0)
    path = made(tmp_path / "tracker.sqlite")
    tracker = Tracker(TrackerPlace(path.parent))
    try:
        tracker.db.connection.exec_driver_sql("PRAGMA busy_timeout = 10")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with refused():
                tracker.claim()
    finally:
        tracker.close()


def test_reading_where_there_is_none(tmp_path):
    with pytest.raises(UsageError):
        SqliteDatabase.read(tmp_path / "tracker.sqlite")


def test_reading_what_is_no_database(tmp_path):
    path = tmp_path / "tracker.sqlite"
    path.write_bytes(b"no database at all" * 100)
    with refused(), closing(SqliteDatabase.read(path)) as db:
        jobs.find_job(db)


@pytest.mark.parametrize("name", ["plain", "with space", "50%25", "a?b", "a#b", "ünï", "a&b=c"])
def test_any_directory_name_will_do(tmp_path, name):
    (tmp_path / name).mkdir()
    path = made(tmp_path / name / "tracker.sqlite", pages=3)
    assert path.is_file()
    assert [found.name for found in tmp_path.iterdir()] == [name]
    with closing(SqliteDatabase.read(path)) as db:
        assert jobs.find_job(db) is not None


def test_a_crash_while_the_first_tables_were_made_is_made_good(tmp_path):
    """The tables and their revision are one transaction; without a revision they are made."""
    path = tmp_path / "tracker.sqlite"
    with closing(SqliteDatabase.open(path)) as db, db.transaction() as connection:
        connection.exec_driver_sql("DELETE FROM alembic_version")
    use(path)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT version_num FROM alembic_version").fetchall() == [(SCHEMA_REVISION,)]


def test_a_reader_sees_what_is_committed_while_the_writer_goes_on(tmp_path):
    tracker = Tracker(TrackerPlace(tmp_path))
    try:
        with closing(SqliteDatabase.read(tracker.place.file)) as reader, tracker.db.transaction():
            found = jobs.find_job(reader)
            assert found is not None
            assert found.state == "ACTIVE"
    finally:
        tracker.close()


def test_after_a_failed_transaction_nothing_more_is_committed(tmp_path):
    """What a process knows is ahead of a transaction that failed: ids that it gave out are not in the tracker."""
    path = tmp_path / "tracker.sqlite"
    database = SqliteDatabase.open(path)
    for _ in range(2):
        with pytest.raises(TrackerError), database.transaction() as connection:
            connection.exec_driver_sql("INSERT INTO jobs (id) VALUES (1)" if _ == 0 else "SELECT 1")
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # it holds no lock any more
    database.close()


def test_a_full_disk_is_told_from_other_failures(tmp_path):
    with small_disk(tmp_path / "disk", 2) as disk:
        database = SqliteDatabase.open(disk / "tracker.sqlite")
        fill(disk)
        with pytest.raises(DiskFullError, match=r"tracker\.sqlite: no room"), database.transaction() as connection:
            connection.exec_driver_sql("CREATE TABLE large AS SELECT randomblob(3000000)")
        database.close()
        with pytest.raises(DiskFullError, match=r"another\.sqlite: no room"):
            SqliteDatabase.open(disk / "another.sqlite")


def test_a_job_whose_index_is_not_joined_is_not_over():
    job = jobs.Job(1, "name", "FINISHED", "", "", b"", "", 1)
    assert not job.over
    assert structs.replace(job, outcome="completed").over
