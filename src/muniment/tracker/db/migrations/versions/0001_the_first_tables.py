"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


_RULES = "JSON: include patterns, ignore patterns and sets of them, in Python syntax"


def upgrade() -> None:
    """Make every table of the first version."""
    _jobs()
    _attempts()
    _hosts()
    _job_rulesets()
    _pages()
    _pages_indexes()
    _payloads()
    _relations()
    _repairs()
    _results()
    _robots()


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.Integer(), nullable=False, comment="1 in an embedded tracker: one job per directory"),
        sa.Column("name", sa.Text(), nullable=False, comment="the output directory's own name, for people"),
        sa.Column("state", sa.Text(), nullable=False, comment="ACTIVE | DRAINING | FINISHED | ABORTED"),
        sa.Column("outcome", sa.Text(), server_default="", nullable=False, comment="why it ended; empty while it runs"),
        sa.Column("nice", sa.Integer(), server_default="0", nullable=False, comment="lower goes first"),
        sa.Column("settings", sa.Text(), nullable=False, comment="the settings in force as JSON, secrets left out"),
        sa.Column(
            "start_digest",
            sa.LargeBinary(),
            nullable=False,
            comment="SHA-256 of the sorted start URLs: resume compares it",
        ),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="Unix ms"),
        sa.Column("finished_at", sa.BigInteger(), nullable=True, comment="Unix ms; NULL until FINISHED or ABORTED"),
        sa.Column(
            "pages_captured",
            sa.BigInteger(),
            server_default="0",
            nullable=False,
            comment="pages with a complete capture",
        ),
        sa.Column(
            "pages_failed", sa.BigInteger(), server_default="0", nullable=False, comment="pages whose last try failed"
        ),
        sa.Column(
            "starts_captured", sa.BigInteger(), server_default="0", nullable=False, comment="start pages with an answer"
        ),
        sa.Column(
            "requisites_captured",
            sa.BigInteger(),
            server_default="0",
            nullable=False,
            comment="captured as requisite only",
        ),
        sa.Column("payload_bytes", sa.BigInteger(), server_default="0", nullable=False, comment="sum of body_length"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
    )


def _attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("page_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("number", sa.SmallInteger(), autoincrement=False, nullable=False, comment="from 1"),
        sa.Column("worker", sa.Integer(), nullable=False, comment="number of the worker within the run"),
        sa.Column("ruleset", sa.Integer(), nullable=False, comment="version of job_rulesets in force"),
        sa.Column("started_at", sa.BigInteger(), nullable=False, comment="Unix ms"),
        sa.Column("finished_at", sa.BigInteger(), nullable=False, comment="Unix ms"),
        sa.Column("status", sa.SmallInteger(), nullable=False, comment="HTTP status; 0 when no response"),
        sa.Column("error", sa.Text(), nullable=False, comment="code: text; empty for a complete capture"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_attempts_job_id")),
        sa.PrimaryKeyConstraint("job_id", "page_id", "number", name=op.f("pk_attempts")),
        sqlite_with_rowid=False,
    )


def _hosts() -> None:
    op.create_table(
        "hosts",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False, comment="counted within the job"),
        sa.Column("name", sa.Text(), nullable=False, comment="host name without port, lower case, punycode"),
        sa.Column(
            "site_paths",
            sa.Text(),
            server_default="",
            nullable=False,
            comment="path prefixes that belong to the site, one a line; / is the whole host; empty: not on the site",
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_hosts_job_id")),
        sa.PrimaryKeyConstraint("job_id", "id", name=op.f("pk_hosts")),
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("hosts", schema=None) as batch_op:
        batch_op.create_index("uq_hosts_job_id_name", ["job_id", "name"], unique=True)


def _job_rulesets() -> None:
    op.create_table(
        "job_rulesets",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column(
            "version", sa.Integer(), autoincrement=False, nullable=False, comment="from 1; the latest is in force"
        ),
        sa.Column("rules", sa.Text(), nullable=False, comment=_RULES),
        sa.Column("created_at", sa.BigInteger(), nullable=False, comment="Unix ms"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_job_rulesets_job_id")),
        sa.PrimaryKeyConstraint("job_id", "version", name=op.f("pk_job_rulesets")),
        sqlite_with_rowid=False,
    )


def _pages() -> None:
    op.create_table(
        "pages",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column(
            "id", sa.BigInteger(), autoincrement=False, nullable=False, comment="counted within the job, in order found"
        ),
        sa.Column("key", sa.LargeBinary(), nullable=False, comment="16-byte hash of the normalised URL"),
        sa.Column("url", sa.Text(), nullable=False, comment="normalised, without fragment"),
        sa.Column("host_id", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False, comment="READY | CLAIMED | SKIPPED | STASHED"),
        sa.Column(
            "attempts",
            sa.SmallInteger(),
            server_default="0",
            nullable=False,
            comment="since attempts_remaining was set",
        ),
        sa.Column("attempts_remaining", sa.SmallInteger(), nullable=False, comment="0: done, whatever the outcome"),
        sa.Column("nice", sa.Integer(), server_default="0", nullable=False, comment="lower goes first"),
        sa.Column(
            "ready_at",
            sa.BigInteger(),
            server_default="0",
            nullable=False,
            comment="Unix ms: not claimed before (retry)",
        ),
        sa.Column(
            "claim_id",
            sa.BigInteger(),
            nullable=True,
            comment="the claim that holds it; a finish with another one is ignored",
        ),
        sa.Column(
            "link_hops",
            sa.Integer(),
            nullable=False,
            comment="fewest link hops over all relations; 65535: not by links",
        ),
        sa.Column(
            "requisite_hops", sa.Integer(), nullable=False, comment="fewest requisite hops; 65535: not as requisite"
        ),
        sa.Column(
            "redirects",
            sa.SmallInteger(),
            server_default="0",
            nullable=False,
            comment="redirects that led here in a row",
        ),
        sa.Column("found_as", sa.SmallInteger(), nullable=False, comment="how it was found first (model.link.FoundAs)"),
        sa.Column(
            "via_id", sa.BigInteger(), nullable=True, comment="the page that led here first; NULL for start pages"
        ),
        sa.Column("on_site", sa.Boolean(), nullable=False, comment="is part of the site, by host and path"),
        sa.Column("included", sa.Boolean(), nullable=False, comment="matches an include pattern, or the job has none"),
        sa.Column("in_scope", sa.Boolean(), nullable=False, comment="some relation admits it now"),
        sa.Column(
            "links_told",
            sa.Boolean(),
            server_default=sa.false(),
            nullable=False,
            comment="its links are among its relations",
        ),
        sa.Column(
            "counted",
            sa.SmallInteger(),
            server_default="0",
            nullable=False,
            comment="the job's counter that has it: 0 none, 1 pages_captured, 2 requisites_captured, 3 pages_failed",
        ),
        sa.Column("ruleset", sa.Integer(), nullable=False, comment="version of job_rulesets that it was judged by"),
        sa.Column("reason", sa.Text(), server_default="", nullable=False, comment="why it is SKIPPED; empty otherwise"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_pages_job_id")),
        sa.PrimaryKeyConstraint("job_id", "id", name=op.f("pk_pages")),
        sqlite_with_rowid=False,
    )


def _pages_indexes() -> None:
    with op.batch_alter_table("pages", schema=None) as batch_op:
        batch_op.create_index(
            "ix_pages_claimed",
            ["job_id", "id"],
            unique=False,
            sqlite_where=sa.text("state = 'CLAIMED'"),
            postgresql_where=sa.text("state = 'CLAIMED'"),
        )
        batch_op.create_index(
            "ix_pages_pending",
            ["job_id", "host_id", "nice", "id"],
            unique=False,
            sqlite_where=sa.text("state = 'READY' AND attempts_remaining > 0 AND in_scope"),
            postgresql_where=sa.text("state = 'READY' AND attempts_remaining > 0 AND in_scope"),
        )
        batch_op.create_index("uq_pages_job_id_key", ["job_id", "key"], unique=True)


def _payloads() -> None:
    op.create_table(
        "payloads",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column(
            "digest", sa.LargeBinary(), nullable=False, comment="SHA-1 of a payload synced in this directory, 20 bytes"
        ),
        sa.Column("page_id", sa.BigInteger(), nullable=False, comment="the page that it was captured for"),
        sa.Column("captured_at", sa.BigInteger(), nullable=False, comment="WARC-Date of its record, Unix µs"),
        sa.Column("record_id", sa.LargeBinary(), nullable=False, comment="its record's UUID, 16 bytes"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_payloads_job_id")),
        sa.PrimaryKeyConstraint("job_id", "digest", name=op.f("pk_payloads")),
        sqlite_with_rowid=False,
    )


def _relations() -> None:
    op.create_table(
        "relations",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("parent_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "children",
            sa.LargeBinary(),
            nullable=False,
            comment="little-endian 64-bit words: page id in the upper 56 bits, FoundAs in the lower 8",
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_relations_job_id")),
        sa.PrimaryKeyConstraint("job_id", "parent_id", name=op.f("pk_relations")),
        sqlite_with_rowid=False,
    )


def _repairs() -> None:
    op.create_table(
        "repairs",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column(
            "page_id",
            sa.BigInteger(),
            autoincrement=False,
            nullable=False,
            comment="a shorter path to it was found after its children were recorded: theirs are still to be updated",
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_repairs_job_id")),
        sa.PrimaryKeyConstraint("job_id", "page_id", name=op.f("pk_repairs")),
        sqlite_with_rowid=False,
    )


def _results() -> None:
    op.create_table(
        "results",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("page_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("attempt", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False, comment="what it is, such as final_url"),
        sa.Column("value", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_results_job_id")),
        sa.PrimaryKeyConstraint("job_id", "page_id", "attempt", "kind", name=op.f("pk_results")),
        sqlite_with_rowid=False,
    )


def _robots() -> None:
    op.create_table(
        "robots",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False, comment="scheme, host and port, as https://example.com:8443"),
        sa.Column(
            "status", sa.SmallInteger(), nullable=False, comment="HTTP status of its robots.txt, after redirects"
        ),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("fetched_at", sa.BigInteger(), nullable=False, comment="Unix ms; asked again after a day"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_robots_job_id")),
        sa.PrimaryKeyConstraint("job_id", "origin", name=op.f("pk_robots")),
        sqlite_with_rowid=False,
    )
