"""The table of lines of a seed list whose URL an earlier line has; `tables` has those of all other lines."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Integer, LargeBinary, Table, Text

from muniment.tracker.schema.tables import metadata

__all__ = ["seed_repeats"]

seed_repeats = Table(
    "seed_repeats",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id"), primary_key=True),
    Column("line", BigInteger, primary_key=True, autoincrement=False, comment="counted from 1"),
    Column("key", LargeBinary, nullable=False, comment="that of its URL: pages.key"),
    Column("meta_json", Text, nullable=False, comment="the line's other fields, a JSON object of strings"),
    sqlite_with_rowid=False,
    info={"holds": "what lines of a seed list say whose URL an earlier line has: each has a row of the index"},
)
