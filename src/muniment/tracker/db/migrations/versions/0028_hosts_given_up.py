"""Which origins of a host the log of a fleet's job says that they were given up."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"

_GIVEN_UP = "those of its origins of which the log of a fleet's job says that they were given up, as in `answered`"


def upgrade() -> None:
    """Add the column."""
    op.add_column("hosts", sa.Column("given_up", sa.Text(), nullable=False, server_default="", comment=_GIVEN_UP))
