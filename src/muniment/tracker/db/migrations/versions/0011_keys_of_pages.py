"""Known URLs have a table of their own: to an index of pages, PostgreSQL writes with each change of a page."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

_KEY = "16-byte hash of a normalised URL: pages.key"
_OF_PAGE = "16-byte hash of the normalised URL; found by page_keys"


def upgrade() -> None:
    """Copy the keys of all pages into their table, in its order, and drop the index."""
    on_server = op.get_bind().dialect.name == "postgresql"
    job = [] if on_server else [sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_page_keys_job_id"))]
    op.create_table(
        "page_keys",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.LargeBinary(), nullable=False, comment=_KEY),
        sa.Column("page_id", sa.BigInteger(), nullable=False, comment="the page of that URL"),
        *job,
        sa.PrimaryKeyConstraint("job_id", "key", name=op.f("pk_page_keys")),
        sqlite_with_rowid=False,
    )
    op.execute("INSERT INTO page_keys (job_id, key, page_id) SELECT job_id, key, id FROM pages ORDER BY job_id, key")
    op.drop_index("uq_pages_job_id_key", "pages")
    if on_server:
        op.alter_column("pages", "key", comment=_OF_PAGE)
