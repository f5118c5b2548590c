"""What a run sends to a PostgreSQL server, in as few turns as can be: writes wait for the next read or the commit.

A turn of two processes costs as much as dozens of rows. A statement whose answer is not read is delayed, and goes with
what is read next; faults of it show there, still within the transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from muniment.tracker.db.postgresql_engine import adapt
from muniment.tracker.db.statements import Asked, Lookup, Prepared, Row

__all__ = ["Statements"]

_FEW = 16
"""Rows below which an insert is faster as a statement than as a COPY."""


class Statements:
    """The statements of one connection, in order."""

    def __init__(self, driver: psycopg.Connection[Any]) -> None:
        adapt(driver)
        self._driver = driver
        self._cursor = driver.cursor(binary=True)
        self._kept_back: list[tuple[str, Sequence[Any] | None]] = []

    def later(self, statement: str, values: Sequence[Any] | None = None) -> None:
        """Run a statement before the next one that is run at once."""
        self._kept_back.append((statement, values))

    def flush(self) -> None:
        """Run what was kept back."""
        if self._kept_back:
            with self._driver.pipeline():
                self._send()

    def forget(self) -> None:
        """The transaction is over: what was kept back must not come after it."""
        self._kept_back.clear()

    def run(self, statement: str, values: Sequence[Any] | None = None) -> psycopg.Cursor[Any]:
        """Run a statement after all that was kept back."""
        if not self._kept_back:
            return self._cursor.execute(statement, values, prepare=True)
        # a cursor shows one result
        with self._driver.pipeline():
            self._send()
            # its result is there when the pipeline has ended
            return self._sent(statement, values)

    def _send(self) -> None:
        kept_back, self._kept_back = self._kept_back, []
        for statement, values in kept_back:
            self._sent(statement, values)

    def _sent(self, statement: str, values: Sequence[Any] | None) -> psycopg.Cursor[Any]:
        return self._driver.cursor(binary=True).execute(statement, values, prepare=True)

    def write(self, prepared: Prepared, rows: Sequence[Row]) -> None:
        """Run a prepared statement for all rows at once, later."""
        if len(rows) >= _FEW and prepared.copy:
            self.flush()
            statement, types = prepared.copy
            with self._cursor.copy(statement) as copy:
                copy.set_types(types)
                for row in rows:
                    copy.write_row(row)
        else:
            self.later(*_batch(prepared, rows))

    def change(self, prepared: Prepared, rows: Sequence[Row]) -> int:
        """Run a prepared statement for all rows at once, now; how many rows it changed."""
        return self.run(*_batch(prepared, rows)).rowcount

    def rows(self, prepared: Prepared, values: Row) -> list[Row]:
        """All rows that a prepared statement gives."""
        return self.run(*_of_one(prepared, values)).fetchall()

    def several(self, asked: Sequence[Asked]) -> list[list[Row]]:
        """All rows that each of several prepared statements gives."""
        if len(asked) < 2:
            return [self.rows(*one) for one in asked]
        with self._driver.pipeline():
            self._send()
            cursors = [self._sent(*_of_one(prepared, values)) for prepared, values in asked]
        return [cursor.fetchall() for cursor in cursors]

    def lookup(self, lookup: Lookup, job_id: int, keys: Sequence[Any]) -> list[Row]:
        """The rows of many keys, in no order."""
        compiled = lookup.postgresql
        return self.run(compiled.sql, compiled.complete(lookup.packed(job_id, keys))).fetchall()


def _of_one(prepared: Prepared, values: Row) -> tuple[str, Row]:
    """The statement for one row of values."""
    compiled = prepared.postgresql
    return compiled.sql, values if compiled.plain else compiled.complete(values)


def _batch(prepared: Prepared, rows: Sequence[Row]) -> tuple[str, Row]:
    """The statement of a batch, with an array for each of its values."""
    compiled = prepared.postgresql
    columns = zip(*rows, strict=True)
    arrays = tuple(pack(column) for pack, column in zip(prepared.packers, columns, strict=True))
    return compiled.sql, arrays if compiled.plain else compiled.complete(arrays)
