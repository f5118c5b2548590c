"""Guards: families of pages, and the text that hosts showed before."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"

_RE = "the pattern that finds its URLs, while it is set aside; empty otherwise"
_HASHES = "little-endian 32-bit words: hashes of blocks of text, numbers apart, that were new on their host"
_UNTIL = "highest page id then: later pages were judged when found"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "families",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.LargeBinary(), nullable=False, comment="16-byte hash of guard and shape"),
        _text("shape", "HOST/path?names: what the URLs of its pages have in common"),
        _text("guard", "barren | loops | duplicates: the guard that watches it"),
        _number("asked", sa.Integer(), "pages that were fetched since one was barren"),
        _number("barren", sa.Integer(), "of them, those since the last one that was not"),
        _number("skipped", sa.BigInteger(), "pages that were set aside"),
        _number("sampled", sa.Integer(), "pages that were asked for although it is set aside"),
        _number("since", sa.BigInteger(), "Unix ms when it was set aside; 0 while it is not"),
        _number("until_id", sa.BigInteger(), _UNTIL),
        _number("releases", sa.SmallInteger(), "how often it was let go on"),
        _number("patience", sa.Integer(), "how many times --barren it may have in a row"),
        _number("led", sa.Integer(), "pages found first through its pages that were not barren"),
        sa.Column("freed", sa.Boolean(), nullable=False, comment="an operator let it go on for good"),
        _text("recent", "page ids of its last three barren pages, with spaces between"),
        _text("re", _RE),
        *_of_job("families"),
        sa.PrimaryKeyConstraint("job_id", "key", name=op.f("pk_families")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "text_blocks",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("session", sa.Integer(), nullable=False, autoincrement=False, comment="the process that found them"),
        _number("number", sa.BigInteger(), "1, 2, 3 … within the session"),
        sa.Column("hashes", sa.LargeBinary(), nullable=False, comment=_HASHES),
        *_of_job("text_blocks"),
        sa.PrimaryKeyConstraint("job_id", "session", "number", name=op.f("pk_text_blocks")),
        sqlite_with_rowid=False,
    )


def _text(name: str, comment: str) -> "sa.Column[str]":
    return sa.Column(name, sa.Text(), nullable=False, comment=comment)


def _number(name: str, kind: sa.types.TypeEngine[int], comment: str) -> "sa.Column[int]":
    return sa.Column(name, kind, nullable=False, autoincrement=False, comment=comment)


def _of_job(table: str) -> list[sa.ForeignKeyConstraint]:
    if op.get_bind().dialect.name == "postgresql":
        return []
    return [sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f(f"fk_{table}_job_id"))]
