"""What Redis is told of jobs, and where their logs end."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0020"


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "live_jobs",
        sa.Column("job_id", sa.Integer(), nullable=False),
        _text("ident", "its name in Redis; empty: none yet"),
        _text("url", "what makes the ident: the target, with a fragment"),
        _text("epoch", "the server that last had all of it, as it was"),
        _number("started_at", "Unix ms of its first start"),
        _number("log_score", "number of the last entry of its log"),
        _number("log_length", "bytes of log.jsonl up to that one"),
        _number("unknown", "answers with a status beyond 100-599"),
        _number("robots", "times that a robots.txt was asked for"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_live_jobs_job_id")),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_live_jobs")),
        sqlite_with_rowid=False,
    )


def _text(name: str, comment: str) -> "sa.Column[str]":
    return sa.Column(name, sa.Text(), nullable=False, server_default="", comment=comment)


def _number(name: str, comment: str) -> "sa.Column[int]":
    return sa.Column(name, sa.BigInteger(), nullable=False, server_default="0", comment=comment)
