"""Pipelines with sessions and assignments, changes of jobs, rules in order, the stash, and typed results."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Make the tables; jobs of older trackers belong to nobody and were never changed."""
    _jobs()
    _pages_and_attempts()
    _results()
    _job_changes()
    _pipelines()
    _sessions()
    _assignments()
    # SQLite keeps no comments
    if op.get_bind().dialect.name == "postgresql":
        _comments()


def _text(name: str, comment: str, default: str | None = "") -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False, server_default=default, comment=comment)


def _number(name: str, comment: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), nullable=False, server_default="0", comment=comment)


def _time(name: str, comment: str = "Unix ms", *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=nullable, comment=comment)


def _jobs() -> None:
    tags = "runs only on pipelines with one of these, one a line; empty: on all that are not matchonly"
    most = "most slots of pipelines that may be assigned to it at once; 0 pauses it, NULL: no limit"
    drip = "pages that come out of the stash each time that none is pending; 0: none do"
    op.add_column("jobs", _text("tags", tags))
    op.add_column("jobs", sa.Column("concurrency", sa.Integer(), comment=most))
    op.add_column("jobs", _number("drip", drip))
    op.add_column("jobs", _number("settings_age", "how many changes job_changes has"))
    op.add_column("jobs", _text("started_by", "who started it"))
    op.add_column("jobs", _text("started_in", "where: a command line, a channel"))
    op.add_column("jobs", _text("explanation", "why, in the words of who started it"))


def _pages_and_attempts() -> None:
    deaths = "workers that died while they held it, since it was finished last; at three it is given up"
    op.add_column("pages", sa.Column("deaths", sa.SmallInteger(), nullable=False, server_default="0", comment=deaths))
    stashed = sa.text("state = 'STASHED'")
    op.create_index(
        "ix_pages_stashed", "pages", ["job_id", "nice", "id"], sqlite_where=stashed, postgresql_where=stashed
    )
    claimed = sa.text("state = 'CLAIMED'")
    op.drop_index("ix_pages_claimed", "pages")
    op.create_index("ix_pages_claimed", "pages", ["job_id", "claim_id"], sqlite_where=claimed, postgresql_where=claimed)
    session = "epoch of the session, which leads to the pipeline; 0: the crawl of one directory"
    op.add_column("attempts", _number("session", session))


def _results() -> None:
    op.add_column("results", _text("status", "done | failed | not-run", "done"))
    op.add_column("results", _text("media_type", "of the value or the file", "application/json"))
    digest = "SHA-256 of the file that holds the value, its name; NULL: value does"
    op.add_column("results", sa.Column("digest", sa.LargeBinary(), comment=digest))
    length = sa.Column(
        "length", sa.BigInteger(), nullable=False, server_default="0", comment="bytes of the value or the file"
    )
    op.add_column("results", length)


def _job_changes() -> None:
    op.create_table(
        "job_changes",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column(
            "age", sa.Integer(), autoincrement=False, nullable=False, comment="from 1: the settings_age that it made"
        ),
        _time("at"),
        _text("who", "who changed it", None),
        _text("what", "the setting's name, or ignores, rules, state, nice, tags …", None),
        _text("before", "empty: there was none", None),
        _text("after", "empty: there is none any more", None),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_job_changes_job_id")),
        sa.PrimaryKeyConstraint("job_id", "age", name=op.f("pk_job_changes")),
        sqlite_with_rowid=False,
    )


def _pipelines() -> None:
    op.create_table(
        "pipelines",
        _text("id", "its name, readable, such as berlin-2", None),
        sa.Column(
            "token_hash", sa.LargeBinary(), nullable=False, comment="SHA-256 of its token, which is nowhere else"
        ),
        _text("tags", "what jobs may ask for, one a line"),
        sa.Column("matchonly", sa.Boolean(), nullable=False, comment="takes only jobs that name one of its tags"),
        _time("created_at"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pipelines")),
    )


def _sessions() -> None:
    epoch = "from 1 over all pipelines: the upper part of its claims"
    op.create_table(
        "sessions",
        sa.Column("epoch", sa.Integer(), nullable=False, comment=epoch),
        _text("pipeline_id", "whose it is", None),
        _text("instance", "hexadecimal, made when the pipeline's process began", None),
        _text("version", "of Muniment, there", None),
        sa.Column(
            "slots", sa.Integer(), nullable=False, comment="how many jobs, at most, it works at beside each other"
        ),
        sa.Column("claims", sa.BigInteger(), nullable=False, server_default="0", comment="claims numbered so far"),
        _time("began_at"),
        _time("lease_until", "Unix ms: ended by the next sweep after that"),
        _text("report", "JSON: its machine as last reported"),
        _time("reported_at", "Unix ms; NULL: no report yet", nullable=True),
        _time("ended_at", "Unix ms; NULL while it is LIVE, from then on it is ENDED", nullable=True),
        _text("ending", "GOODBYE | EXITED | LAPSED | REPLACED; or empty"),
        sa.ForeignKeyConstraint(["pipeline_id"], ["pipelines.id"], name=op.f("fk_sessions_pipeline_id")),
        sa.PrimaryKeyConstraint("epoch", name=op.f("pk_sessions")),
    )
    live = sa.text("ended_at IS NULL")
    op.create_index("ix_sessions_live", "sessions", ["pipeline_id"], sqlite_where=live, postgresql_where=live)


def _assignments() -> None:
    lock = "NONE | INDEFINITELY | UNTIL_FINISHED: while one is locked, its pipeline gets no other job"
    op.create_table(
        "assignments",
        _text("pipeline_id", "whose slot it is", None),
        sa.Column("slot", sa.Integer(), autoincrement=False, nullable=False, comment="from 0"),
        sa.Column("job_id", sa.Integer(), nullable=False, comment="the job that the slot sticks to"),
        _text("lock", lock, "NONE"),
        _time("since"),
        sa.ForeignKeyConstraint(["pipeline_id"], ["pipelines.id"], name=op.f("fk_assignments_pipeline_id")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_assignments_job_id")),
        sa.PrimaryKeyConstraint("pipeline_id", "slot", name=op.f("pk_assignments")),
    )


def _comments() -> None:
    op.alter_column("attempts", "ruleset", comment="version of job_rulesets when it was claimed")
    rules = "JSON: include patterns, ignore patterns and sets of them, in Python syntax; rules in order"
    op.alter_column("job_rulesets", "rules", comment=rules)
    op.alter_column("results", "kind", comment="what it is, such as final_url (model.result)")
    op.alter_column("results", "value", comment="JSON or text; empty when it is a file")
