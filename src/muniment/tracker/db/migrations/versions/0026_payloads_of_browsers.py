"""Payloads that browsers and hooks asked for are known by their own URLs: they need not be pages."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"

_PAGE = "the page that it was captured for; 0: `url` says what"
_URL = "of what a browser or a hook asked for, which need not be a page; else NULL"


def upgrade() -> None:
    """Add the columns."""
    op.add_column("payloads", sa.Column("url", sa.Text(), comment=_URL))
    op.add_column("fresh_payloads", sa.Column("url", sa.Text(), comment="as in payloads"))
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("payloads", "page_id", comment=_PAGE)
