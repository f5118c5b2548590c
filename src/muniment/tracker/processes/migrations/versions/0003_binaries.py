"""Programs that hooks found have rows."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "binaries",
        sa.Column("machine_id", sa.Text(), comment="soft reference to machines"),
        sa.Column("name", sa.Text(), comment="as it is called"),
        sa.Column("abspath", sa.Text(), comment="its absolute path"),
        sa.Column("version", sa.Text(), nullable=False, comment="empty: not said"),
        sa.Column("sha256", sa.Text(), nullable=False, comment="hex; empty: not said"),
        sa.Column("binprovider", sa.Text(), nullable=False, comment="what provides it: env, apt, pip; empty: not said"),
        sa.Column("seen_at", sa.BigInteger(), nullable=False, comment="Unix ms: when a hook last reported it"),
        sa.PrimaryKeyConstraint("machine_id", "name", "abspath", name="pk_binaries"),
    )
