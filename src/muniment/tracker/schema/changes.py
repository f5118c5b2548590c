"""The tables of what operators change: versions of the rules of jobs, and every change of a job."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Integer, Table, Text

from muniment.tracker.schema.tables import metadata

__all__ = ["job_changes", "job_rulesets"]

RULES_WORDS = "JSON: include patterns, ignore patterns and sets of them, in Python syntax; rules in order"

job_rulesets = Table(
    "job_rulesets",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id"), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False, comment="from 1; the latest is in force"),
    Column("rules", Text, nullable=False, comment=RULES_WORDS),
    Column("created_at", BigInteger, nullable=False, comment="Unix ms"),
    sqlite_with_rowid=False,
    info={"holds": "versions of a job's patterns and rules; older ones stay for the attempts made under them"},
)

job_changes = Table(
    "job_changes",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id"), primary_key=True),
    Column("age", Integer, primary_key=True, autoincrement=False, comment="from 1: the settings_age that it made"),
    Column("at", BigInteger, nullable=False, comment="Unix ms"),
    Column("who", Text, nullable=False, comment="who changed it"),
    Column("what", Text, nullable=False, comment="the setting's name, or ignores, rules, state, nice, tags …"),
    Column("before", Text, nullable=False, comment="empty: there was none"),
    Column("after", Text, nullable=False, comment="empty: there is none any more"),
    sqlite_with_rowid=False,
    info={"holds": "every change of a job: who, when, from, to"},
)
