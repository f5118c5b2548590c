"""`inspect`: what directories and index files hold, in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
from msgspec import Struct

from muniment.control.hook_reports import HookTotal, hook_totals
from muniment.control.indexes import captures_under, paths_of
from muniment.control.runs.counts import counted_by_rows, directory_summary, summed
from muniment.errors import ArchiveError
from muniment.model.capture import LISTED_AGAIN
from muniment.model.network.counts import JobSummary

__all__ = ["HostTotal", "Inspection", "KindTotal", "RowTotal", "Span", "inspect_paths", "span_ms"]

_MOST_SPANS = 19
"""With its head, the table has twenty lines."""
_SPANS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
_READS = 5
"""A running crawl joins its index now and then: what was listed is then gone, and is listed again."""


class HostTotal(Struct, frozen=True):
    """The totals of one host."""

    host: str
    captures: int
    payload_bytes: int


class Span(Struct, frozen=True):
    """The totals of one span of time."""

    start_ms: int
    captures: int
    payload_bytes: int
    errors: int


class RowTotal(Struct, frozen=True):
    """One row of a sample."""

    status: int
    payload_bytes: int
    url: str
    error: str


class KindTotal(Struct, frozen=True):
    """Records of one kind that were made of pages."""

    kind: str
    """`view`, `dom` and others."""
    records: int
    bytes: int


class Inspection(JobSummary, frozen=True, kw_only=True):
    """The counts of directories, and their index in numbers."""

    directories: tuple[JobSummary, ...]
    """The counts of each directory and index file; those above are their sums."""
    exchanges: int
    """Rows, without what browsers made of pages, and without copies."""
    complete: int
    """Of these, those without an error."""
    revisits: int
    unchanged: int
    """Captures that are what the seed list knows of them; most are among the revisits."""
    payload_bytes: int
    stored_bytes: int
    first_ms: int
    last_ms: int
    statuses: dict[str, int]
    """Rows with a record by status, robots.txt and repeated tries among them."""
    types: dict[str, int]
    all_hosts: int
    failed_urls: int
    """URLs, robots.txt apart, whose last row has an error or a status that asks for another try."""
    hosts: tuple[HostTotal, ...]
    span_ms: int
    speed: tuple[Span, ...]
    """What came in, span by span; empty spans are left out."""
    sample: tuple[RowTotal, ...]
    """The last rows of the site."""
    hooks: tuple[HookTotal, ...] = ()
    """What hooks did."""
    rendered: tuple[KindTotal, ...] = ()
    """What was made of pages in browsers, beside the rows above."""


def inspect_paths(patterns: Sequence[str], sample: int, hosts: int = 10) -> Inspection:
    """Sum up output directories and index files; a pattern may stand for many."""
    paths = paths_of(patterns)
    for _ in range(_READS - 1):
        try:
            return _inspect(paths, sample, hosts)
        except (ArchiveError, FileNotFoundError):
            continue
        except duckdb.Error as error:
            if "No such file" not in str(error):
                raise
    return _inspect(paths, sample, hosts)


def span_ms(first_ms: int, last_ms: int) -> int:
    """The length of spans that cut a time into at most nineteen."""
    long = last_ms - first_ms
    for seconds in _SPANS_S:
        if long // (seconds * 1000) + 2 <= _MOST_SPANS:
            return seconds * 1000
    days = -(-long // (86_400_000 * (_MOST_SPANS - 2)))
    return days * 86_400_000


def _inspect(paths: Sequence[Path], sample: int, hosts: int) -> Inspection:
    captures = captures_under(paths)
    with duckdb.connect() as db:
        db.register("all_rows", captures)
        db.execute(_EXCHANGES)

        def rows(sql: str, *values: object) -> tuple[tuple[object, ...], ...]:
            return tuple(db.execute(sql, values or None).fetchall())

        counted = [directory_summary(path) or _by_rows(path) for path in paths]
        whole = summed(counted)
        site = list(whole.site.hosts)
        sums = dict(zip(_SUMS, rows(f"SELECT {', '.join(_SUMS.values())} FROM c")[0], strict=True))  # noqa: S608 (ours)
        span = span_ms(sums["first_ms"], sums["last_ms"])  # type: ignore[arg-type]
        return Inspection(
            **{name: getattr(whole, name) for name in JobSummary.__struct_fields__},
            **sums,  # type: ignore[arg-type]
            directories=tuple(counted),
            failed_urls=rows(_FAILED)[0][0],  # type: ignore[arg-type]
            statuses=dict(rows(_STATUSES)),  # type: ignore[arg-type]
            types=dict(rows(_TYPES)),  # type: ignore[arg-type]
            hosts=tuple(HostTotal(*row) for row in rows(_HOSTS, hosts)),  # type: ignore[arg-type]
            span_ms=span,
            speed=tuple(Span(*row) for row in rows(_SPEED, span, span)),  # type: ignore[arg-type]
            sample=tuple(RowTotal(*row) for row in rows(_SAMPLE, site, site, sample)),  # type: ignore[arg-type]
            hooks=hook_totals(paths),
            rendered=tuple(KindTotal(*row) for row in rows(_RENDERED)),  # type: ignore[arg-type]
        )


def _by_rows(path: Path) -> JobSummary:
    """The counts of what has no tracker, by its rows alone."""
    with duckdb.connect() as db:
        db.register("all_rows", captures_under([path]))
        db.execute(_EXCHANGES)
        return counted_by_rows(lambda sql: db.execute(sql).fetchall(), str(path))


_MADE = "record_type = 'resource' AND engine = 'browser'"
_EXCHANGES = f"""
    CREATE TEMP VIEW c AS SELECT * FROM all_rows WHERE found_as <> '{LISTED_AGAIN}' AND NOT ({_MADE})
"""  # noqa: S608 (ours)
_RENDERED = f"""
    SELECT split_part(url, ':', 2) AS kind, count(*) AS n, sum(body_length)::BIGINT FROM all_rows WHERE {_MADE}
    GROUP BY kind ORDER BY n DESC, kind
"""  # noqa: S608 (ours)
_SUMS = {
    "exchanges": "count(*)",
    "complete": "count(*) FILTER (error = '')",
    "revisits": "count(*) FILTER (record_type = 'revisit')",
    "unchanged": "count(*) FILTER (unchanged)",
    "payload_bytes": "coalesce(sum(body_length), 0)::BIGINT",
    "stored_bytes": "coalesce(sum(warc_length), 0)::BIGINT",
    "first_ms": "coalesce(min(fetched_at), 0)",
    "last_ms": "coalesce(max(fetched_at), 0)",
    "all_hosts": "count(DISTINCT host)",
}
_FAILS = "(error <> '' OR status IN (408, 425, 429) OR status // 100 = 5)"
"""As `rules.retry.is_failed` has it."""
# sought among those that ever failed: to put millions in order by their URLs takes a lot of memory
_FAILED = f"""
    SELECT count(*) FROM (
        SELECT arg_max({_FAILS}, (fetched_at, attempt)) AS failed FROM c
        WHERE found_as <> 'robots' AND url IN (SELECT url FROM c WHERE found_as <> 'robots' AND {_FAILS}) GROUP BY url
    ) WHERE failed
"""  # noqa: S608 (ours)
_STATUSES = """
    SELECT status::VARCHAR, count(*) AS n FROM c WHERE status > 0 GROUP BY status ORDER BY n DESC, status
"""
_TYPES = """
    SELECT lower(trim(split_part(content_type, ';', 1))) AS kind, count(*) AS n
    FROM c WHERE status > 0 GROUP BY kind ORDER BY n DESC, kind LIMIT 10
"""
_HOSTS = """
    SELECT host, count(*) AS n, sum(body_length)::BIGINT FROM c GROUP BY host ORDER BY n DESC, host LIMIT ?
"""
_SPEED = """
    SELECT fetched_at // ? * ? AS start, count(*), sum(body_length)::BIGINT, count(*) FILTER (error <> '')
    FROM c GROUP BY start ORDER BY start
"""
_SAMPLE = """
    SELECT status, body_length, url, error FROM c WHERE ? = [] OR host IN (SELECT unnest(?))
    ORDER BY fetched_at DESC, url LIMIT ?
"""
