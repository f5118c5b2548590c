"""The tables of guards: families of pages, and the text that hosts showed before."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Integer, LargeBinary, SmallInteger, Table, Text

from muniment.tracker.schema.tables import metadata

__all__ = ["families", "text_blocks"]

RE_WORDS = "the pattern that finds its URLs, while it is set aside; empty otherwise"

families = Table(
    "families",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id"), primary_key=True),
    Column("key", LargeBinary, primary_key=True, comment="16-byte hash of guard and shape"),
    Column("shape", Text, nullable=False, comment="HOST/path?names: what the URLs of its pages have in common"),
    Column("guard", Text, nullable=False, comment="barren | loops | duplicates: the guard that watches it"),
    Column("asked", Integer, nullable=False, comment="pages that were fetched since one was barren"),
    Column("barren", Integer, nullable=False, comment="of them, those since the last one that was not"),
    Column("skipped", BigInteger, nullable=False, comment="pages that were set aside"),
    Column("sampled", Integer, nullable=False, comment="pages that were asked for although it is set aside"),
    Column("since", BigInteger, nullable=False, comment="Unix ms when it was set aside; 0 while it is not"),
    Column("until_id", BigInteger, nullable=False, comment="highest page id then: later pages were judged when found"),
    Column("releases", SmallInteger, nullable=False, comment="how often it was let go on"),
    Column("patience", Integer, nullable=False, comment="how many times --barren it may have in a row"),
    Column("led", Integer, nullable=False, comment="pages found first through its pages that were not barren"),
    Column("freed", Boolean, nullable=False, comment="an operator let it go on for good"),
    Column("recent", Text, nullable=False, comment="page ids of its last three barren pages, with spaces between"),
    Column("re", Text, nullable=False, comment=RE_WORDS),
    sqlite_with_rowid=False,
    info={"holds": "pages of a host whose addresses have one shape, since one showed nothing new"},
)

HASHES_WORDS = "little-endian 32-bit words: hashes of blocks of text, numbers apart, that were new on their host"

text_blocks = Table(
    "text_blocks",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id"), primary_key=True),
    Column("session", Integer, primary_key=True, autoincrement=False, comment="the process that found them"),
    Column("number", BigInteger, primary_key=True, autoincrement=False, comment="1, 2, 3 … within the session"),
    Column("hashes", LargeBinary, nullable=False, comment=HASHES_WORDS),
    sqlite_with_rowid=False,
    info={"holds": "the text that hosts showed before, for guards"},
)
