"""Later rounds of pages, answers that used up no try, and which origins answered."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

_EARLIER = "attempts made before attempts_remaining was last set"
_ROUNDS = "later rounds that it was taken into, after its tries were used up by failures that may pass"
_THROTTLED = "answers of 429 and 503 that used up no try"
_ANSWERED = "its origins that answered in this job, by scheme and given port, as: http https:8443"
_PARKED = "state = 'READY' AND attempts_remaining = 0 AND ready_at > 0"


def upgrade() -> None:
    """Add the columns. What failed before is not parked: `--retry-failed` takes it up."""
    op.add_column("pages", _small("earlier_attempts", _EARLIER))
    op.add_column("pages", _small("rounds", _ROUNDS))
    op.add_column("pages", _small("throttled", _THROTTLED))
    op.add_column("hosts", sa.Column("answered", sa.Text(), nullable=False, server_default="", comment=_ANSWERED))
    # requisites go first, but for robots.txt and sitemaps, which no page is shown with
    op.execute(
        "UPDATE pages SET nice = -1 WHERE attempts_remaining > 0 AND requisite_hops <= 5 AND found_as NOT IN (26, 27)"
    )
    # done pages of older trackers may keep a time of their last try
    op.execute("UPDATE pages SET ready_at = 0 WHERE state = 'READY' AND attempts_remaining = 0 AND ready_at > 0")
    parked = sa.text(_PARKED)
    op.create_index("ix_pages_parked", "pages", ["job_id", "ready_at"], sqlite_where=parked, postgresql_where=parked)


def _small(name: str, comment: str) -> sa.Column[int]:
    return sa.Column(name, sa.SmallInteger(), nullable=False, server_default="0", comment=comment)
