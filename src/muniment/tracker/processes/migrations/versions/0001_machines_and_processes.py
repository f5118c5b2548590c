"""Machines and processes: the first tables."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make both tables."""
    op.create_table("machines", *_machines(), sa.PrimaryKeyConstraint("id", name=op.f("pk_machines")))
    op.create_table(
        "processes",
        *_who(),
        *_what(),
        *_when(),
        *(column for stream in ("stdout", "stderr") for column in _output(stream)),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_processes")),
    )
    for columns in (
        ["parent_id", "status"],
        ["root_id", "status"],
        ["status", "machine_id"],
        ["machine_id", "pid", "status"],
        ["queued_at"],
    ):
        op.create_index(op.f(f"ix_processes_{'_'.join(columns)}"), "processes", columns, unique=False)


def _column(name: str, kind: Any, comment: str, *, null: bool = False, default: Any = None) -> sa.Column[Any]:
    return sa.Column(name, kind(), nullable=null, server_default=default, comment=comment)


def _machines() -> list[sa.Column[Any]]:
    return [
        _column("id", sa.Text, "a hash of the operating system's own id"),
        _column("hostname", sa.Text, "for people"),
        _column("system", sa.Text, "kernel and architecture"),
        _column("cpus", sa.Integer, "cores"),
        _column("boot_id", sa.Text, "of its last start"),
        _column("seen_at", sa.BigInteger, "Unix ms of the last process begun there"),
        _column("pruned_at", sa.BigInteger, "Unix ms of the last automatic pruning", default="0"),
    ]


def _who() -> list[sa.Column[Any]]:
    return [
        _column("id", sa.Text, "random, hex"),
        _column(
            "parent_id", sa.Text, "the process that launched it; no foreign key: pruning may take it first", null=True
        ),
        _column("root_id", sa.Text, "the first of its tree; itself for a root"),
        _column("depth", sa.Integer, "0 for a root; set once"),
        _column("attempt", sa.Integer, "1 for the first try of a command"),
        _column("process_type", sa.Text, "cli | supervisord | orchestrator | worker | hook | binary"),
        _column("label", sa.Text, "what it does within its type"),
        _column("status", sa.Text, "queued | running | exited"),
        _column("machine_id", sa.Text, "soft reference to machines"),
        _column("boot_id", sa.Text, "of the machine's start that its pid belongs to"),
        _column("pid_namespace", sa.BigInteger, "inode of the namespace that its pid belongs to"),
    ]


def _what() -> list[sa.Column[Any]]:
    return [
        _column("pid", sa.BigInteger, "NULL until it is spawned", null=True),
        _column(
            "start_ticks",
            sa.BigInteger,
            "clock ticks from boot to its start; NULL where the kernel does not say",
            null=True,
        ),
        _column("cmd", sa.Text, "JSON list of arguments, secrets masked"),
        _column("pwd", sa.Text, "working directory"),
        _column("env", sa.Text, "JSON list of [name, value], secrets masked"),
        _column("directory", sa.Text, "where its own files lie on its machine, or empty"),
        _column("timeout", sa.Float, "seconds after which it is ended; NULL: never", null=True),
    ]


def _when() -> list[sa.Column[Any]]:
    return [
        _column("queued_at", sa.BigInteger, "Unix ms: when its row was made, before it was spawned"),
        _column("started_at", sa.BigInteger, "Unix ms", null=True),
        _column("ended_at", sa.BigInteger, "Unix ms: when its end was confirmed", null=True),
        _column("beat_at", sa.BigInteger, "Unix ms: when it was last seen alive by who can judge it"),
        _column("exit_code", sa.Integer, "NULL unknown; minus the signal's number when killed", null=True),
        _column("timed_out", sa.Boolean, "ended because its time was over", default=sa.false()),
        _column("cpu_ms", sa.BigInteger, "CPU time, user and system", null=True),
        _column("max_rss", sa.BigInteger, "most memory, bytes", null=True),
    ]


def _output(stream: str) -> list[sa.Column[Any]]:
    return [
        _column(f"{stream}_head", sa.Text, f"{stream}: the first of it", default=""),
        _column(f"{stream}_tail", sa.Text, f"{stream}: the last of it, as far as it is not in the head", default=""),
        _column(f"{stream}_size", sa.BigInteger, f"{stream}: bytes of the whole, which is in a file", default="0"),
        _column(f"{stream}_sha256", sa.Text, f"{stream}: of the whole, hex; empty when there is none", default=""),
    ]
