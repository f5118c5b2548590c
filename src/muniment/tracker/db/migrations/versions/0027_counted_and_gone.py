"""What the counts in Redis have of a job, and whether others took its record away."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"

_ENDING = "SAID: its log has its end, SHOWN: so does Redis, GONE: others took its record away; or empty"
_COUNTED = "the outcome that the counts in Redis have of it; empty: none"


def upgrade() -> None:
    """Add the column, and say what another may have."""
    op.add_column("live_jobs", sa.Column("counted", sa.Text(), nullable=False, server_default="", comment=_COUNTED))
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("live_jobs", "ending", comment=_ENDING)
