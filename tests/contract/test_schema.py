"""The tracker's tables: what the migrations make is what the code expects, and every column says what it holds."""

from __future__ import annotations

import ast
import json
import re
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from source_tree import trees
from sqlalchemy import Engine, create_engine, text

import muniment.tracker.migrate as migrate
from muniment.model.job import JobState, Outcome
from muniment.model.page import PageState
from muniment.model.pipeline import Ending, Lock
from muniment.model.result import ResultKind, ResultStatus
from muniment.tracker.engine import SCHEMA_REVISION, Database
from muniment.tracker.tables import metadata

OBVIOUS = {"id", "job_id", "host_id", "page_id", "parent_id", "attempt", "value", "text"}

OF_NO_JOB = {"pipelines", "sessions", "assignments"}
"""Their rows do not grow with a job."""


@pytest.fixture
def migrated(tmp_path):
    engine = create_engine(f"sqlite:///{tmp_path / 'migrated.sqlite'}")
    migrate.upgrade(engine, "migrated")
    yield engine
    engine.dispose()


def statements(engine: Engine) -> dict[str, str]:
    """The SQL of every table and index, spaces and quotes apart."""
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")).all()
    tidy = {name: re.sub(r"\s+", " ", sql.replace('"', "")).replace("( ", "(").replace(" )", ")") for name, sql in rows}
    return {name: sql for name, sql in tidy.items() if name != "alembic_version"}


def columns_in_any_order(sql: str) -> tuple[str, list[str]]:
    head, _, rest = sql.partition("(")
    return head, sorted(re.split(r", (?![^(]*\))", rest))


def test_migrations_make_the_tables_of_the_code(migrated, tmp_path):
    with closing(Database.open_sqlite(tmp_path / "made.sqlite")) as made:
        expected = statements(made.engine)
    found = statements(migrated)
    assert set(found) == set(expected)
    for name, sql in expected.items():
        assert columns_in_any_order(found[name]) == columns_in_any_order(sql), name


def test_alembic_finds_no_difference(migrated):
    with migrated.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(Path(migrate.__file__).parent / "migrations"))
    return ScriptDirectory.from_config(config)


def test_the_revision_of_the_code_is_the_head():
    assert scripts().get_heads() == [SCHEMA_REVISION]


def test_a_migrated_tracker_is_of_the_codes_revision(migrated):
    with migrated.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one() == SCHEMA_REVISION


def test_migrating_twice_changes_nothing(migrated):
    before = statements(migrated)
    migrate.upgrade(migrated, "migrated")
    assert statements(migrated) == before


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=lambda table: table.name)
def test_every_column_says_what_it_holds(table):
    assert [column.name for column in table.columns if not column.comment and column.name not in OBVIOUS] == []


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=lambda table: table.name)
def test_every_table_and_index_says_what_it_is_for(table):
    assert table.info.get("holds")
    assert [index.name for index in table.indexes if not index.info.get("serves")] == []


@pytest.mark.parametrize(
    "table", [table for table in metadata.sorted_tables if table.name not in OF_NO_JOB], ids=lambda table: table.name
)
def test_rows_that_grow_with_a_job_begin_their_key_with_it(table):
    first = next(iter(table.primary_key.columns)).name
    assert first == {"jobs": "id"}.get(table.name, "job_id")


def test_tables_carry_the_names_of_seed_002():
    assert {"jobs", "pages", "relations", "attempts", "results", "job_rulesets"} <= set(metadata.tables)


@pytest.mark.parametrize("words", [PageState, JobState, Outcome, Lock, Ending, ResultKind, ResultStatus])
def test_every_word_of_a_state_is_explained_where_it_is_defined(words):
    [defined] = [n for n in ast.walk(trees()[words.__module__]) if getattr(n, "name", "") == words.__name__]
    after = dict(zip(defined.body, defined.body[1:], strict=False))
    for word in (node for node in defined.body if isinstance(node, ast.Assign)):
        explained = after.get(word)
        assert isinstance(explained, ast.Expr), ast.unparse(word)
        assert isinstance(ast.literal_eval(explained.value), str)
    assert len(words) == sum(isinstance(node, ast.Assign) for node in defined.body)


@pytest.mark.parametrize(("before", "after"), [("null", []), ('"socks5h://p:1"', ["socks5h://p:1"])])
def test_the_proxy_of_an_older_job_is_the_only_one(tmp_path, before, after):
    """Revision 0003 turned the setting into a list."""
    engine = create_engine(f"sqlite:///{tmp_path / 'old.sqlite'}")
    config = Config()
    config.set_main_option("script_location", str(Path(migrate.__file__).parent / "migrations"))
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        connection.execute(
            text(
                "INSERT INTO jobs (name, state, settings, start_digest, created_at) VALUES ('j', 'ACTIVE', :s, '', 0)"
            ),
            {"s": f'{{"out":"o","proxy":{before}}}'},
        )
        connection.commit()
    migrate.upgrade(engine, "old")
    with engine.connect() as connection:
        kept = json.loads(connection.execute(text("SELECT settings FROM jobs")).scalar_one())
    assert kept == {"out": "o", "proxy": after}
    engine.dispose()
