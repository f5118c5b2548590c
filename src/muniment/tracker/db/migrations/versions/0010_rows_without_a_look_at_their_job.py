"""Rows that grow with the pages of a job are written without a look at the job's row, on PostgreSQL (decision 0106)."""

from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Take the foreign keys away of the tables that get rows with every batch; SQLite never looked at them."""
    if op.get_bind().dialect.name == "postgresql":
        for table in ("pages", "relations", "repairs", "attempts", "results", "payloads", "seeds", "hosts"):
            op.drop_constraint(f"fk_{table}_job_id", table, type_="foreignkey")
