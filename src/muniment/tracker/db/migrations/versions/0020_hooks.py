"""Hooks: the pages that wait for them, their tries, and the files that they left."""

from alembic import op

from muniment.tracker.schema.hooks import hook_files, hook_pages, hook_runs

revision = "0020"
down_revision = "0017"


def upgrade() -> None:
    """Make the tables."""
    for table in (hook_pages, hook_runs, hook_files):
        table.create(op.get_bind())
