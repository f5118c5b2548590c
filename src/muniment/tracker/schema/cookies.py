"""The table of the cookie jar of a job."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Integer, Table, Text

from muniment.tracker.schema.tables import metadata

__all__ = ["cookies"]

cookies = Table(
    "cookies",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id"), primary_key=True),
    Column("domain", Text, primary_key=True, comment="host name, without a leading dot"),
    Column("name", Text, primary_key=True, comment="may be empty"),
    Column("path", Text, primary_key=True, comment="goes to URLs below it"),
    Column("value", Text, nullable=False),
    Column("host_only", Boolean, nullable=False, comment="not for hosts below the domain"),
    Column("secure", Boolean, nullable=False, comment="over TLS only"),
    Column("http_only", Boolean, nullable=False, comment="kept for the cookie file that is written at the end"),
    Column("expires_at", BigInteger, nullable=False, comment="Unix s; 0: with the job; a time gone by: deleted"),
    Column("set_at", BigInteger, nullable=False, comment="Unix µs at which it was set; the later one counts"),
    sqlite_with_rowid=False,
    info={"holds": "the cookie jar of a job"},
)
