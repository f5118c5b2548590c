"""Notices between the servers of one database: one changed something, and the others look at once."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import psycopg
from sqlalchemy import text

from muniment.tracker.db.database import Database
from muniment.tracker.db.postgresql_engine import engine_of
from muniment.tracker.db.postgresql_errors import ServerError, opening_fault, server_fault

__all__ = ["NoticeBoard", "give_notice"]

_CHANNEL = "muniment"


def give_notice(db: Database) -> None:
    """Have all servers of a database look what was changed; it is committed. One that does not hear it looks later."""
    db.connection.execute(text("SELECT pg_notify(:channel, '')"), {"channel": _CHANNEL})


class NoticeBoard:
    """A connection that hears notices."""

    def __init__(self, url: str) -> None:
        self._name = url
        self._engine = engine_of(url, read_only=False)
        try:
            self._connection = self._engine.connect()
            self._driver.execute(f"LISTEN {_CHANNEL}")
        except ServerError as error:
            self.close()
            raise opening_fault(error, url) from None

    @property
    def _driver(self) -> psycopg.Connection[Any]:
        driver = self._connection.connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        return driver

    def wait(self, seconds: float) -> bool:
        """Whether a notice comes in some time; raises TrackerLostError."""
        try:
            return any(True for _ in self._driver.notifies(timeout=seconds, stop_after=1))
        except ServerError as error:
            raise server_fault(error, self._name) from error

    def close(self) -> None:
        """Give the connection back; safe to call twice."""
        with suppress(*ServerError, AttributeError):
            self._connection.invalidate()
            self._connection.close()
        self._engine.dispose()
