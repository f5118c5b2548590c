"""Seed lists: what their lines say beyond a URL, how far they were read, and which page a redirect belongs to."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0004"


def upgrade() -> None:
    """Make the two tables; pages of older jobs belong to no list."""
    op.add_column(
        "pages",
        sa.Column(
            "seed_id",
            sa.BigInteger(),
            comment="in a fetch, the page of the seed line whose redirects led here; NULL for pages of the list",
        ),
    )
    op.create_table(
        "seeds",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column(
            "page_id",
            sa.BigInteger(),
            autoincrement=False,
            nullable=False,
            comment="the page of a seed line that says more than its URL",
        ),
        sa.Column("line", sa.BigInteger(), nullable=False, comment="counted from 1"),
        sa.Column(
            "digest", sa.Text(), nullable=False, comment="SHA-1 of the payload that the list knows, hex; or empty"
        ),
        sa.Column("etag", sa.Text(), nullable=False, comment="validator that the list knows, or empty"),
        sa.Column("last_modified", sa.Text(), nullable=False, comment="validator that the list knows, or empty"),
        sa.Column(
            "captured_at", sa.BigInteger(), comment="Unix µs: when what the list knows was recorded; NULL: not known"
        ),
        sa.Column(
            "meta_json",
            sa.Text(),
            nullable=False,
            comment="the line's other fields, a JSON object of strings; or empty",
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_seeds_job_id")),
        sa.PrimaryKeyConstraint("job_id", "page_id", name=op.f("pk_seeds")),
        sqlite_with_rowid=False,
    )
    _create_seed_lists()


def _create_seed_lists() -> None:
    counts = (
        ("place_offset", "where to read on: bytes or rows"),
        ("place_number", "number of the last line read"),
        ("lines", "URLs taken, of this shard"),
        ("bad", "lines that are not a URL, and bad fields"),
        ("duplicates", "lines whose URL an earlier one has"),
    )
    op.create_table(
        "seed_lists",
        sa.Column("job_id", sa.Integer(), nullable=False),
        *(
            sa.Column(name, sa.BigInteger(), nullable=False, server_default="0", comment=comment)
            for name, comment in counts
        ),
        sa.Column("ended", sa.Boolean(), nullable=False, server_default=sa.false(), comment="the whole list was read"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_seed_lists_job_id")),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_seed_lists")),
        sqlite_with_rowid=False,
    )
