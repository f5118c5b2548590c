"""Which jobs may need a browser, and which pipelines have one."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"

_RENDERS = "its pages may need a browser, by its engine or its rules: pipelines without one do not get it"


def upgrade() -> None:
    """Add the columns."""
    op.add_column(
        "jobs", sa.Column("renders", sa.Boolean(), nullable=False, server_default=sa.false(), comment=_RENDERS)
    )
    browser = "version of its browser; empty: it has none"
    op.add_column("sessions", sa.Column("browser", sa.Text(), nullable=False, server_default="", comment=browser))
