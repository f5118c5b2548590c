"""Hooks: the pages that wait for them, their tries, and the files that they left."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0017"

_PAGE = "of pages; 0 for a page that only the index knows"
_KEY = "16-byte hash of the page's URL, as in pages; empty: the crawl itself"


def _key() -> tuple[sa.Column, sa.Column]:  # type: ignore[type-arg]
    return (
        sa.Column("job_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("page_key", sa.LargeBinary(), nullable=False, comment=_KEY),
    )


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "hook_pages",
        *_key(),
        sa.Column(
            "page_id", sa.BigInteger(), nullable=False, comment="of pages; 0 for a page that only the index knows"
        ),
        sa.Column("url", sa.Text(), nullable=False, comment="of the page"),
        sa.Column("depth", sa.Integer(), nullable=False, comment="link hops from the start"),
        sa.Column("status", sa.SmallInteger(), nullable=False, comment="HTTP status"),
        sa.Column("content_type", sa.Text(), nullable=False, comment="as sent"),
        sa.Column("fetched_at", sa.BigInteger(), nullable=False, comment="Unix ms"),
        sa.Column("warc_file", sa.Text(), nullable=False, comment="final name of the file with its record"),
        sa.Column("warc_offset", sa.BigInteger(), nullable=False, comment="of the record in the file"),
        sa.Column("digest", sa.Text(), nullable=False, comment="SHA-1 of the payload, hex"),
        sa.Column("title", sa.Text(), nullable=False, comment="as hooks say"),
        sa.Column("tags", sa.Text(), nullable=False, comment="as hooks say, one a line"),
        sa.Column("done", sa.Boolean(), nullable=False, comment="all its hooks have run"),
        sa.PrimaryKeyConstraint("job_id", "page_key", name=op.f("pk_hook_pages")),
        sqlite_with_rowid=False,
    )
    waiting = sa.text("NOT done")
    columns = ["job_id", "fetched_at"]
    op.create_index("ix_hook_pages_waiting", "hook_pages", columns, sqlite_where=waiting, postgresql_where=waiting)
    _runs()
    op.create_table(
        "hook_files",
        *_key(),
        sa.Column("plugin", sa.Text(), nullable=False, comment="name of the folder"),
        sa.Column("path", sa.Text(), nullable=False, comment="below the output directory"),
        sa.Column("url", sa.Text(), nullable=False, comment="of the page"),
        sa.Column("bytes", sa.BigInteger(), nullable=False, comment="of files"),
        sa.Column("sha256", sa.Text(), nullable=False, comment="hex; empty for a link"),
        sa.Column("media_type", sa.Text(), nullable=False, comment="by the name"),
        sa.Column("link", sa.Text(), nullable=False, comment="where a symbolic link leads; empty for a file"),
        sa.PrimaryKeyConstraint("job_id", "page_key", "plugin", "path", name=op.f("pk_hook_files")),
        sqlite_with_rowid=False,
    )


def _runs() -> None:
    op.create_table(
        "hook_runs",
        *_key(),
        sa.Column("event", sa.Text(), nullable=False, comment="Snapshot and the like"),
        sa.Column("plugin", sa.Text(), nullable=False, comment="name of the folder"),
        sa.Column("hook", sa.Text(), nullable=False, comment="file name"),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False, comment="from 1"),
        sa.Column("url", sa.Text(), nullable=False, comment="of the page"),
        sa.Column("place", sa.Integer(), nullable=False, comment="the number in its name: its place in the order"),
        sa.Column("background", sa.Boolean(), nullable=False, comment="a background hook"),
        sa.Column("status", sa.Text(), nullable=False, comment="succeeded | noresults | skipped | failed"),
        sa.Column("output_str", sa.Text(), nullable=False, comment="as its record says"),
        sa.Column("output_json", sa.Text(), nullable=False, comment="as its record says; empty for none"),
        sa.Column("error", sa.Text(), nullable=False, comment="code: text; empty unless it failed"),
        sa.Column("exit_code", sa.Integer(), comment="NULL: unknown; minus a signal's number: killed"),
        sa.Column("timed_out", sa.Boolean(), nullable=False, comment="over its time"),
        sa.Column("started_at", sa.BigInteger(), nullable=False, comment="Unix ms"),
        sa.Column("duration_ms", sa.BigInteger(), nullable=False, comment="from its launch to its end"),
        sa.Column("process_id", sa.Text(), nullable=False, comment="row in the store of processes"),
        sa.Column("directory", sa.Text(), nullable=False, comment="where it worked, below the output directory"),
        sa.Column("files", sa.Integer(), nullable=False, comment="new or changed ones"),
        sa.Column("bytes", sa.BigInteger(), nullable=False, comment="of files"),
        sa.Column("records", sa.Integer(), nullable=False, comment="lines that were records"),
        sa.Column("bad_lines", sa.Integer(), nullable=False, comment="lines that were meant to be records"),
        sa.Column("links", sa.Integer(), nullable=False, comment="URLs that it found"),
        sa.PrimaryKeyConstraint("job_id", "page_key", "event", "plugin", "hook", "attempt", name=op.f("pk_hook_runs")),
        sqlite_with_rowid=False,
    )
