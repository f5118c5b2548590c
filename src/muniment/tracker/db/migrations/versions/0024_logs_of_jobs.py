"""The logs of jobs that a server shows in Redis, and what it says there only once."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"

_QUEUED = "when it came into the queue of Redis that it was taken from, as written there; empty: from none"


def upgrade() -> None:
    """Add the columns and the table."""
    with op.batch_alter_table("live_jobs") as table:
        table.add_column(_text("queued", _QUEUED))
        table.add_column(_number("said", sa.Integer(), "changes in job_changes that its log has"))
        table.add_column(_text("ending", "SAID: its log has its end, SHOWN: so does Redis; or empty"))
        table.add_column(_text("pipeline", "instance of the pipeline shown last"))
        table.create_index("ix_live_jobs_ident", ["ident"])
    with op.batch_alter_table("trackers") as table:
        table.add_column(_text("plane", "random, hex: the server that has the live plane; empty: none yet"))
        table.add_column(_number("plane_until", sa.BigInteger(), "Unix ms by the clock of leases: so long it has it"))
    keys = [] if op.get_bind().dialect.name == "postgresql" else [_job()]
    op.create_table(
        "job_log",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False, comment="1, 2, 3 …: the score in Redis"),
        sa.Column("entry", sa.LargeBinary(), nullable=False, comment="JSON, as in log.jsonl"),
        *keys,
        sa.PrimaryKeyConstraint("job_id", "seq", name=op.f("pk_job_log")),
        sqlite_with_rowid=False,
    )


def _text(name: str, comment: str) -> "sa.Column[str]":
    return sa.Column(name, sa.Text(), nullable=False, server_default="", comment=comment)


def _number(name: str, kind: sa.types.TypeEngine[int], comment: str) -> "sa.Column[int]":
    return sa.Column(name, kind, nullable=False, server_default="0", comment=comment)


def _job() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_job_log_job_id"))
