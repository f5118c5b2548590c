"""The table of what Redis shows of jobs."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Integer, Table, Text

from muniment.tracker.schema.tables import metadata

__all__ = ["live_jobs"]

live_jobs = Table(
    "live_jobs",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id"), primary_key=True),
    Column("ident", Text, nullable=False, server_default="", comment="its name in Redis; empty: none yet"),
    Column("url", Text, nullable=False, server_default="", comment="what makes the ident: the target, with a fragment"),
    Column("epoch", Text, nullable=False, server_default="", comment="the server that last had all of it, as it was"),
    Column("started_at", BigInteger, nullable=False, server_default="0", comment="Unix ms of its first start"),
    Column("log_score", BigInteger, nullable=False, server_default="0", comment="number of the last entry of its log"),
    Column("log_length", BigInteger, nullable=False, server_default="0", comment="bytes of log.jsonl up to that one"),
    Column("unknown", BigInteger, nullable=False, server_default="0", comment="answers with a status beyond 100-599"),
    Column("robots", BigInteger, nullable=False, server_default="0", comment="times that a robots.txt was asked for"),
    sqlite_with_rowid=False,
    info={"holds": "jobs that Redis shows, and where their logs end"},
)
