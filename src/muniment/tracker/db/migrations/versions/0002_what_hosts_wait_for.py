"""What hosts asked us to wait for."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Give the hosts their waits; those of an older tracker have none."""
    with op.batch_alter_table("hosts") as hosts:
        hosts.add_column(_number("crawl_delay_ms", sa.Integer(), "gap that its robots.txt asks for"))
        hosts.add_column(_number("wait_until", sa.BigInteger(), "Unix ms: nothing is asked before"))
        hosts.add_column(
            sa.Column("wait_reason", sa.Text(), server_default="", nullable=False, comment="why; empty without a wait")
        )
        hosts.add_column(_number("strikes", sa.SmallInteger(), "bad answers in a row: back-off"))


def _number(name: str, kind: sa.types.TypeEngine[int], comment: str) -> sa.Column[int]:
    return sa.Column(name, kind, server_default="0", nullable=False, comment=comment)
