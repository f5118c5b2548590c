"""The tracker's tables: what the migrations make is what the code expects, and every column says what it holds."""

from __future__ import annotations

import ast
import json
import re
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from source_tree import nodes
from sqlalchemy import Engine, create_engine, inspect, make_url, text
from sqlalchemy.exc import IntegrityError

import muniment.tracker.db.migrate as migrate
from muniment.errors import BusyError, UsageError
from muniment.model.job import JobOutcome, JobState
from muniment.model.page import PageState
from muniment.model.pipeline import SessionEnding, SlotLock
from muniment.model.place import TrackerPlace
from muniment.model.result import ResultKind, ResultStatus
from muniment.tracker.connect import opened
from muniment.tracker.db.database import SCHEMA_REVISION
from muniment.tracker.db.sqlite import SqliteDatabase
from muniment.tracker.schema.tables import metadata

OBVIOUS = {"id", "job_id", "host_id", "page_id", "parent_id", "attempt", "value", "text"}

OF_NO_JOB = {"pipelines", "sessions", "assignments", "writers", "tokens", "trackers", "servers", "host_permits"}
"""Their rows do not grow with a job."""


def config() -> Config:
    made = Config()
    made.set_main_option("script_location", str(Path(migrate.__file__).parent / "migrations"))
    return made


def scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(config())


REVISIONS = [script.revision for script in scripts().walk_revisions()][::-1]


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> TrackerPlace:
    """Where there is no tracker yet."""
    if request.param == "sqlite":
        return TrackerPlace(tmp_path)
    return TrackerPlace(tmp_path, request.getfixturevalue("postgres").create(f"schema_{uuid.uuid4().hex}"), "p" * 32)


def engine_of(dialect: str, where: str) -> Engine:
    url = f"sqlite:///{where}" if dialect == "sqlite" else make_url(where).set(drivername="postgresql+psycopg")
    return create_engine(url)


@pytest.fixture
def engine(place: TrackerPlace) -> Any:
    engine = engine_of("postgresql", place.database) if place.database else engine_of("sqlite", str(place.file))
    yield engine
    engine.dispose()


def upgrade(engine: Engine, revision: str) -> None:
    to = config()
    with engine.connect() as connection:
        to.attributes["connection"] = connection
        command.upgrade(to, revision)
        connection.commit()


def replace_database(engine: Engine, template: str) -> None:
    """Put a copy of a database in the place of the engine's."""
    admin = create_engine(engine.url.set(database="postgres"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"DROP DATABASE {engine.url.database}"))
        connection.execute(text(f"CREATE DATABASE {engine.url.database} TEMPLATE {template}"))
    admin.dispose()


@pytest.fixture(scope="module")
def empty_at(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], str]:
    """Where an empty tracker of a revision is kept, to be copied: each is made of the one before."""
    folder = tmp_path_factory.mktemp("revisions")

    @cache
    def made(dialect: str, revision: str) -> str:
        at = REVISIONS.index(revision)
        before = made(dialect, REVISIONS[at - 1]) if at else ""
        if dialect == "sqlite":
            where = kept = str(folder / revision)
            if before:
                shutil.copyfile(before, where)
        else:
            kept = f"revision_{revision}"
            where = request.getfixturevalue("postgres").create(kept, before or "template0")
        engine = engine_of(dialect, where)
        upgrade(engine, revision)
        engine.dispose()
        return kept

    return made


@pytest.fixture
def migrate_to(empty_at: Callable[[str, str], str], place: TrackerPlace, engine: Engine) -> Callable[..., None]:
    """`migrate_to("0010", row, ...)`: the place has a tracker of that revision with these rows."""

    def migrate(revision: str, *rows: tuple[str, dict[str, Any]]) -> None:
        kept = empty_at(engine.dialect.name, revision)
        if place.database:
            replace_database(engine, kept)
        else:
            shutil.copyfile(kept, place.file)
        with engine.begin() as connection:
            for statement, values in rows:
                connection.execute(text(statement), values)

    return migrate


def job_of_revision(revision: str, settings: str = "{}") -> tuple[str, dict[str, Any]]:
    """A job as a program of that revision left it."""
    sums = ", pages_captured, pages_failed, payload_bytes" if revision < "0008" else ""
    columns = f"id, name, state, settings, start_digest, created_at{sums}"
    values = f"1, 'j', 'ACTIVE', :settings, :digest, 0{', 5, 2, 900' if sums else ''}"
    return f"INSERT INTO jobs ({columns}) VALUES ({values})", {"settings": settings, "digest": b"d"}


def page_before_keys(number: int, key: bytes) -> tuple[str, dict[str, Any]]:
    """A page as a program before revision 0011 left it."""
    columns = "job_id, id, key, url, host_id, state, attempts_remaining, link_hops, requisite_hops, found_as"
    values = "1, :number, :key, 'http://a.example/', 1, 'READY', 3, 0, 65535, 0, true, true, true, 1"
    statement = f"INSERT INTO pages ({columns}, on_site, included, in_scope, ruleset) VALUES ({values})"
    return statement, {"number": number, "key": key}


@pytest.fixture
def migrated(engine: Engine) -> Engine:
    migrate.upgrade(engine, "migrated")
    return engine


def statements(engine: Engine) -> dict[str, str]:
    """The SQL of every table and index of SQLite, spaces and quotes apart."""
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")).all()
    tidy = {name: re.sub(r"\s+", " ", sql.replace('"', "")).replace("( ", "(").replace(" )", ")") for name, sql in rows}
    return {name: sql for name, sql in tidy.items() if name != "alembic_version"}


def catalogue(engine: Engine) -> dict[str, Any]:
    """What PostgreSQL keeps of every table: columns, keys, indexes with their conditions, storage."""
    looked = inspect(engine)
    tables = [name for name in looked.get_table_names() if name != "alembic_version"]
    with engine.connect() as connection:
        storage = connection.execute(text("SELECT relname, reloptions FROM pg_class WHERE relkind = 'r'"))
        options = {name: how for name, how in storage if name in tables}
        defined = connection.execute(text("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"))
        indexes = {name: definition for name, definition in defined if "alembic" not in name}
    columns = {
        name: sorted(
            (str(c["name"]), str(c["type"]), bool(c["nullable"]), str(c["default"]), str(c["comment"]))
            for c in looked.get_columns(name)
        )
        for name in tables
    }
    keys = {name: sorted(str(key["name"]) for key in looked.get_foreign_keys(name)) for name in tables}
    return {"columns": columns, "indexes": indexes, "storage": options, "foreign keys": keys}


def columns_in_any_order(sql: str) -> tuple[str, list[str]]:
    head, _, rest = sql.partition("(")
    return head, sorted(re.split(r", (?![^(]*\))", rest))


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_migrations_make_the_tables_of_the_code(migrated: Engine, tmp_path: Path) -> None:
    with closing(SqliteDatabase.open(tmp_path / "made.sqlite")) as made:
        expected = statements(made.engine)
    found = statements(migrated)
    assert set(found) == set(expected)
    for name, sql in expected.items():
        assert columns_in_any_order(found[name]) == columns_in_any_order(sql), name


@pytest.mark.parametrize("place", ["postgresql"], indirect=True)
def test_migrations_make_the_tables_of_the_code_on_postgresql(migrated: Engine, postgres: Any, tmp_path: Path) -> None:
    with closing(opened(TrackerPlace(tmp_path, postgres.create("made_by_the_code"), "p" * 32))) as made:
        assert catalogue(migrated) == catalogue(made.engine)


def test_alembic_finds_no_difference(migrated: Engine) -> None:
    def made_here(one: Any, _name: object, kind: str, reflected: bool, _other: object) -> bool:
        """Leaves out the foreign keys that this database is not to have; those it has are compared above."""
        rule = getattr(one, "_ddl_if", None)
        return kind != "foreign_key_constraint" or reflected or rule is None or rule.dialect == migrated.dialect.name

    with migrated.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": made_here})
        assert compare_metadata(context, metadata) == []


def test_the_revision_of_the_code_is_the_head() -> None:
    assert scripts().get_heads() == [SCHEMA_REVISION]


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_tracker_of_every_revision_is_brought_up_to_date(place: TrackerPlace, migrate_to: Any, revision: str) -> None:
    """And keeps its job, with its sums."""
    migrate_to(revision, job_of_revision(revision))
    with closing(opened(place)) as db:
        kept = db.connection.execute(text("SELECT name, state FROM jobs")).all()
        sums = db.connection.execute(text("SELECT pages_captured, pages_failed, payload_bytes FROM job_sums")).all()
        now = db.connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
    assert [tuple(row) for row in kept] == [("j", "ACTIVE")]
    assert [tuple(row) for row in sums] == ([(5, 2, 900)] if revision < "0008" else [])
    assert now == SCHEMA_REVISION


def test_requisites_that_an_older_tracker_left_waiting_go_first(
    place: TrackerPlace, engine: Engine, migrate_to: Any
) -> None:
    """As far as they were not asked for, and without the sitemaps."""
    migrate_to("0012", job_of_revision("0012"), *(page_before_keys(n, bytes([n]) * 16) for n in range(1, 6)))
    changed = {
        2: "requisite_hops = 5",
        3: "requisite_hops = 6",
        4: "requisite_hops = 1, found_as = 27",
        5: "requisite_hops = 1, attempts_remaining = 0",
    }
    with engine.begin() as connection:
        for number, how in changed.items():
            connection.execute(text(f"UPDATE pages SET {how} WHERE id = {number}"))
    with closing(opened(place)) as db:
        found = db.connection.execute(text("SELECT nice FROM pages ORDER BY id")).scalars().all()
    assert found == [0, -1, 0, 0, 0]


def test_migrating_twice_changes_nothing(migrated: Engine, place: TrackerPlace) -> None:
    look: Callable[[Engine], Any] = catalogue if place.database else statements
    before = look(migrated)
    migrate.upgrade(migrated, "migrated")
    assert look(migrated) == before


def test_every_column_says_what_it_holds() -> None:
    columns = [column for table in metadata.sorted_tables for column in table.columns]
    assert [str(column) for column in columns if not column.comment and column.name not in OBVIOUS] == []


def test_every_table_and_index_says_what_it_is_for() -> None:
    assert [table.name for table in metadata.sorted_tables if not table.info.get("holds")] == []
    indexes = [index for table in metadata.sorted_tables for index in table.indexes]
    assert [index.name for index in indexes if not index.info.get("serves")] == []


def test_rows_that_grow_with_a_job_begin_their_key_with_it() -> None:
    tables = [table for table in metadata.sorted_tables if table.name not in OF_NO_JOB]
    first = {table.name: next(iter(table.primary_key.columns)).name for table in tables}
    assert {name: column for name, column in first.items() if column != {"jobs": "id"}.get(name, "job_id")} == {}


def test_tables_carry_the_names_of_seed_002() -> None:
    assert {"jobs", "pages", "relations", "attempts", "results", "job_rulesets"} <= set(metadata.tables)


@pytest.mark.parametrize("words", [PageState, JobState, JobOutcome, SlotLock, SessionEnding, ResultKind, ResultStatus])
def test_every_word_of_a_state_is_explained_where_it_is_defined(words):
    [defined] = [n for n in nodes(words.__module__) if getattr(n, "name", "") == words.__name__]
    after = dict(zip(defined.body, defined.body[1:], strict=False))
    for word in (node for node in defined.body if isinstance(node, ast.Assign)):
        explained = after.get(word)
        assert isinstance(explained, ast.Expr), ast.unparse(word)
        assert isinstance(ast.literal_eval(explained.value), str)
    assert len(words) == sum(isinstance(node, ast.Assign) for node in defined.body)


@pytest.mark.parametrize("revision", [revision for revision in REVISIONS if revision < "0011"])
def test_urls_of_an_older_tracker_are_known(
    place: TrackerPlace, engine: Engine, migrate_to: Any, revision: str
) -> None:
    """Revision 0011 gave them a table; no two pages of a job have one URL."""
    kept = [(1, b"b" * 16), (2, b"a" * 16), (3, bytes(range(16)))]
    migrate_to(revision, job_of_revision(revision), *(page_before_keys(*page) for page in kept))
    with closing(opened(place)) as db:
        found = db.connection.execute(text("SELECT page_id, key FROM page_keys ORDER BY page_id")).all()
    assert [(number, bytes(key)) for number, key in found] == kept
    with pytest.raises(IntegrityError), engine.begin() as connection:
        connection.execute(text("INSERT INTO page_keys VALUES (1, :key, 4)"), {"key": b"a" * 16})


KILLED_AFTER = """
import os, signal, sys
from pathlib import Path
from sqlalchemy import Engine, event
from muniment.model.place import TrackerPlace
from muniment.tracker.connect import opened

directory, database, place_id, words = sys.argv[1:]

@event.listens_for(Engine, "after_cursor_execute")
def look(connection, cursor, statement, *rest):
    if words in statement:
        os.kill(os.getpid(), signal.SIGKILL)

opened(TrackerPlace(Path(directory), database, place_id))
"""


@pytest.mark.parametrize(
    "words", ["CREATE TABLE page_keys", "INSERT INTO page_keys", "DROP INDEX uq_pages_job_id_key", "UPDATE alembic"]
)
def test_a_migration_that_is_killed_did_not_take_place(
    place: TrackerPlace, engine: Engine, migrate_to: Any, words: str
) -> None:
    migrate_to("0010", job_of_revision("0010"), page_before_keys(1, b"a" * 16))
    look: Callable[[Engine], Any] = catalogue if place.database else statements
    before = look(engine)
    engine.dispose()
    arguments = [str(place.directory), place.database, place.place_id, words]
    killed = subprocess.run([sys.executable, "-c", KILLED_AFTER, *arguments], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert look(engine) == before
    engine.dispose()
    with closing(opened(place)) as db:
        assert db.connection.execute(text("SELECT page_id FROM page_keys")).scalars().all() == [1]


def test_a_tracker_of_a_newer_program_is_not_read(place: TrackerPlace, engine: Engine) -> None:
    opened(place).close()
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(UsageError, match="was made by a newer Muniment; use that one"):
        opened(place, read_only=True)


@pytest.mark.parametrize("place", ["postgresql"], indirect=True)
def test_tables_are_not_changed_under_an_older_program(place: TrackerPlace, engine: Engine, migrate_to: Any) -> None:
    migrate_to("0010", job_of_revision("0010"))
    with engine.connect() as older:
        # as each process that writes does, whatever its revision
        older.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": 0x4D75 << 48 | 1 << 47 | 1})
        with pytest.raises(BusyError, match="1 processes of an older Muniment write to"):
            opened(place)
        older.rollback()
        older.execute(text("SELECT pg_advisory_unlock_all()"))
    opened(place).close()


@pytest.mark.parametrize(("before", "after"), [("null", []), ('"socks5h://p:1"', ["socks5h://p:1"])])
def test_the_proxy_of_an_older_job_is_the_only_one(
    engine: Engine, migrate_to: Any, before: str, after: list[str]
) -> None:
    """Revision 0003 turned the setting into a list."""
    migrate_to("0001", job_of_revision("0001", f'{{"out":"o","proxy":{before}}}'))
    migrate.upgrade(engine, "old")
    with engine.connect() as connection:
        kept = json.loads(connection.execute(text("SELECT settings FROM jobs")).scalar_one())
    assert kept == {"out": "o", "proxy": after}
