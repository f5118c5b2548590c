"""The statements of the tracker in two dialects: the one place where the SQL of SQLite and PostgreSQL differs.

Statements are written once, with SQLAlchemy Core. Those that run per page are compiled once and handed to the driver
with tuples, because Core's handling of parameters costs more than the statement itself. SQLite runs in this process and
gets a row at a time. PostgreSQL is a round trip away and gets a batch at a time: its rows come as one array per value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Literal

from sqlalchemy import (
    ARRAY,
    Column,
    Dialect,
    Select,
    Table,
    TableValuedAlias,
    bindparam,
    column,
    func,
    literal_column,
    select,
    true,
)
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import ClauseElement, ColumnElement, visitors
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.dml import Delete, Update
from sqlalchemy.sql.elements import BindParameter
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import BigInteger, Boolean, Integer, LargeBinary, SmallInteger, Text, TypeEngine

from muniment.errors import TrackerError

__all__ = [
    "Asked",
    "BatchInsert",
    "BatchUpdate",
    "CompiledStatement",
    "HintedCompiler",
    "Lookup",
    "Prepared",
    "Row",
    "place_of",
]

Row = tuple[Any, ...]

_LARGEST_LOOKUP = 128
_COPIED = {BigInteger: "int8", Integer: "int4", SmallInteger: "int2", Boolean: "bool", Text: "text"}


class HintedCompiler(SQLiteCompiler):
    """SQLite's compiler, which leaves hints out, with hints."""

    def get_from_hint_text(self, table: Any, text: str | None) -> str | None:
        """The hint as it was given."""
        return text


class _SqliteDialect(SQLiteDialect_pysqlite):
    statement_compiler = HintedCompiler
    supports_statement_cache = True


class _PlaceOf(FunctionElement[int]):
    type = Integer()
    inherit_cache = True


def place_of(part: bytes | ColumnElement[str], whole: ColumnElement[Any]) -> ColumnElement[int]:
    """The position of bytes in other bytes, or of a text in another, counted from 1; 0 if absent."""
    return _PlaceOf(bindparam(None, part, type_=LargeBinary()) if isinstance(part, bytes) else part, whole)


@compiles(_PlaceOf, "sqlite")
def _in_sqlite(element: _PlaceOf, compiler: SQLCompiler, **how: Any) -> str:
    part, whole = (compiler.process(clause, **how) for clause in element.clauses)
    return f"instr({whole}, {part})"


@compiles(_PlaceOf, "postgresql")
def _in_postgresql(element: _PlaceOf, compiler: SQLCompiler, **how: Any) -> str:
    part, whole = (compiler.process(clause, **how) for clause in element.clauses)
    return f"position({part} in {whole})"


class CompiledStatement:
    """The text of a statement in one dialect; its rows are tuples, the statement's constants left out."""

    def __init__(self, statement: ClauseElement, dialect: Dialect, names: Sequence[str]) -> None:
        compiled = statement.compile(dialect=dialect)
        assert isinstance(compiled, SQLCompiler)
        order = tuple(compiled.positiontup or ())
        constants = {name: value for name, value in compiled.params.items() if name not in names}
        if tuple(name for name in order if name in names) != tuple(names) or any(v is None for v in constants.values()):
            raise TrackerError(f"the statement takes {order}, not {tuple(names)}")
        # in binary, psycopg makes arrays four times as fast
        self.sql = str(compiled).replace("%s", "%b")
        self._order = tuple((name in names, constants.get(name)) for name in order)
        self.plain = not constants

    def complete(self, row: Row) -> Row:
        """The row with the statement's constants in their places."""
        given = iter(row)
        return tuple(next(given) if taken else constant for taken, constant in self._order)


class Prepared:
    """A statement compiled once for each database; its rows are tuples in the order of `names`."""

    def __init__(self, statement: ClauseElement, *names: str) -> None:
        self._statement, self._names = statement, names

    @cached_property
    def _sqlite(self) -> CompiledStatement:
        # when it is first needed, because a short run needs few of them and each takes about a millisecond
        return CompiledStatement(self._statement, _SqliteDialect(paramstyle="qmark"), self._names)

    def together(self, rows: Sequence[Row]) -> Iterable[Row]:
        """A batch of rows as SQLite's statement takes them."""
        return rows if self.plain else map(self.complete, rows)

    @cached_property
    def sql(self) -> str:
        """SQLite's text."""
        return self._sqlite.sql

    @cached_property
    def plain(self) -> bool:
        """Whether the values are all that is bound."""
        return self._sqlite.plain

    @cached_property
    def complete(self) -> Callable[[Row], Row]:
        """Puts the statement's constants into a row."""
        return self._sqlite.complete

    @cached_property
    def postgresql(self) -> CompiledStatement:
        """For one row of values; a write that answers nothing takes arrays of them instead, and so a batch of rows."""
        statement = self._statement
        if isinstance(statement, Update | Delete) and not statement.returning_column_descriptions:
            statement = self._batched(statement)
        return CompiledStatement(statement, _server_dialect(), self._names)

    @cached_property
    def packers(self) -> tuple[Callable[[Sequence[Any]], bytes], ...]:
        """The functions that make an array of the values of each name, for a batch of rows on PostgreSQL."""
        return tuple(_packer(self._kinds[name]) for name in self._names)

    @cached_property
    def copy(self) -> tuple[str, list[str]] | None:
        """COPY and the types of its columns, where that does the same for a batch of rows; PostgreSQL's."""
        return None

    @cached_property
    def _kinds(self) -> dict[str, TypeEngine[Any]]:
        """The type of each value: that of the column which it is set to or compared with."""
        compiled = self._statement.compile(dialect=_server_dialect())
        assert isinstance(compiled, SQLCompiler)
        return {name: bound.type for name, bound in compiled.binds.items()}

    def _batched(self, statement: Update | Delete) -> ClauseElement:
        """The statement for all rows at once: what was a value is a column of the rows that the arrays unfold to."""
        rows = _unfolded({name: self._kinds[name] for name in self._names})

        def replaced(element: Any, **_how: Any) -> ColumnElement[Any] | None:
            return rows.c[element.key] if isinstance(element, BindParameter) and element.key in self._names else None

        batched: ClauseElement = visitors.replacement_traverse(statement, {}, replaced)  # type: ignore[assignment]
        return batched


class BatchInsert(Prepared):
    """An insert of rows, which are tuples in the order of `columns`.

    `conflict` says what becomes of a row whose key is there already: an error without it, else OR IGNORE or OR REPLACE
    of SQLite, which mean the same on PostgreSQL.
    """

    def __init__(self, table: Table, *columns: str, conflict: Literal["", "IGNORE", "REPLACE"] = "") -> None:
        statement = table.insert().values({name: bindparam(name) for name in columns})
        super().__init__(statement.prefix_with(f"OR {conflict}") if conflict else statement, *columns)
        self._table, self._conflict = table, conflict

    @cached_property
    def postgresql(self) -> CompiledStatement:
        """For all rows at once."""
        from sqlalchemy.dialects import postgresql  # noqa: PLC0415  (a twentieth of a second that SQLite need not spend)

        rows = _unfolded(self._kinds)
        insert = postgresql.insert(self._table)
        batched = insert.from_select(list(self._names), select(*rows.c).select_from(rows))
        if self._conflict == "IGNORE":
            batched = batched.on_conflict_do_nothing()
        elif self._conflict == "REPLACE":
            keys = [column.name for column in self._table.columns if column.primary_key]
            rest = {name: batched.excluded[name] for name in self._names if name not in keys}
            batched = batched.on_conflict_do_update(index_elements=keys, set_=rest)
        return CompiledStatement(batched, _server_dialect(), self._names)

    @cached_property
    def copy(self) -> tuple[str, list[str]] | None:
        """COPY and the types of its columns, unless rows may meet their key; PostgreSQL's."""
        if self._conflict:
            return None
        columns = ", ".join(f'"{name}"' for name in self._names)
        types = [_COPIED.get(type(kind), "bytea") for kind in self._kinds.values()]
        return f'COPY "{self._table.name}" ({columns}) FROM STDIN (FORMAT BINARY)', types

    @cached_property
    def _kinds(self) -> dict[str, TypeEngine[Any]]:
        return {name: self._table.c[name].type for name in self._names}


Asked = tuple[Prepared, Row]
"""A statement that is to be run, and its values."""


class BatchUpdate(Prepared):
    """A write to rows of a job, found by a key that is the last of `names`.

    Rows of a batch that differ in nothing but the key are one statement on SQLite: running it is most of what it costs.
    """

    def __init__(self, statement: Update, key: Column[Any], *names: str) -> None:
        super().__init__(statement.where(key == bindparam(names[-1])), *names)
        keys = func.json_each(bindparam(names[-1])).table_valued("value", name="told")
        self._of_many = Prepared(statement.where(key.in_(select(keys.c.value))), *names)

    @cached_property
    def _sqlite(self) -> CompiledStatement:
        return self._of_many._sqlite

    def together(self, rows: Sequence[Row]) -> Iterable[Row]:
        """The rows by what they share, each with all of its keys as JSON."""
        alike: dict[Row, list[int]] = {}
        for row in rows:
            alike.setdefault(row[:-1], []).append(row[-1])
        return super().together([(*shared, str(keys)) for shared, keys in alike.items()])


class Lookup:
    """A select of the rows whose key is among many, within one job.

    SQLite has it compiled for 1, 2, 4 … 128 keys; PostgreSQL takes all of them as an array. Without statistics SQLite
    would rather read a whole job than look up three keys in another index than the primary one: name it in a hint.
    With `locks`, the rows are locked until the transaction ends.
    """

    def __init__(self, statement: Select[Any], job: Column[Any], key: Column[Any], *, locks: bool = False) -> None:
        self._statement, self._job, self._key, self._locks = statement, job, key, locks
        self._prepared: dict[int, Prepared] = {}

    def batches(self, job_id: int, keys: Sequence[Any]) -> Iterator[tuple[Prepared, Row]]:
        """SQLite's statements to run, with their values; a short batch repeats its last key."""
        for at in range(0, len(keys), _LARGEST_LOOKUP):
            chunk = tuple(keys[at : at + _LARGEST_LOOKUP])
            size = 1 << (len(chunk) - 1).bit_length()
            yield self._of_size(size), (job_id, *chunk, *chunk[-1:] * (size - len(chunk)))

    def _of_size(self, size: int) -> Prepared:
        prepared = self._prepared.get(size)
        if prepared is None:
            names = [f"key{i}" for i in range(size)]
            among = self._key.in_([bindparam(name) for name in names])
            prepared = Prepared(self._statement.where(self._job == bindparam("job"), among), "job", *names)
            self._prepared[size] = prepared
        return prepared

    @cached_property
    def postgresql(self) -> CompiledStatement:
        """PostgreSQL's statement; its values are an array of keys, each once, and one that repeats the job (`packed`).

        Each key is sought by itself. A planner takes a job for a few rows until its tables are analysed, and would
        rather read all of them and compare each with the keys; OFFSET 0 keeps it from that.
        """
        arrays = [bindparam("jobs", type_=ARRAY(self._job.type)), bindparam("keys", type_=ARRAY(self._key.type))]
        columns = column("job", self._job.type), column("key", self._key.type)
        told = func.unnest(*arrays).table_valued(*columns, name="told").render_derived()
        sought = self._statement.where(self._job == told.c.job, self._key == told.c.key).offset(literal_column("0"))
        if self._locks:
            sought = sought.with_for_update(of=self._key.table)
        found = sought.lateral("found")
        return CompiledStatement(
            select(found).select_from(told.join(found, true())), _server_dialect(), ("jobs", "keys")
        )

    def packed(self, job_id: int, keys: Sequence[Any]) -> Row:
        """The values of PostgreSQL's statement."""
        each = list(dict.fromkeys(keys))
        jobs, packed = self._packers
        return jobs([job_id] * len(each)), packed(each)

    @cached_property
    def _packers(self) -> tuple[Callable[[Sequence[Any]], bytes], ...]:
        return _packer(self._job.type), _packer(self._key.type)


def _server_dialect() -> Dialect:
    from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg  # noqa: PLC0415  (not for SQLite)

    dialect: Dialect = PGDialect_psycopg(paramstyle="format")  # type: ignore[no-untyped-call]
    return dialect


def _packer(kind: TypeEngine[Any]) -> Callable[[Sequence[Any]], bytes]:
    from muniment.tracker.db.postgresql_arrays import array_of  # noqa: PLC0415  (its driver is not for SQLite)

    return array_of(kind)


def _unfolded(kinds: dict[str, TypeEngine[Any]]) -> TableValuedAlias:
    """The rows that one array for each name unfolds to."""
    arrays = [bindparam(name, type_=ARRAY(kind)) for name, kind in kinds.items()]
    columns = [column(name, kind) for name, kind in kinds.items()]
    return func.unnest(*arrays).table_valued(*columns, name="told").render_derived()
