"""The tables of the tracker: the one place where jobs, pages and what became of them are kept.

Every row that grows with a job begins its key with `job_id`, so that a distributed PostgreSQL can spread it. Tables
whose rows are small and found by their key are kept WITHOUT ROWID on SQLite: one tree instead of two.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    false,
    text,
)

from muniment.model.network.counts import SUMS, TALLIES

__all__ = [
    "BY_SESSION",
    "CLAIMED",
    "PARKED",
    "PENDING",
    "RESPONSES",
    "STASHED",
    "attempts",
    "fresh_payloads",
    "hosts",
    "job_sums",
    "jobs",
    "metadata",
    "page_keys",
    "pages",
    "payloads",
    "relations",
    "repairs",
    "results",
    "robots",
    "seed_lists",
    "seeds",
]

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

_PENDING = "{0}state = 'READY' AND {0}attempts_remaining > 0 AND {0}in_scope"
_INDEXED = text(_PENDING.format(""))

_PLACED = text("place_id <> ''")

PENDING = text(_PENDING.format("pages."))
"""A page that waits to be claimed; the condition of the index that serves the claim."""

_PARKED = text("state = 'READY' AND attempts_remaining = 0 AND ready_at > 0")
PARKED = text("pages.state = 'READY' AND pages.attempts_remaining = 0 AND pages.ready_at > 0")
"""A page whose tries are used up and that a later round may take up; the condition of the index that finds these."""

CLAIMED = text("pages.state = 'CLAIMED'")
"""A page that some worker holds; the condition of the index that finds what a killed run held."""

COUNTED_WORDS = "the job's counter that has it: 0 none, 1 pages_captured, 2 requisites_captured, 3 pages_failed"

STASHED = text("pages.state = 'STASHED' AND pages.attempts_remaining > 0 AND pages.in_scope")
"""A page that would wait to be claimed, had no operator put it aside."""

GIVEN_WORDS = "what the last command line gave, as JSON: settings and patterns; both may have been changed since"
JUDGED_WORDS = (
    "the version of job_rulesets that every waiting page was judged by; the latest, unless a kill came between"
)

TAGS_WORDS = "runs only on pipelines with one of these, one a line; empty: on all that are not matchonly"
CONCURRENCY_WORDS = "most slots of pipelines that may be assigned to it at once; 0 pauses it, NULL: no limit"
DRIP_WORDS = "pages that come out of the stash each time that none is pending; 0: none do"
PLACE_WORDS = "the random word in the output directory's tracker.place; empty in an embedded tracker"
PLACED_WORDS = "opening: which job of a shared database is that of an output directory?"
SESSION_WORDS = "a process that writes the job; 0 is the one of an embedded tracker"
SITES_WORDS = "how often a host was made part of the site: who knows of fewer reads them again"

SEED_WORDS = "in a fetch, the page of the seed line whose redirects led here; NULL for pages of the list"

RESPONSES = {f"{n}xx": f"status {n}00 to {n}99" for n in range(1, 6)} | {"unknown": "another status, or none"}
"""What rows of the index are counted by."""
RENDERS_WORDS = "its pages may need a browser, by its engine or its rules: pipelines without one do not get it"

jobs = Table(
    "jobs",
    metadata,
    Column("id", Integer, primary_key=True, comment="1 in an embedded tracker: one job per directory"),
    Column("name", Text, nullable=False, comment="the output directory's own name, for people"),
    Column("state", Text, nullable=False, comment="ACTIVE | DRAINING | FINISHED | ABORTED"),
    Column("outcome", Text, nullable=False, server_default="", comment="why it ended; empty while it runs"),
    Column("nice", Integer, nullable=False, server_default="0", comment="lower goes first"),
    Column("settings", Text, nullable=False, comment="the settings in force as JSON, secrets left out"),
    Column("given", Text, nullable=False, server_default="", comment=GIVEN_WORDS),
    Column("start_digest", LargeBinary, nullable=False, comment="SHA-256 of the sorted start URLs: resume compares it"),
    Column("judged", Integer, nullable=False, server_default="0", comment=JUDGED_WORDS),
    Column("created_at", BigInteger, nullable=False, comment="Unix ms"),
    Column("finished_at", BigInteger, comment="Unix ms; NULL until FINISHED or ABORTED"),
    Column("place_id", Text, nullable=False, server_default="", comment=PLACE_WORDS),
    Column("tags", Text, nullable=False, server_default="", comment=TAGS_WORDS),
    Column("concurrency", Integer, comment=CONCURRENCY_WORDS),
    Column("drip", Integer, nullable=False, server_default="0", comment=DRIP_WORDS),
    Column("settings_age", Integer, nullable=False, server_default="0", comment="how many changes job_changes has"),
    Column("sites_age", Integer, nullable=False, server_default="0", comment=SITES_WORDS),
    Column("started_by", Text, nullable=False, server_default="", comment="who started it"),
    Column("started_in", Text, nullable=False, server_default="", comment="where: a command line, a channel"),
    Column("explanation", Text, nullable=False, server_default="", comment="why, in the words of who started it"),
    Column("paused", Boolean, nullable=False, server_default=false(), comment="gets no slots until it is resumed"),
    Column("reason", Text, nullable=False, server_default="", comment="why it is paused or failed; may be empty"),
    Column("renders", Boolean, nullable=False, server_default=false(), comment=RENDERS_WORDS),
    Column("summary", Text, nullable=False, server_default="", comment="JSON: what its last run left behind"),
    Index("uq_jobs_place_id", "place_id", unique=True, sqlite_where=_PLACED, info={"serves": PLACED_WORDS}),
    info={"holds": "groups of pages that are archived together"},
)

job_sums = Table(
    "job_sums",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id"), primary_key=True),
    Column("session", Integer, primary_key=True, autoincrement=False, comment=SESSION_WORDS),
    Column("pages_captured", BigInteger, nullable=False, server_default="0", comment="pages with a complete capture"),
    Column("pages_failed", BigInteger, nullable=False, server_default="0", comment="pages whose last try failed"),
    Column("starts_captured", BigInteger, nullable=False, server_default="0", comment="start pages with an answer"),
    Column("requisites_captured", BigInteger, nullable=False, server_default="0", comment="captured as requisite only"),
    Column("payload_bytes", BigInteger, nullable=False, server_default="0", comment="sum of body_length over all rows"),
    *(
        Column(f"responses_{name}", BigInteger, nullable=False, server_default="0", comment=f"index rows: {what}")
        for name, what in RESPONSES.items()
    ),
    Column("errors", BigInteger, nullable=False, server_default="0", comment="rows of the index with an error"),
    *(Column(name, BigInteger, nullable=False, server_default="0", comment="a count") for name in (*TALLIES, *SUMS)),
    sqlite_with_rowid=False,
    info={"holds": "counters of a job, one row for each session that adds to them: none waits for another's row"},
)
EARLIER_WORDS = "attempts made before attempts_remaining was last set"
ROUNDS_WORDS = "later rounds that it was taken into, after its tries were used up by failures that may pass"
PATHS_WORDS = "path prefixes that belong to the site, one a line; / is the whole host; empty: not on the site"
THROTTLED_WORDS = "answers of 429 and 503 that used up no try"
ANSWERED_WORDS = "its origins that answered in this job, by scheme and given port, as: http https:8443"
GIVEN_UP_WORDS = "those of its origins of which the log of a fleet's job says that they were given up, as in `answered`"
DEATHS_WORDS = "workers that died while they held it, since it was finished last; at three it is given up"

hosts = Table(
    "hosts",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id"), primary_key=True),
    Column("id", Integer, primary_key=True, autoincrement=False, comment="counted within the job"),
    Column("name", Text, nullable=False, comment="host name without port, lower case, punycode"),
    Column("site_paths", Text, nullable=False, server_default="", comment=PATHS_WORDS),
    Column("crawl_delay_ms", Integer, nullable=False, server_default="0", comment="gap that its robots.txt asks for"),
    Column("wait_until", BigInteger, nullable=False, server_default="0", comment="Unix ms: nothing is asked before"),
    Column("wait_reason", Text, nullable=False, server_default="", comment="why; empty without a wait"),
    Column("strikes", SmallInteger, nullable=False, server_default="0", comment="bad answers in a row: back-off"),
    Column("answered", Text, nullable=False, server_default="", comment=ANSWERED_WORDS),
    Column("given_up", Text, nullable=False, server_default="", comment=GIVEN_UP_WORDS),
    Index("uq_hosts_job_id_name", "job_id", "name", unique=True, info={"serves": "the number of a host by its name"}),
    sqlite_with_rowid=False,
    info={"holds": "hosts of a job: where politeness lives"},
)

pages = Table(
    "pages",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id"), primary_key=True),
    Column("id", BigInteger, primary_key=True, autoincrement=False, comment="counted within the job, in order found"),
    Column("key", LargeBinary, nullable=False, comment="16-byte hash of the normalised URL; found by page_keys"),
    Column("url", Text, nullable=False, comment="normalised, without fragment"),
    Column("host_id", Integer, nullable=False),
    Column("state", Text, nullable=False, comment="READY | CLAIMED | SKIPPED | STASHED"),
    Column("attempts", SmallInteger, nullable=False, server_default="0", comment="since attempts_remaining was set"),
    Column("attempts_remaining", SmallInteger, nullable=False, comment="0: done, whatever the outcome"),
    Column("nice", Integer, nullable=False, server_default="0", comment="lower goes first"),
    Column("ready_at", BigInteger, nullable=False, server_default="0", comment="Unix ms: not claimed before (retry)"),
    Column("claim_id", BigInteger, comment="the claim that holds it; a finish with another one is ignored"),
    Column("link_hops", Integer, nullable=False, comment="fewest link hops over all relations; 65535: not by links"),
    Column("requisite_hops", Integer, nullable=False, comment="fewest requisite hops; 65535: not as requisite"),
    Column("redirects", SmallInteger, nullable=False, server_default="0", comment="redirects that led here in a row"),
    Column("found_as", SmallInteger, nullable=False, comment="how it was found first (model.link.FoundAs)"),
    Column("via_id", BigInteger, comment="the page that led here first; NULL for start pages"),
    Column("seed_id", BigInteger, comment=SEED_WORDS),
    Column("on_site", Boolean, nullable=False, comment="is part of the site, by host and path"),
    Column("included", Boolean, nullable=False, comment="matches an include pattern, or the job has none"),
    Column("in_scope", Boolean, nullable=False, comment="some relation admits it now"),
    Column("links_told", Boolean, nullable=False, server_default=false(), comment="its links are among its relations"),
    Column("counted", SmallInteger, nullable=False, server_default="0", comment=COUNTED_WORDS),
    Column("ruleset", Integer, nullable=False, comment="version of job_rulesets that it was judged by"),
    Column("reason", Text, nullable=False, server_default="", comment="why it is SKIPPED; empty otherwise"),
    Column("deaths", SmallInteger, nullable=False, server_default="0", comment=DEATHS_WORDS),
    Column("earlier_attempts", SmallInteger, nullable=False, server_default="0", comment=EARLIER_WORDS),
    Column("rounds", SmallInteger, nullable=False, server_default="0", comment=ROUNDS_WORDS),
    Column("throttled", SmallInteger, nullable=False, server_default="0", comment=THROTTLED_WORDS),
    Column(
        "tally", SmallInteger, nullable=False, server_default="0", comment="its count among TALLIES, from 1; 0: none"
    ),
    Index(
        "ix_pages_pending",
        "job_id",
        "host_id",
        "nice",
        "id",
        sqlite_where=_INDEXED,
        info={"serves": "claims: pages of a due host, nice then first in first out; counting what is pending"},
    ),
    Index(
        "ix_pages_claimed",
        "job_id",
        "claim_id",
        sqlite_where=text("state = 'CLAIMED'"),
        info={"serves": "what a lost session held: its claims are a range of numbers; whether a job has claims"},
    ),
    Index(
        "ix_pages_stashed",
        "job_id",
        "nice",
        "id",
        sqlite_where=text("state = 'STASHED'"),
        info={"serves": "taking pages out of the stash, nice then first in first out"},
    ),
    Index(
        "ix_pages_skipped",
        "job_id",
        "id",
        sqlite_where=text("state = 'SKIPPED'"),
        info={"serves": "how many pages were left out, and which"},
    ),
    Index(
        "ix_pages_parked",
        "job_id",
        "ready_at",
        sqlite_where=_PARKED,
        info={"serves": "later rounds: the pages that are asked again when nothing else is pending"},
    ),
    sqlite_with_rowid=False,
    info={"holds": "the queue, and what became of each URL"},
)

KEYS_WORDS = "known URLs, on SQLite but the newest; no index of pages, which each change of one would write to"

page_keys = Table(
    "page_keys",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id"), primary_key=True),
    Column("key", LargeBinary, primary_key=True, comment="16-byte hash of a normalised URL: pages.key"),
    Column("page_id", BigInteger, nullable=False, comment="the page of that URL"),
    sqlite_with_rowid=False,
    info={"holds": KEYS_WORDS},
)

CHILDREN_WORDS = "little-endian 64-bit words: page id in the upper 56 bits, FoundAs in the lower 8"

relations = Table(
    "relations",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id"), primary_key=True),
    Column("parent_id", BigInteger, primary_key=True, autoincrement=False),
    Column("children", LargeBinary, nullable=False, comment=CHILDREN_WORDS),
    sqlite_with_rowid=False,
    info={"holds": "where each page leads: its children, packed"},
)

REPAIR_WORDS = "a shorter path to it was found after its children were recorded: theirs are still to be updated"

repairs = Table(
    "repairs",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id"), primary_key=True),
    Column("page_id", BigInteger, primary_key=True, autoincrement=False, comment=REPAIR_WORDS),
    sqlite_with_rowid=False,
    info={"holds": "pages with a shorter path, whose children are still to be updated: a dirty set of depths"},
)

BY_SESSION = text("attempts.session > 0")
"""An attempt of a fleet's job; the condition of the index that finds the newest."""

SESSION_WORDS = "epoch of the session, which leads to the pipeline; 0: the crawl of one directory"

attempts = Table(
    "attempts",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id"), primary_key=True),
    Column("page_id", BigInteger, primary_key=True, autoincrement=False),
    Column("number", SmallInteger, primary_key=True, autoincrement=False, comment="from 1"),
    Column("session", Integer, nullable=False, server_default="0", comment=SESSION_WORDS),
    Column("worker", Integer, nullable=False, comment="number of the worker within the run"),
    Column("ruleset", Integer, nullable=False, comment="version of job_rulesets when it was claimed"),
    Column("started_at", BigInteger, nullable=False, comment="Unix ms"),
    Column("finished_at", BigInteger, nullable=False, comment="Unix ms"),
    Column("status", SmallInteger, nullable=False, comment="HTTP status; 0 when no response"),
    Column("error", Text, nullable=False, comment="code: text; empty for a complete capture"),
    Index(
        "ix_attempts_ended",
        "job_id",
        "finished_at",
        sqlite_where=text("session > 0"),
        info={"serves": "the log of a fleet's job and its newest captures; a crawl of one directory has files of both"},
    ),
    sqlite_with_rowid=False,
    info={"holds": "tries at pages"},
)

results = Table(
    "results",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id"), primary_key=True),
    Column("page_id", BigInteger, primary_key=True, autoincrement=False),
    Column("attempt", SmallInteger, primary_key=True, autoincrement=False),
    Column("kind", Text, primary_key=True, comment="what it is, such as final_url (model.result)"),
    Column("value", Text, nullable=False, comment="JSON or text; empty when it is a file"),
    Column("status", Text, nullable=False, server_default="done", comment="done | failed | not-run"),
    Column("media_type", Text, nullable=False, server_default="application/json", comment="of the value or the file"),
    Column("digest", LargeBinary, comment="SHA-256 of the file that holds the value, its name; NULL: value does"),
    Column("length", BigInteger, nullable=False, server_default="0", comment="bytes of the value or the file"),
    sqlite_with_rowid=False,
    info={"holds": "what an attempt saved beyond its records"},
)

payloads = Table(
    "payloads",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id"), primary_key=True),
    Column("digest", LargeBinary, primary_key=True, comment="SHA-1 of a payload synced in this directory, 20 bytes"),
    Column("page_id", BigInteger, nullable=False, comment="the page that it was captured for; 0: `url` says what"),
    Column("captured_at", BigInteger, nullable=False, comment="WARC-Date of its record, Unix µs"),
    Column("record_id", LargeBinary, nullable=False, comment="its record's UUID, 16 bytes"),
    Column("url", Text, comment="of what a browser or a hook asked for, which need not be a page; else NULL"),
    sqlite_with_rowid=False,
    info={"holds": "payloads already kept, which revisits refer to"},
)

fresh_payloads = Table(
    "fresh_payloads",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id"), primary_key=True),
    Column("digest", LargeBinary, nullable=False, comment="as in payloads, where it comes with many others"),
    Column("page_id", BigInteger, nullable=False),
    Column("captured_at", BigInteger, nullable=False, comment="as in payloads"),
    Column("record_id", LargeBinary, nullable=False, comment="as in payloads"),
    Column("number", BigInteger, primary_key=True, autoincrement=False, comment="in the order of their captures"),
    Column("url", Text, comment="as in payloads"),
    sqlite_with_rowid=False,
    info={"holds": "on SQLite, the newest payloads, in the order of their captures; moved to payloads in bulk"},
)

robots = Table(
    "robots",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id"), primary_key=True),
    Column("origin", Text, primary_key=True, comment="scheme, host and port, as https://example.com:8443"),
    Column("status", SmallInteger, nullable=False, comment="HTTP status of its robots.txt, after redirects"),
    Column("text", Text, nullable=False),
    Column("fetched_at", BigInteger, nullable=False, comment="Unix ms; asked again after a day"),
    sqlite_with_rowid=False,
    info={"holds": "answers to requests for robots.txt"},
)

LINE_WORDS = "the page of a seed line that says more than its URL"

seeds = Table(
    "seeds",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id"), primary_key=True),
    Column("page_id", BigInteger, primary_key=True, autoincrement=False, comment=LINE_WORDS),
    Column("line", BigInteger, nullable=False, comment="counted from 1"),
    Column("digest", Text, nullable=False, comment="SHA-1 of the payload that the list knows, hex; or empty"),
    Column("etag", Text, nullable=False, comment="validator that the list knows, or empty"),
    Column("last_modified", Text, nullable=False, comment="validator that the list knows, or empty"),
    Column("captured_at", BigInteger, comment="Unix µs: when what the list knows was recorded; NULL: not known"),
    Column("meta_json", Text, nullable=False, comment="the line's other fields, a JSON object of strings; or empty"),
    sqlite_with_rowid=False,
    info={"holds": "what lines of a seed list say beyond their URL"},
)

seed_lists = Table(
    "seed_lists",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id"), primary_key=True),
    Column("place_offset", BigInteger, nullable=False, server_default="0", comment="where to read on: bytes or rows"),
    Column("place_number", BigInteger, nullable=False, server_default="0", comment="number of the last line read"),
    Column("lines", BigInteger, nullable=False, server_default="0", comment="URLs taken, of this shard"),
    Column("bad", BigInteger, nullable=False, server_default="0", comment="lines that are not a URL, and bad fields"),
    Column("duplicates", BigInteger, nullable=False, server_default="0", comment="lines whose URL an earlier one has"),
    Column("ended", Boolean, nullable=False, server_default=false(), comment="the whole list was read"),
    sqlite_with_rowid=False,
    info={"holds": "how far the seed list of a fetch was read"},
)
