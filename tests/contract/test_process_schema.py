"""The store of processes: its migrations, the text that SQLite gets and the tables of the code are the same."""

from __future__ import annotations

import os
import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, text

import muniment.tracker.processes.postgresql as engine_module
from muniment.errors import TrackerError
from muniment.model.process import Machine, Process
from muniment.tracker.db.postgresql_engine import server_engine
from muniment.tracker.processes.postgresql import migrate_processes, processes_at, processes_on
from muniment.tracker.processes.sqlite import PROCESSES_FILE, open_processes
from muniment.tracker.processes.store import COLUMNS, PROCESSES_REVISION
from muniment.tracker.schema.processes import VERSION_TABLE, machines, metadata, processes


def statements(path: Path) -> dict[str, str]:
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    connection.close()
    return {name: re.sub(r"[\s\"']+", " ", sql).replace("( ", "(").replace(" )", ")") for name, sql in rows}


@pytest.fixture
def migrated(tmp_path):
    engine = create_engine(f"sqlite:///{tmp_path / 'migrated.sqlite'}")
    migrate_processes(engine)
    yield engine
    engine.dispose()


def test_sqlites_text_makes_what_the_migrations_make(migrated, tmp_path):
    open_processes(tmp_path).close()
    assert statements(tmp_path / PROCESSES_FILE) == statements(tmp_path / "migrated.sqlite")


def test_alembic_finds_no_difference(migrated):
    with migrated.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, metadata) == []


def test_the_revision_of_the_code_is_the_head():
    config = Config()
    config.set_main_option("script_location", str(Path(engine_module.__file__).parent / "migrations"))
    assert ScriptDirectory.from_config(config).get_heads() == [PROCESSES_REVISION]


def test_on_a_server_two_that_find_no_tables_make_them_once_as_the_code_has_them(postgres):
    url = postgres.create("of_processes")
    with ThreadPoolExecutor() as both:
        stores = list(both.map(processes_at, (url, url)))
    for store in (*stores, processes_at(url)):
        assert store.newest(1) == []
        store.close()
    engine = server_engine(url, "")
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, metadata) == []
        assert connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).all() == [(PROCESSES_REVISION,)]
    engine.dispose()


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=lambda table: table.name)
def test_every_column_says_what_it_holds(table):
    assert [column.name for column in table.columns if not column.comment] == []


def test_values_have_the_fields_of_the_rows():
    assert {column.name for column in processes.columns} == set(COLUMNS)
    assert {field for field in Process.__struct_fields__ if field not in {"stdout", "stderr"}} <= set(COLUMNS)
    assert set(Machine.__struct_fields__) == {column.name for column in machines.columns}


def test_what_the_seed_asks_to_be_indexed_is():
    indexed = {tuple(column.name for column in index.columns) for index in processes.indexes}
    assert {("parent_id", "status"), ("machine_id", "pid", "status"), ("root_id", "status")} <= indexed


def test_a_store_that_migrations_made_is_opened_as_it_is(migrated, tmp_path):
    (tmp_path / "migrated.sqlite").rename(tmp_path / PROCESSES_FILE)
    store = open_processes(tmp_path)
    assert store.newest(1) == []
    store.close()


def test_rows_of_the_first_version_belong_to_the_owner_of_the_file(tmp_path):
    engine = create_engine(f"sqlite:///{tmp_path / PROCESSES_FILE}")
    migrate_processes(engine, "0001")
    with engine.begin() as connection:
        values = "'a', 'a', 0, 1, 'cli', '', 'running', 'm', 'b', 1, '[]', '', '[]', '', 1, 1"
        names = (
            "id, root_id, depth, attempt, process_type, label, status, machine_id, boot_id, pid_namespace, cmd, pwd,"
            " env, directory, queued_at, beat_at"
        )
        connection.execute(text(f"INSERT INTO processes ({names}) VALUES ({values})"))
    engine.dispose()
    store = open_processes(tmp_path)
    assert [(row.id, row.uid) for row in store.newest(1)] == [("a", os.geteuid())]
    store.close()


def test_a_store_of_a_newer_version_is_refused(tmp_path):
    open_processes(tmp_path).close()
    with sqlite3.connect(tmp_path / PROCESSES_FILE) as connection:
        connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    connection.close()
    with pytest.raises(TrackerError, match="made by a newer Muniment"):
        open_processes(tmp_path)
    engine = create_engine(f"sqlite:///{tmp_path / PROCESSES_FILE}")
    with pytest.raises(TrackerError, match="made by a newer Muniment"):
        processes_on(engine)
    engine.dispose()
