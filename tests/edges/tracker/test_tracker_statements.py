"""What goes to a PostgreSQL server, and when: arrays in its own form, writes before what is read after them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fleet_harness import Fleet
from sqlalchemy import BigInteger, Boolean, Integer, LargeBinary, SmallInteger, Text, bindparam, func, select
from test_tracker_plans import CHANGES, LOOKUPS
from tests.support.postgres import Postgres
from tracker_harness import site

from muniment.model.place import TrackerPlace
from muniment.tracker.connect import opened
from muniment.tracker.db.postgresql import PostgresDatabase
from muniment.tracker.db.postgresql_arrays import array_of
from muniment.tracker.db.statements import BatchInsert, Lookup, Prepared
from muniment.tracker.fleet.dispatch import Dispatch
from muniment.tracker.schema.tables import jobs, robots

COLUMNS = [
    (BigInteger(), "int8", [0, -1, 2**63 - 1, -(2**63)]),
    (Integer(), "int4", [7, 2**31 - 1, -(2**31)]),
    (SmallInteger(), "int2", [200, -(2**15)]),
    (Boolean(), "bool", [True, False]),
    (Text(), "text", ["", "a", "žluť 🐎", "x" * 5000]),
    (LargeBinary(), "bytea", [b"", b"\0\xff", bytes(range(256))]),
]
KEEP = BatchInsert(robots, "job_id", "origin", "status", "text", "fetched_at")
TEXTS = Prepared(select(robots.c.text).where(robots.c.job_id == bindparam("job")), "job")


@pytest.fixture(scope="module")
def database(postgres: Postgres) -> str:
    """One of their own: in others there may be statistics, by which another plan is right."""
    return postgres.create(f"statements_{secrets.token_hex(4)}")


@pytest.fixture
def db(database: str, tmp_path: Path) -> Iterator[PostgresDatabase]:
    with closing(opened(TrackerPlace(tmp_path, database, secrets.token_hex(16)))) as made:
        assert isinstance(made, PostgresDatabase)
        yield made


@pytest.fixture
def job(db: PostgresDatabase) -> int:
    row = {"name": "j", "place_id": db.place_id, "state": "ACTIVE", "settings": "{}", "start_digest": b"", "given": ""}
    made = db.connection.execute(jobs.insert().values(**row, created_at=1)).inserted_primary_key
    assert made is not None
    return int(made[0])


def written(db: PostgresDatabase, job: int) -> int:
    """Rows that another connection sees."""
    with psycopg.connect(db.name) as other:
        found = other.execute("SELECT count(*) FROM robots WHERE job_id = %s", (job,)).fetchone()
    assert found is not None
    return int(found[0])


@pytest.mark.parametrize(("kind", "name", "values"), COLUMNS, ids=[name for _, name, _ in COLUMNS])
@pytest.mark.parametrize("nulls", [False, True])
def test_an_array_arrives_as_its_values(
    db: PostgresDatabase, kind: Any, name: str, values: list[Any], nulls: bool
) -> None:
    sent = [None, *values, None] if nulls else values
    cursor = db._execute(
        f"SELECT value, pg_typeof(%s)::text FROM unnest(%s::{name}[]) AS value", [array_of(kind)(sent)] * 2
    )
    got = cursor.fetchall()
    assert [value for value, _ in got] == sent
    assert {of for _, of in got} == {db._one("SELECT (%s::regtype)::text", (f"{name}[]",))[0]}


def test_text_of_an_array_is_kept_without_nul(db: PostgresDatabase) -> None:
    assert db._one("SELECT %s", (array_of(Text())(["a\0b", "c"]),)) == (["a\ufffdb", "c"],)


def test_every_write_has_its_arrays() -> None:
    writes = [one for one in CHANGES.values() if one.sql.startswith(("UPDATE", "DELETE", "INSERT"))]
    assert len(writes) > 20
    for one in writes:
        assert len(one.packers) == len(one._names)


def test_what_is_read_sees_what_was_written_before(db: PostgresDatabase, job: int) -> None:
    with db.transaction() as connection:
        db.many(KEEP, [(job, "a", 200, "one", 1)])
        assert db.rows(TEXTS, (job,)) == [("one",)]
        db.many(KEEP, [(job, "b", 200, "two", 1)])
        assert connection.execute(select(func.count()).where(robots.c.job_id == job)).scalar() == 2, "by SQLAlchemy too"
        db.many(KEEP, [(job, "c", 200, "three", 1)])
        assert db.changed(KEEP, [(job, "d", 200, "four", 1)]) == 1
        assert written(db, job) == 0
    assert written(db, job) == 4


def test_writes_of_a_transaction_that_failed_never_come(db: PostgresDatabase, job: int) -> None:
    with pytest.raises(LookupError), db.transaction():
        db.many(KEEP, [(job, "a", 200, "one", 1)])
        raise LookupError
    with db.transaction():
        db.many(KEEP, [(job, "b", 200, "two", 1)])
    assert db.rows(TEXTS, (job,)) == [("two",)]


def test_a_fault_of_a_write_undoes_its_transaction(db: PostgresDatabase, job: int) -> None:
    with pytest.raises(Exception, match="duplicate key"), db.transaction():
        db.many(KEEP, [(job, "a", 200, "one", 1)])
        db.many(KEEP, [(job, "a", 200, "the same key", 1)])
    assert written(db, job) == 0


@pytest.mark.parametrize("name", LOOKUPS)
def test_each_key_of_a_lookup_is_sought(db: PostgresDatabase, job: int, name: str) -> None:
    """In a database without statistics."""
    lookup = LOOKUPS[name]
    assert isinstance(lookup, Lookup)
    key = {LargeBinary: b"1" * 16, Text: "1"}.get(type(lookup._key.type), 1)
    compiled = lookup.postgresql
    for keys in ([key], [key] * 100):
        arrays = compiled.complete((array_of(Integer())([job] * len(keys)), array_of(lookup._key.type)(keys)))
        rows = db._execute(f"EXPLAIN {compiled.sql}", arrays).fetchall()
        conditions = [line for (line,) in rows if "Index Cond" in line]
        assert any("key)" in line and "job_id" in line for line in conditions), rows
        assert not [line for (line,) in rows if "Join Filter" in line]


def test_a_claim_goes_on_where_others_took_the_pages_of_a_host(fleet_database: str, tmp_path: Path) -> None:
    place = TrackerPlace(tmp_path, fleet_database)
    with closing(Fleet(place)) as fleet, closing(opened(place)) as beside:
        job = fleet.job(*(site(str(number), f"{host}.example") for host in "abc" for number in range(3)))
        other = Dispatch(beside, clock=fleet.clock)
        assert sum(other._open_jobs.of(job).pending.values()) == 9, "it knows of all pages"
        fleet.pipeline("p")
        fleet.pipeline("q")
        assert len(fleet.claim("p", 6)) == 6
        fleet.dispatch = other
        assert len(fleet.claim("q", 6)) == 3
