"""Several processes that write one job: who writes, and numbers of pages and hosts in blocks."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_SESSION = "a process that writes the job; 0 is the one of an embedded tracker"
_WRITER = "a connection that writes; its number is free again when it has ended"
_COMMITS = "counts its transactions: one without an answer took place if this has grown"
_SITES = "how often a host was made part of the site: who knows of fewer reads them again"


def upgrade() -> None:
    """Count transactions by connection instead of by job, and let jobs beside each other number their pages."""
    op.create_table(
        "writers",
        sa.Column("session", sa.Integer(), autoincrement=False, nullable=False, comment=_WRITER),
        sa.Column("commits", sa.BigInteger(), server_default="0", nullable=False, comment=_COMMITS),
        sa.PrimaryKeyConstraint("session", name=op.f("pk_writers")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "job_numbers",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("pages", sa.BigInteger(), server_default="0", nullable=False, comment="page numbers given out"),
        sa.Column("hosts", sa.Integer(), server_default="0", nullable=False, comment="host numbers given out"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_job_numbers_job_id")),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_job_numbers")),
        sqlite_with_rowid=False,
    )
    op.add_column("jobs", sa.Column("sites_age", sa.Integer(), server_default="0", nullable=False, comment=_SITES))
    op.drop_column("job_sums", "commits")
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("job_sums", "session", comment=_SESSION)
        op.execute("ALTER TABLE writers SET (fillfactor = 20)")
