"""What the command line gave is kept apart from what is in force, and which rules the pages were judged by."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


_GIVEN = "what the last command line gave, as JSON: settings and patterns; both may have been changed since"
_JUDGED = "the version of job_rulesets that every waiting page was judged by; the latest, unless a kill came between"


def upgrade() -> None:
    """Add the two columns; a job without them is judged again when it is resumed."""
    op.add_column("jobs", sa.Column("given", sa.Text(), nullable=False, server_default="", comment=_GIVEN))
    op.add_column("jobs", sa.Column("judged", sa.Integer(), nullable=False, server_default="0", comment=_JUDGED))
