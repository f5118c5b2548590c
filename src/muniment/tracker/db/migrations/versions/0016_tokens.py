"""Tokens of the API, and the jobs that were made by them."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

_NAME = "of the token, readable; who is noted for what its bearer does"
_HASH = "SHA-256 of the token, which is nowhere else"
_REQUEST = "which request made it, as its sender called it; NULL: it is not to be known again"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "tokens",
        sa.Column("name", sa.Text(), nullable=False, comment=_NAME),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False, comment=_HASH),
        sa.Column("scopes", sa.Text(), nullable=False, comment="read | submit | operate | admin, with a space between"),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="Unix ms"),
        sa.Column("expires_at", sa.BigInteger(), comment="Unix ms; NULL: never"),
        sa.Column("used_at", sa.BigInteger(), comment="Unix ms, to the minute; NULL: not yet"),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_tokens")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_tokens_token_hash")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "submissions",
        sa.Column("job_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column(
            "token", sa.Text(), nullable=False, comment="name of the token that it was made by; that may be gone"
        ),
        sa.Column("request", sa.Text(), comment=_REQUEST),
        sa.Column("submitted_at", sa.BigInteger(), nullable=False, comment="Unix ms"),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_submissions")),
        sa.UniqueConstraint("token", "request", name=op.f("uq_submissions_token_request")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_submissions_job_id")),
        sqlite_with_rowid=False,
    )
