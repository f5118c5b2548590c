"""The tables of machines and processes: a small database of their own, or beside the tracker in PostgreSQL.

They have their own migrations: a program that shows processes knows nothing of jobs.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, MetaData, Table, Text, false

from muniment.tracker.schema.tables import metadata as trackers

__all__ = ["VERSION_TABLE", "binaries", "machines", "metadata", "processes"]

metadata = MetaData(naming_convention=trackers.naming_convention)

VERSION_TABLE = "processes_version"
"""Where the revision of these tables is kept."""

_OUTPUT = (
    ("head", Text, "the first of it"),
    ("tail", Text, "the last of it, as far as it is not in the head"),
    ("size", BigInteger, "bytes of the whole, which is in a file"),
    ("sha256", Text, "of the whole, hex; empty when there is none"),
)

machines = Table(
    "machines",
    metadata,
    Column("id", Text, primary_key=True, comment="a hash of the operating system's own id"),
    Column("hostname", Text, nullable=False, comment="for people"),
    Column("system", Text, nullable=False, comment="kernel and architecture"),
    Column("cpus", Integer, nullable=False, comment="cores"),
    Column("boot_id", Text, nullable=False, comment="of its last start"),
    Column("seen_at", BigInteger, nullable=False, comment="Unix ms of the last process begun there"),
)

binaries = Table(
    "binaries",
    metadata,
    Column("machine_id", Text, primary_key=True, comment="soft reference to machines"),
    Column("name", Text, primary_key=True, comment="as it is called"),
    Column("abspath", Text, primary_key=True, comment="its absolute path"),
    Column("version", Text, nullable=False, comment="empty: not said"),
    Column("sha256", Text, nullable=False, comment="hex; empty: not said"),
    Column("binprovider", Text, nullable=False, comment="what provides it: env, apt, pip; empty: not said"),
    Column("seen_at", BigInteger, nullable=False, comment="Unix ms: when a hook last reported it"),
)

processes = Table(
    "processes",
    metadata,
    Column("id", Text, primary_key=True, comment="random, hex"),
    Column("parent_id", Text, comment="the process that launched it; no foreign key: pruning may take it first"),
    Column("root_id", Text, nullable=False, comment="the first of its tree; itself for a root"),
    Column("depth", Integer, nullable=False, comment="0 for a root; set once"),
    Column("attempt", Integer, nullable=False, comment="1 for the first try of a command"),
    Column("process_type", Text, nullable=False, comment="cli | supervisord | orchestrator | worker | hook | binary"),
    Column("label", Text, nullable=False, comment="what it does within its type"),
    Column("status", Text, nullable=False, comment="queued | running | exited"),
    Column("machine_id", Text, nullable=False, comment="soft reference to machines"),
    Column("boot_id", Text, nullable=False, comment="of the machine's start that its pid belongs to"),
    Column("pid_namespace", BigInteger, nullable=False, comment="inode of the namespace that its pid belongs to"),
    Column("pid", BigInteger, comment="NULL until it is spawned"),
    Column("start_ticks", BigInteger, comment="clock ticks from boot to its start; NULL where the kernel does not say"),
    Column("cmd", Text, nullable=False, comment="JSON list of arguments, secrets masked"),
    Column("pwd", Text, nullable=False, comment="working directory"),
    Column("env", Text, nullable=False, comment="JSON list of [name, value], secrets masked"),
    Column("directory", Text, nullable=False, comment="where its own files lie on its machine, or empty"),
    Column("timeout", Float, comment="seconds after which it is ended; NULL: never"),
    Column("queued_at", BigInteger, nullable=False, comment="Unix ms: when its row was made, before it was spawned"),
    Column("started_at", BigInteger, comment="Unix ms"),
    Column("ended_at", BigInteger, comment="Unix ms: when its end was confirmed"),
    Column("beat_at", BigInteger, nullable=False, comment="Unix ms: when it was last seen alive by who can judge it"),
    Column("exit_code", Integer, comment="NULL unknown; minus the signal's number when killed"),
    Column("timed_out", Boolean, nullable=False, server_default=false(), comment="ended because its time was over"),
    Column("cpu_ms", BigInteger, comment="CPU time, user and system"),
    Column("max_rss", BigInteger, comment="most memory, bytes"),
    *(
        Column(
            f"{stream}_{name}",
            kind,
            nullable=False,
            server_default="0" if kind is BigInteger else "",
            comment=f"{stream}: {words}",
        )
        for stream in ("stdout", "stderr")
        for name, kind, words in _OUTPUT
    ),
    Column("uid", BigInteger, comment="the user of its machine that it runs as, who alone judges it; NULL not known"),
    Index(None, "parent_id", "status"),
    Index(None, "root_id", "status"),
    Index(None, "status", "machine_id"),
    Index(None, "machine_id", "pid", "status"),
    Index(None, "queued_at"),
)
