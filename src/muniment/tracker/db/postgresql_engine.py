"""How this program connects to a PostgreSQL server: what it asks of the way, of the planner and of the driver."""

from __future__ import annotations

import logging
from typing import Any

import psycopg
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.types.string import StrBinaryDumper, StrDumperUnknown
from sqlalchemy import Engine, create_engine, make_url
from sqlalchemy.pool import NullPool

from muniment.tracker.db.postgresql_arrays import adapt_arrays

__all__ = ["PLANNING", "adapt", "engine_of", "server_engine"]

_UNWANTED = ("seqscan", "bitmapscan", "hashjoin", "mergejoin", "sort", "incremental_sort")
PLANNING = " ".join(["-c jit=off", *(f"-c enable_{kind}=off" for kind in _UNWANTED)])
"""Every statement of a run finds rows by a key: the planner needs no statistics, which a new table lacks."""
_DURABLE = "-c synchronous_commit=on"
"""What is announced as done must outlast a crash of the server, whatever that does for others."""
_CONNECTING = {
    "application_name": "muniment",
    "connect_timeout": 10,
    # a way that is cut without a word is noticed within a minute
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}

# it warns that a pipeline ended with its connection, which is told in our own words
logging.getLogger("psycopg").setLevel(logging.ERROR)


class _Text(StrDumperUnknown):
    """PostgreSQL's text has no NUL: what a server sent with one is kept without."""

    def dump(self, obj: str) -> Any:
        return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)


class _BinaryText(StrBinaryDumper):
    def dump(self, obj: str) -> Any:
        return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)


def server_engine(url: str, options: str, **how: Any) -> Engine:
    """An engine for a database on a server; the connections are made as all of ours, with these options."""
    target = make_url(url).set(drivername="postgresql+psycopg")
    return create_engine(target, connect_args={**_CONNECTING, "options": options}, **how)


def engine_of(url: str, *, read_only: bool) -> Engine:
    """The engine for the tracker of a URL; it does not connect yet."""
    how = {} if read_only else {"isolation_level": "AUTOCOMMIT"}
    options = "-c default_transaction_read_only=on" if read_only else f"{PLANNING} {_DURABLE}"
    return server_engine(url, options, poolclass=NullPool, **how)


def adapt(driver: psycopg.Connection[Any]) -> None:
    """One type for each value of a statement, whatever its size: the server prepares it once."""
    for dumper in (_BinaryText, _Text):
        driver.adapters.register_dumper(str, dumper)
    driver.adapters.register_dumper(int, Int8BinaryDumper)
    adapt_arrays(driver)
