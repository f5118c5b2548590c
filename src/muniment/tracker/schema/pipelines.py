"""The tables of pipelines: who may work for the tracker, who does now, and at which jobs.

They do not grow with a job, so their keys do not begin with one. With them, and those of the processes that write the
tracker beside each other, `metadata` has all tables.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
    event,
    false,
    text,
)
from sqlalchemy.schema import DDL

from muniment.tracker.schema.changes import job_changes, job_rulesets
from muniment.tracker.schema.cookies import cookies
from muniment.tracker.schema.guards import families, text_blocks
from muniment.tracker.schema.hooks import hook_files, hook_pages, hook_runs
from muniment.tracker.schema.live import job_log, live_jobs
from muniment.tracker.schema.seeds import seed_repeats
from muniment.tracker.schema.tables import (
    attempts,
    fresh_payloads,
    hosts,
    job_sums,
    metadata,
    page_keys,
    pages,
    payloads,
    relations,
    repairs,
    results,
    seeds,
)

__all__ = [
    "LIVE",
    "assignments",
    "cookies",
    "families",
    "hook_files",
    "hook_pages",
    "hook_runs",
    "host_permits",
    "job_changes",
    "job_log",
    "job_numbers",
    "job_rulesets",
    "live_jobs",
    "metadata",
    "pipelines",
    "servers",
    "sessions",
    "submissions",
    "text_blocks",
    "tokens",
    "trackers",
    "writers",
]

LIVE = text("sessions.ended_at IS NULL")
"""A session that has not ended; the condition of the index that finds it."""

WRITER_WORDS = "a connection that writes; its number is free again when it has ended"
COMMITS_WORDS = "counts its transactions: one without an answer took place if this has grown"
ASK_WORDS = "number of its latest claim, as it counts them"
HANDED_OUT_WORDS = "JSON: what that claim was given, [slot, job, number before its claims, most pages] of each slot"
PAUSED_WORDS = "why it takes no pages: disk | operator; or empty"
LEASE_WORDS = "Unix ms by the clock of leases: it ends at the next sweep after that; in a file, as last written"
GAP_WORDS = "longest gap between requests that its jobs or robots.txt ask for: with one, nobody else has the host"
SERVED_WORDS = "Unix ms by the clock of leases: when a server swept last; leases are moved by what nobody served"
PLANE_WORDS = "random, hex: the server that has the live plane; empty: none yet"
PLANE_UNTIL_WORDS = "Unix ms by the clock of leases: so long it has it"
LOCK_WORDS = "NONE | INDEFINITELY | UNTIL_FINISHED: while one is locked, its pipeline gets no other job"

pipelines = Table(
    "pipelines",
    metadata,
    Column("id", Text, primary_key=True, comment="its name, readable, such as berlin-2"),
    Column("token_hash", LargeBinary, nullable=False, comment="SHA-256 of its token, which is nowhere else"),
    Column("tags", Text, nullable=False, server_default="", comment="what jobs may ask for, one a line"),
    Column("matchonly", Boolean, nullable=False, comment="takes only jobs that name one of its tags"),
    Column("created_at", BigInteger, nullable=False, comment="Unix ms"),
    info={"holds": "pipelines that may work for this tracker"},
)

tokens = Table(
    "tokens",
    metadata,
    Column("name", Text, primary_key=True, comment="of the token, readable; who is noted for what its bearer does"),
    Column(
        "token_hash", LargeBinary, nullable=False, unique=True, comment="SHA-256 of the token, which is nowhere else"
    ),
    Column("scopes", Text, nullable=False, comment="read | submit | operate | admin, with a space between"),
    Column("created_at", BigInteger, nullable=False, comment="Unix ms"),
    Column("expires_at", BigInteger, comment="Unix ms; NULL: never"),
    Column("used_at", BigInteger, comment="Unix ms, to the minute; NULL: not yet"),
    sqlite_with_rowid=False,
    info={"holds": "tokens of the API: who may do what at a server"},
)

submissions = Table(
    "submissions",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id"), primary_key=True, autoincrement=False),
    Column("token", Text, nullable=False, comment="name of the token that it was made by; that may be gone"),
    Column(
        "request", Text, comment="which request made it, as its sender called it; NULL: it is not to be known again"
    ),
    Column("submitted_at", BigInteger, nullable=False, comment="Unix ms"),
    UniqueConstraint("token", "request"),
    sqlite_with_rowid=False,
    info={"holds": "jobs that were made over a network, and by whom"},
)

sessions = Table(
    "sessions",
    metadata,
    Column("epoch", Integer, primary_key=True, comment="from 1 over all pipelines: the upper part of its claims"),
    Column("pipeline_id", Text, ForeignKey("pipelines.id"), nullable=False, comment="whose it is"),
    Column("instance", Text, nullable=False, comment="hexadecimal, made when the pipeline's process began"),
    Column("version", Text, nullable=False, comment="of Muniment, there"),
    Column("slots", Integer, nullable=False, comment="how many jobs, at most, it works at beside each other"),
    Column("claims", BigInteger, nullable=False, server_default="0", comment="claims numbered so far"),
    Column("began_at", BigInteger, nullable=False, comment="Unix ms"),
    Column("lease_until", BigInteger, nullable=False, comment=LEASE_WORDS),
    Column("report", Text, nullable=False, server_default="", comment="JSON: its machine as last reported"),
    Column("reported_at", BigInteger, comment="Unix ms; NULL: no report yet"),
    Column("ended_at", BigInteger, comment="Unix ms; NULL while it is LIVE, from then on it is ENDED"),
    Column("ending", Text, nullable=False, server_default="", comment="GOODBYE | EXITED | LAPSED | REPLACED; or empty"),
    Column("ask", BigInteger, nullable=False, server_default="0", comment=ASK_WORDS),
    Column("handed_out", Text, nullable=False, server_default="", comment=HANDED_OUT_WORDS),
    Column("paused", Text, nullable=False, server_default="", comment=PAUSED_WORDS),
    Column("stopping", Boolean, nullable=False, server_default=false(), comment="an operator asked it to stop"),
    Column("address", Text, nullable=False, server_default="", comment="where its last greeting came from"),
    Column("browser", Text, nullable=False, server_default="", comment="version of its browser; empty: it has none"),
    Column("news", BigInteger, nullable=False, server_default="0", comment="number of its latest news"),
    Column("news_digest", LargeBinary, comment="SHA-256 of what they say; NULL: there were none yet"),
    Index(
        "ix_sessions_live",
        "pipeline_id",
        sqlite_where=text("ended_at IS NULL"),
        info={"serves": "the session of a pipeline, and those whose lease has run out"},
    ),
    info={"holds": "connections of pipelines, each with the lease of all its claims"},
)

assignments = Table(
    "assignments",
    metadata,
    Column("pipeline_id", Text, ForeignKey("pipelines.id"), primary_key=True, comment="whose slot it is"),
    Column("slot", Integer, primary_key=True, autoincrement=False, comment="from 0"),
    Column("job_id", Integer, ForeignKey("jobs.id"), nullable=False, comment="the job that the slot sticks to"),
    Column("lock", Text, nullable=False, server_default="NONE", comment=LOCK_WORDS),
    Column("since", BigInteger, nullable=False, comment="Unix ms"),
    info={"holds": "which job each slot works at; a slot without a job has no row"},
)

host_permits = Table(
    "host_permits",
    metadata,
    Column("host", Text, primary_key=True, comment="host name, over all jobs"),
    Column("epoch", Integer, ForeignKey("sessions.epoch"), primary_key=True, autoincrement=False, comment="whose"),
    Column("permits", Integer, nullable=False, server_default="0", comment="connections that it may have; 0: it waits"),
    Column("target", Integer, comment="it is asked to keep so many; NULL: as many as it has"),
    Column("most", Integer, nullable=False, comment="lowest --per-host of the jobs that it has the host for"),
    Column("gap_ms", Integer, nullable=False, server_default="0", comment=GAP_WORDS),
    Column("wait_until", BigInteger, nullable=False, server_default="0", comment="Unix ms: the host's back-off ends"),
    Column("wanted_at", BigInteger, nullable=False, comment="Unix ms: when it wanted pages of the host last"),
    Column("job_id", Integer, nullable=False, comment="the job whose limit `most` is"),
    Index("ix_host_permits_epoch", "epoch", info={"serves": "the hosts of a session that ends"}),
    Index(
        "ix_host_permits_lowered",
        "epoch",
        sqlite_where=text("target IS NOT NULL"),
        info={"serves": "news: the hosts of which a session is to keep fewer connections"},
    ),
    sqlite_with_rowid=False,
    info={"holds": "connections to hosts, divided over the pipelines of all jobs"},
)

trackers = Table(
    "trackers",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False, comment="1: there is one row"),
    Column("id", Text, nullable=False, comment="random, hex: which tracker this is; pipelines keep it"),
    Column("served_at", BigInteger, nullable=False, comment=SERVED_WORDS),
    Column("plane", Text, nullable=False, server_default="", comment=PLANE_WORDS),
    Column("plane_until", BigInteger, nullable=False, server_default="0", comment=PLANE_UNTIL_WORDS),
    sqlite_with_rowid=False,
    info={"holds": "what a served tracker is known by; none before it is served for the first time"},
)

servers = Table(
    "servers",
    metadata,
    Column("id", Text, primary_key=True, comment="random, hex, made when the server began"),
    Column("lease_ms", Integer, nullable=False, comment="the lease that it was given; the lowest of all counts"),
    Column("seen_at", BigInteger, nullable=False, comment="Unix ms: when it swept last; it may be gone since"),
    sqlite_with_rowid=False,
    info={"holds": "servers of this tracker that are, or were not long ago"},
)

writers = Table(
    "writers",
    metadata,
    Column("session", Integer, primary_key=True, autoincrement=False, comment=WRITER_WORDS),
    Column("commits", BigInteger, nullable=False, server_default="0", comment=COMMITS_WORDS),
    sqlite_with_rowid=False,
    info={"holds": "connections that write to a PostgreSQL tracker, each with a number that it holds a lock on"},
)

job_numbers = Table(
    "job_numbers",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id"), primary_key=True),
    Column("pages", BigInteger, nullable=False, server_default="0", comment="page numbers given out"),
    Column("hosts", Integer, nullable=False, server_default="0", comment="host numbers given out"),
    sqlite_with_rowid=False,
    info={"holds": "numbers that processes beside each other took of a job, in blocks; none for a job that one runs"},
)


def _keep(table: Table, how: str) -> None:
    """Say how PostgreSQL keeps a table: what inserts leave free of a page takes the next versions of its rows."""
    said = DDL(f"ALTER TABLE {table.name} SET ({how})")  # type: ignore[no-untyped-call]
    event.listen(table, "after_create", said.execute_if(dialect="postgresql"))


_keep(pages, "fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05")
_keep(hosts, "fillfactor = 80")
# every transaction of a connection changes its rows
_keep(job_sums, "fillfactor = 20")
_keep(writers, "fillfactor = 20")
_keep(sessions, "fillfactor = 20")
_keep(trackers, "fillfactor = 20")
_keep(servers, "fillfactor = 20")
_keep(host_permits, "fillfactor = 50")

# For each new row PostgreSQL would look at the job's, and lock it: that costs more than the row, and whoever changes
# the job's state waits for all of them.
for _growing in (
    pages,
    page_keys,
    relations,
    repairs,
    attempts,
    results,
    payloads,
    fresh_payloads,
    seeds,
    seed_repeats,
    hosts,
    job_log,
    families,
    text_blocks,
):
    for _key in _growing.foreign_key_constraints:
        _key.ddl_if(dialect="sqlite")
