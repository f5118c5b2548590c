"""The tables of what Redis shows of jobs."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, LargeBinary, Table, Text

from muniment.tracker.schema.tables import metadata

__all__ = ["job_log", "live_jobs"]

QUEUED_WORDS = "when it came into the queue of Redis that it was taken from, as written there; empty: from none"
ENDING_WORDS = "SAID: its log has its end, SHOWN: so does Redis, GONE: others took its record away; or empty"
COUNTED_WORDS = "the outcome that the counts in Redis have of it; empty: none"

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
    Column("queued", Text, nullable=False, server_default="", comment=QUEUED_WORDS),
    Column("said", Integer, nullable=False, server_default="0", comment="changes in job_changes that its log has"),
    Column("ending", Text, nullable=False, server_default="", comment=ENDING_WORDS),
    Column("pipeline", Text, nullable=False, server_default="", comment="instance of the pipeline shown last"),
    Column("counted", Text, nullable=False, server_default="", comment=COUNTED_WORDS),
    Index("ix_live_jobs_ident", "ident", info={"serves": "taking a job from a queue: is it known?"}),
    sqlite_with_rowid=False,
    info={"holds": "jobs that Redis shows, and where their logs end"},
)

job_log = Table(
    "job_log",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False, comment="1, 2, 3 …: the score in Redis"),
    Column("entry", LargeBinary, nullable=False, comment="JSON, as in log.jsonl"),
    sqlite_with_rowid=False,
    info={"holds": "logs of jobs that a server shows in Redis"},
)
