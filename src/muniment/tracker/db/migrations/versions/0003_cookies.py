"""The cookies of a job, and several proxies in its settings where there was one."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the table of cookies; read the proxy of older settings as the only one."""
    jobs = sa.table("jobs", sa.column("id", sa.Integer), sa.column("settings", sa.Text))
    connection = op.get_bind()
    for job_id, text in connection.execute(sa.select(jobs.c.id, jobs.c.settings)).all():
        settings = json.loads(text)
        before = settings.get("proxy")
        settings["proxy"] = before if isinstance(before, list) else [before] if before else []
        connection.execute(jobs.update().where(jobs.c.id == job_id).values(settings=json.dumps(settings)))
    op.create_table(
        "cookies",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("domain", sa.Text(), nullable=False, comment="host name, without a leading dot"),
        sa.Column("name", sa.Text(), nullable=False, comment="may be empty"),
        sa.Column("path", sa.Text(), nullable=False, comment="goes to URLs below it"),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("host_only", sa.Boolean(), nullable=False, comment="not for hosts below the domain"),
        sa.Column("secure", sa.Boolean(), nullable=False, comment="over TLS only"),
        sa.Column(
            "http_only",
            sa.Boolean(),
            nullable=False,
            comment="kept for the cookie file that is written at the end",
        ),
        sa.Column(
            "expires_at", sa.BigInteger(), nullable=False, comment="Unix s; 0: with the job; a time gone by: deleted"
        ),
        sa.Column(
            "set_at", sa.BigInteger(), nullable=False, comment="Unix µs at which it was set; the later one counts"
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_cookies_job_id")),
        sa.PrimaryKeyConstraint("job_id", "domain", "name", "path", name=op.f("pk_cookies")),
        sqlite_with_rowid=False,
    )
