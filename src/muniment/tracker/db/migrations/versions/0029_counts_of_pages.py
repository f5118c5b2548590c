"""Which count of its job has a page: of the site or of other hosts, by how it ended."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"

_TALLIES = [
    f"{where}_{what}_{word}"
    for where in ("site", "other")
    for what in ("pages", "requisites")
    for word in ("captured", "missing", "failed")
]
_SUMS = [
    "index_rows", "requests", "received_bytes", "crowded_pages", "links_dropped", "nofollow_pages", "nofollow_links",
    "rendered", "wanted_rendering", "failed_rendering",
]  # fmt: skip
_TALLY = "its count among TALLIES, from 1; 0: none"
_SUMMARY = "JSON: what its last run left behind"
_COUNT_PAGES = """
    UPDATE pages SET tally = 1
        + CASE WHEN counted = 3 THEN 2 ELSE COALESCE((
            SELECT CASE WHEN status IN (408, 425) THEN 2 WHEN status BETWEEN 400 AND 499 THEN 1 ELSE 0 END
            FROM attempts WHERE attempts.job_id = pages.job_id AND attempts.page_id = pages.id
            AND attempts.number = pages.earlier_attempts + pages.attempts
        ), 0) END
        + CASE WHEN counted = 2 OR link_hops = 65535 THEN 3 ELSE 0 END
        + CASE WHEN EXISTS (SELECT 1 FROM seed_lists WHERE seed_lists.job_id = pages.job_id) OR EXISTS (
            SELECT 1 FROM hosts
            WHERE hosts.job_id = pages.job_id AND hosts.id = pages.host_id AND hosts.site_paths <> ''
        ) THEN 0 ELSE 6 END
    WHERE counted > 0 AND found_as NOT IN (26, 27, 38) AND NOT (counted < 3 AND EXISTS (
        SELECT 1 FROM attempts WHERE attempts.job_id = pages.job_id AND attempts.page_id = pages.id
        AND attempts.number = pages.earlier_attempts + pages.attempts AND attempts.status IN (301, 302, 303, 307, 308)
    ))
"""
_ROWS = " + ".join(f"responses_{name}" for name in ("1xx", "2xx", "3xx", "4xx", "5xx", "unknown"))


def upgrade() -> None:
    """Add the columns, and count what was done before; redirects are counted at their targets."""
    op.add_column("jobs", sa.Column("summary", sa.Text(), nullable=False, server_default="", comment=_SUMMARY))
    op.add_column("pages", sa.Column("tally", sa.SmallInteger(), nullable=False, server_default="0", comment=_TALLY))
    for name in (*_TALLIES, *_SUMS):
        count = sa.Column(name, sa.BigInteger(), nullable=False, server_default="0", comment="a count")
        op.add_column("job_sums", count)
    op.execute(_COUNT_PAGES)
    op.execute(f"UPDATE job_sums SET index_rows = {_ROWS}, requests = {_ROWS}")  # noqa: S608 (ours)
    _add_up()


def _add_up() -> None:
    """The counts of each job, in one of its rows."""
    connection = op.get_bind()
    counts = "SELECT job_id, tally, count(*) FROM pages WHERE tally > 0 GROUP BY job_id, tally"
    for job_id, tally, count in connection.execute(sa.text(counts)).all():
        one = "(SELECT min(session) FROM job_sums WHERE job_id = :job)"
        update = f"UPDATE job_sums SET {_TALLIES[tally - 1]} = :n WHERE job_id = :job AND session = {one}"  # noqa: S608
        connection.execute(sa.text(update), {"n": count, "job": job_id})
