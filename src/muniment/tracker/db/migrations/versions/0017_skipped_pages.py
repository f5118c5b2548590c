"""Pages that were left out are counted and listed without reading all others."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Add the index."""
    skipped = sa.text("state = 'SKIPPED'")
    op.create_index("ix_pages_skipped", "pages", ["job_id", "id"], sqlite_where=skipped, postgresql_where=skipped)
