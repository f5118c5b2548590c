-- The tables of `schema/processes.py` as SQLite makes them. A contract test holds the two together.

CREATE TABLE machines (
    id TEXT NOT NULL,
    hostname TEXT NOT NULL,
    system TEXT NOT NULL,
    cpus INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    seen_at BIGINT NOT NULL,
    CONSTRAINT pk_machines PRIMARY KEY (id)
);

CREATE TABLE binaries (
    machine_id TEXT NOT NULL,
    name TEXT NOT NULL,
    abspath TEXT NOT NULL,
    version TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    binprovider TEXT NOT NULL,
    seen_at BIGINT NOT NULL,
    CONSTRAINT pk_binaries PRIMARY KEY (machine_id, name, abspath)
);

CREATE TABLE processes (
    id TEXT NOT NULL,
    parent_id TEXT,
    root_id TEXT NOT NULL,
    depth INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    process_type TEXT NOT NULL,
    label TEXT NOT NULL,
    status TEXT NOT NULL,
    machine_id TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    pid_namespace BIGINT NOT NULL,
    pid BIGINT,
    start_ticks BIGINT,
    cmd TEXT NOT NULL,
    pwd TEXT NOT NULL,
    env TEXT NOT NULL,
    directory TEXT NOT NULL,
    timeout FLOAT,
    queued_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    beat_at BIGINT NOT NULL,
    exit_code INTEGER,
    timed_out BOOLEAN DEFAULT 0 NOT NULL,
    cpu_ms BIGINT,
    max_rss BIGINT,
    stdout_head TEXT DEFAULT '' NOT NULL,
    stdout_tail TEXT DEFAULT '' NOT NULL,
    stdout_size BIGINT DEFAULT '0' NOT NULL,
    stdout_sha256 TEXT DEFAULT '' NOT NULL,
    stderr_head TEXT DEFAULT '' NOT NULL,
    stderr_tail TEXT DEFAULT '' NOT NULL,
    stderr_size BIGINT DEFAULT '0' NOT NULL,
    stderr_sha256 TEXT DEFAULT '' NOT NULL,
    uid BIGINT,
    CONSTRAINT pk_processes PRIMARY KEY (id)
);

CREATE INDEX ix_processes_machine_id_pid_status ON processes (machine_id, pid, status);

CREATE INDEX ix_processes_parent_id_status ON processes (parent_id, status);

CREATE INDEX ix_processes_queued_at ON processes (queued_at);

CREATE INDEX ix_processes_root_id_status ON processes (root_id, status);

CREATE INDEX ix_processes_status_machine_id ON processes (status, machine_id);

CREATE TABLE processes_version (version_num VARCHAR(32) NOT NULL)
