"""The newest attempts of a fleet's job are found without reading all of them."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    """Add the index; the attempts of a directory's own crawl, whose log is a file, are not in it."""
    fleet = sa.text("session > 0")
    op.create_index(
        "ix_attempts_ended", "attempts", ["job_id", "finished_at"], sqlite_where=fleet, postgresql_where=fleet
    )
