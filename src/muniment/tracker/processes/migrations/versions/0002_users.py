"""Rows say which user of their machine they belong to; each user prunes its own."""

import os

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the user; a file belongs to one, and so do its rows."""
    comment = "the user of its machine that it runs as, who alone judges it; NULL not known"
    op.add_column("processes", sa.Column("uid", sa.BigInteger(), nullable=True, comment=comment))
    op.drop_column("machines", "pruned_at")
    if op.get_bind().dialect.name == "sqlite":
        op.execute(f"UPDATE processes SET uid = {os.geteuid()}")  # noqa: S608  (a number)
