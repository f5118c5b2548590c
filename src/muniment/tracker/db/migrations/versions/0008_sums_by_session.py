"""Several jobs in one database, and the sums of a job in a row for each session that adds to them."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_SUMS = (
    ("pages_captured", "pages with a complete capture"),
    ("pages_failed", "pages whose last try failed"),
    ("starts_captured", "start pages with an answer"),
    ("requisites_captured", "captured as requisite only"),
    ("payload_bytes", "sum of body_length"),
)
_PLACE = "the random word in the output directory's tracker.place; empty in an embedded tracker"
_SESSION = "a process that writes the job; 0 is one that runs it alone"
_COMMITS = "counts its transactions: one without an answer took place if this has grown; PostgreSQL alone"
_FILL = (
    ("pages", "fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05"),
    ("job_sums", "fillfactor = 20"),
    ("hosts", "fillfactor = 80"),
)


def upgrade() -> None:
    """Move the sums of each job to a row of their own; a job of an older tracker has no place but its file."""
    op.create_table(
        "job_sums",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("session", sa.Integer(), autoincrement=False, nullable=False, comment=_SESSION),
        _number("commits", _COMMITS),
        *(_number(name, comment) for name, comment in _SUMS),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_job_sums_job_id")),
        sa.PrimaryKeyConstraint("job_id", "session", name=op.f("pk_job_sums")),
        sqlite_with_rowid=False,
    )
    names = ", ".join(name for name, _ in _SUMS)
    op.execute(f"INSERT INTO job_sums (job_id, session, {names}) SELECT id, 0, {names} FROM jobs")  # noqa: S608
    for name, _ in _SUMS:
        op.drop_column("jobs", name)
    op.add_column("jobs", sa.Column("place_id", sa.Text(), nullable=False, server_default="", comment=_PLACE))
    placed = sa.text("place_id <> ''")
    op.create_index("uq_jobs_place_id", "jobs", ["place_id"], unique=True, sqlite_where=placed, postgresql_where=placed)
    if op.get_bind().dialect.name == "postgresql":
        for table, how in _FILL:
            op.execute(f"ALTER TABLE {table} SET ({how})")


def _number(name: str, comment: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), server_default="0", nullable=False, comment=comment)
