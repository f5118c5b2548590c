"""The newest payloads lie together on SQLite, and keys of its last pages are not written yet: digests come in bulk."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

_AS_IN_PAYLOADS = "as in payloads"
_DIGEST = "as in payloads, where it comes with many others"


def upgrade() -> None:
    """Make the table of the newest payloads. All keys of an older tracker are written: nothing is to be remembered."""
    on_server = op.get_bind().dialect.name == "postgresql"
    job = [] if on_server else [sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_fresh_payloads_job_id"))]
    op.create_table(
        "fresh_payloads",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False, comment=_DIGEST),
        sa.Column("page_id", sa.BigInteger(), nullable=False),
        sa.Column("captured_at", sa.BigInteger(), nullable=False, comment=_AS_IN_PAYLOADS),
        sa.Column("record_id", sa.LargeBinary(), nullable=False, comment=_AS_IN_PAYLOADS),
        sa.Column("number", sa.BigInteger(), nullable=False, comment="in the order of their captures"),
        *job,
        sa.PrimaryKeyConstraint("job_id", "number", name=op.f("pk_fresh_payloads")),
        sqlite_with_rowid=False,
    )
