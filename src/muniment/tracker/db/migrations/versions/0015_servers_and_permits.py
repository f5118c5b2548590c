"""What servers need: who serves, whose connections hosts have, claims asked for again, and sums of all rows."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

_ASK = "number of its latest claim, as it counts them"
_HANDED_OUT = "JSON: what that claim was given, [slot, job, number before its claims, most pages] of each slot"
_LEASE = "Unix ms by the clock of leases: it ends at the next sweep after that; in a file, as last written"
_GAP = "longest gap between requests that its jobs or robots.txt ask for: with one, nobody else has the host"
_WANTED = "Unix ms: when it wanted pages of the host last"
_SERVED = "Unix ms by the clock of leases: when a server swept last; leases are moved by what nobody served"
_RESPONSES = {f"{n}xx": f"status {n}00 to {n}99" for n in range(1, 6)} | {"unknown": "another status, or none"}


def upgrade() -> None:
    """Make the tables, and add the columns. Rows of the index that were written before are in no sum of theirs."""
    on_server = op.get_bind().dialect.name == "postgresql"
    _jobs()
    _sessions(on_server=on_server)
    _host_permits()
    _servers()
    if on_server:
        for table, factor in (("sessions", 20), ("trackers", 20), ("servers", 20), ("host_permits", 50)):
            op.execute(f"ALTER TABLE {table} SET (fillfactor = {factor})")


def _jobs() -> None:
    paused = "gets no slots until it is resumed"
    op.add_column("jobs", sa.Column("paused", sa.Boolean(), nullable=False, server_default=sa.false(), comment=paused))
    op.add_column("jobs", _text("reason", "why it is paused or failed; may be empty"))
    for name, what in _RESPONSES.items():
        op.add_column("job_sums", _count(f"responses_{name}", f"index rows: {what}"))
    op.add_column("job_sums", _count("errors", "rows of the index with an error"))
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("job_sums", "payload_bytes", comment="sum of body_length over all rows")
        op.alter_column("sessions", "lease_until", comment=_LEASE)


def _sessions(*, on_server: bool) -> None:
    op.add_column("sessions", _count("ask", _ASK))
    op.add_column("sessions", _text("handed_out", _HANDED_OUT))
    op.add_column("sessions", _text("paused", "why it takes no pages: disk | operator; or empty"))
    stopping = "an operator asked it to stop"
    op.add_column(
        "sessions", sa.Column("stopping", sa.Boolean(), nullable=False, server_default=sa.false(), comment=stopping)
    )
    op.add_column("sessions", _text("address", "where its last greeting came from"))
    op.add_column("sessions", _count("news", "number of its latest news"))
    digest = "SHA-256 of what they say; NULL: there were none yet"
    op.add_column("sessions", sa.Column("news_digest", sa.LargeBinary(), comment=digest))


def _host_permits() -> None:
    op.create_table(
        "host_permits",
        sa.Column("host", sa.Text(), nullable=False, comment="host name, over all jobs"),
        sa.Column("epoch", sa.Integer(), autoincrement=False, nullable=False, comment="whose"),
        _integer("permits", "connections that it may have; 0: it waits", server_default="0"),
        sa.Column("target", sa.Integer(), comment="it is asked to keep so many; NULL: as many as it has"),
        _integer("most", "lowest --per-host of the jobs that it has the host for"),
        _integer("gap_ms", _GAP, server_default="0"),
        _count("wait_until", "Unix ms: the host's back-off ends"),
        sa.Column("wanted_at", sa.BigInteger(), nullable=False, comment=_WANTED),
        sa.Column("job_id", sa.Integer(), nullable=False, comment="the job whose limit `most` is"),
        sa.ForeignKeyConstraint(["epoch"], ["sessions.epoch"], name=op.f("fk_host_permits_epoch")),
        sa.PrimaryKeyConstraint("host", "epoch", name=op.f("pk_host_permits")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_host_permits_epoch", "host_permits", ["epoch"])
    lowered = sa.text("target IS NOT NULL")
    name = "ix_host_permits_lowered"
    op.create_index(name, "host_permits", ["epoch"], sqlite_where=lowered, postgresql_where=lowered)


def _servers() -> None:
    op.create_table(
        "trackers",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False, comment="1: there is one row"),
        sa.Column("id", sa.Text(), nullable=False, comment="random, hex: which tracker this is; pipelines keep it"),
        sa.Column("served_at", sa.BigInteger(), nullable=False, comment=_SERVED),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_trackers")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "servers",
        sa.Column("id", sa.Text(), nullable=False, comment="random, hex, made when the server began"),
        _integer("lease_ms", "the lease that it was given; the lowest of all counts"),
        sa.Column(
            "seen_at", sa.BigInteger(), nullable=False, comment="Unix ms: when it swept last; it may be gone since"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_servers")),
        sqlite_with_rowid=False,
    )


def _text(name: str, comment: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False, server_default="", comment=comment)


def _count(name: str, comment: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False, server_default="0", comment=comment)


def _integer(name: str, comment: str, server_default: str | None = None) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), nullable=False, server_default=server_default, comment=comment)
