"""The tables of hooks: pages that wait for theirs, each try, and the files that were left."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, LargeBinary, SmallInteger, Table, Text, text

from muniment.tracker.schema.tables import metadata

__all__ = ["WAITING", "hook_files", "hook_pages", "hook_runs"]

_WAITING = text("NOT done")
WAITING = text("NOT hook_pages.done")
"""The condition of the index that finds pages whose hooks are still to be run."""
_KEY_WORDS = "16-byte hash of the page's URL, as in pages; empty: the crawl itself"

hook_pages = Table(
    "hook_pages",
    metadata,
    Column("job_id", Integer, primary_key=True, autoincrement=False),
    Column("page_key", LargeBinary, primary_key=True, comment=_KEY_WORDS),
    Column("page_id", BigInteger, nullable=False, comment="of pages; 0 for a page that only the index knows"),
    Column("url", Text, nullable=False, comment="of the page"),
    Column("depth", Integer, nullable=False, comment="link hops from the start"),
    Column("status", SmallInteger, nullable=False, comment="HTTP status"),
    Column("content_type", Text, nullable=False, comment="as sent"),
    Column("fetched_at", BigInteger, nullable=False, comment="Unix ms"),
    Column("warc_file", Text, nullable=False, comment="final name of the file with its record"),
    Column("warc_offset", BigInteger, nullable=False, comment="of the record in the file"),
    Column("digest", Text, nullable=False, comment="SHA-1 of the payload, hex"),
    Column("title", Text, nullable=False, comment="as hooks say"),
    Column("tags", Text, nullable=False, comment="as hooks say, one a line"),
    Column("done", Boolean, nullable=False, comment="all its hooks have run"),
    Index(
        "ix_hook_pages_waiting",
        "job_id",
        "fetched_at",
        sqlite_where=_WAITING,
        info={"serves": "the pages that wait for their hooks, the eldest first"},
    ),
    sqlite_with_rowid=False,
    info={"holds": "pages that hooks run for, once each"},
)

hook_runs = Table(
    "hook_runs",
    metadata,
    Column("job_id", Integer, primary_key=True, autoincrement=False),
    Column("page_key", LargeBinary, primary_key=True, comment=_KEY_WORDS),
    Column("event", Text, primary_key=True, comment="Snapshot and the like"),
    Column("plugin", Text, primary_key=True, comment="name of the folder"),
    Column("hook", Text, primary_key=True, comment="file name"),
    Column("attempt", Integer, primary_key=True, autoincrement=False, comment="from 1"),
    Column("url", Text, nullable=False, comment="of the page"),
    Column("place", Integer, nullable=False, comment="the number in its name: its place in the order"),
    Column("background", Boolean, nullable=False, comment="a background hook"),
    Column("status", Text, nullable=False, comment="succeeded | noresults | skipped | failed"),
    Column("output_str", Text, nullable=False, comment="as its record says"),
    Column("output_json", Text, nullable=False, comment="as its record says; empty for none"),
    Column("error", Text, nullable=False, comment="code: text; empty unless it failed"),
    Column("exit_code", Integer, comment="NULL: unknown; minus a signal's number: killed"),
    Column("timed_out", Boolean, nullable=False, comment="over its time"),
    Column("started_at", BigInteger, nullable=False, comment="Unix ms"),
    Column("duration_ms", BigInteger, nullable=False, comment="from its launch to its end"),
    Column("process_id", Text, nullable=False, comment="row in the store of processes"),
    Column("directory", Text, nullable=False, comment="where it worked, below the output directory"),
    Column("files", Integer, nullable=False, comment="new or changed ones"),
    Column("bytes", BigInteger, nullable=False, comment="of files"),
    Column("records", Integer, nullable=False, comment="lines that were records"),
    Column("bad_lines", Integer, nullable=False, comment="lines that were meant to be records"),
    Column("links", Integer, nullable=False, comment="URLs that it found"),
    sqlite_with_rowid=False,
    info={"holds": "tries of hooks"},
)

hook_files = Table(
    "hook_files",
    metadata,
    Column("job_id", Integer, primary_key=True, autoincrement=False),
    Column("page_key", LargeBinary, primary_key=True, comment=_KEY_WORDS),
    Column("plugin", Text, primary_key=True, comment="name of the folder"),
    Column("path", Text, primary_key=True, comment="below the output directory"),
    Column("url", Text, nullable=False, comment="of the page"),
    Column("bytes", BigInteger, nullable=False, comment="of files"),
    Column("sha256", Text, nullable=False, comment="hex; empty for a link"),
    Column("media_type", Text, nullable=False, comment="by the name"),
    Column("link", Text, nullable=False, comment="where a symbolic link leads; empty for a file"),
    sqlite_with_rowid=False,
    info={"holds": "files that hooks left"},
)
