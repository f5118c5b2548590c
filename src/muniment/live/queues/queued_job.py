"""A record of a job in Redis that nobody runs yet, read as what is asked for; what makes no sense is left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from muniment.live.steering import MOST_NOTE, MOST_PATTERN, MOST_PATTERNS, whole_number
from muniment.model.network.live import QueuedJob

__all__ = ["queued_job"]

_MOST_NAME = 200


def queued_job(ident: str, queue: str, record: Mapping[bytes, bytes], ignores: Iterable[bytes]) -> QueuedJob:
    """The job of a record and its ignore patterns."""
    fields = {name.decode("utf-8", "replace"): value.decode("utf-8", "replace") for name, value in record.items()}
    low, high = whole_number(fields.get("delay_min", "")), whole_number(fields.get("delay_max", ""))
    return QueuedJob(
        ident=ident,
        queue=queue,
        url=fields["url"],
        queued=fields.get("queued_at", ""),
        listed=bool(fields.get("url_file")),
        shallow=fields.get("fetch_depth") == "shallow",
        offsite_links=not fields.get("no_offsite_links"),
        user_agent=fields.get("user_agent", ""),
        delay=(low, high) if low is not None and high is not None and low <= high else None,
        per_host=whole_number(fields.get("concurrency", "")),
        ignore_reports=not fields.get("suppress_ignore_reports"),
        ignores=_patterns(ignores),
        note=_line(fields.get("note", ""), MOST_NOTE),
        started_by=_line(fields.get("started_by", ""), _MOST_NAME),
        started_in=_line(fields.get("started_in", ""), _MOST_NAME),
    )


def _patterns(ignores: Iterable[bytes]) -> tuple[str, ...]:
    found = []
    for pattern in sorted(ignores)[:MOST_PATTERNS]:
        try:
            text = pattern.decode()
        except UnicodeDecodeError:
            continue
        if 0 < len(text) <= MOST_PATTERN:
            found.append(text)
    return tuple(found)


def _line(text: str, most: int) -> str:
    return "".join(letter for letter in text if letter.isprintable())[:most]
