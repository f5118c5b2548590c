"""Lines of a seed list whose URL an earlier line has, and what they say beyond it."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Make the table. What such lines of older trackers said is not known any more."""
    on_server = op.get_bind().dialect.name == "postgresql"
    job = [] if on_server else [sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_seed_repeats_job_id"))]
    said = "the line's other fields, a JSON object of strings"
    op.create_table(
        "seed_repeats",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("line", sa.BigInteger(), autoincrement=False, nullable=False, comment="counted from 1"),
        sa.Column("key", sa.LargeBinary(), nullable=False, comment="that of its URL: pages.key"),
        sa.Column("meta_json", sa.Text(), nullable=False, comment=said),
        *job,
        sa.PrimaryKeyConstraint("job_id", "line", name=op.f("pk_seed_repeats")),
        sqlite_with_rowid=False,
    )
