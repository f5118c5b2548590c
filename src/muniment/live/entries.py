"""Entries of a job's log, as bytes of JSON: what the log, Redis and the firehose have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from muniment.clock import now_ms
from muniment.model.event import (
    ChangeEvent,
    DamageEvent,
    Event,
    FinishEvent,
    PauseEvent,
    ResumeEvent,
    StartEvent,
    StopEvent,
    WorkerEvent,
)
from muniment.model.job import JobOutcome
from muniment.model.network.live import LiveJob, LogEntry
from muniment.model.page import ExchangeRow, PageResult

__all__ = [
    "IGNORES_A_SECOND", "MOST_BYTES", "ServerEntries", "download", "event_line", "ignored", "last_lines", "pattern_of",
    "rows_of", "stdout", "unlisted",
]  # fmt: skip

MOST_BYTES = 16 << 10
"""Of an entry."""
IGNORES_A_SECOND = 1000
"""URLs that patterns left out and that have entries; there is a line for the rest."""
_MOST_TEXT, _MOST_ESCAPED = 7500, 1200
"""Bytes of a text in an entry, of which one has two; characters of which each may become six bytes."""
_PATTERN, _SET = "ignore: ", " (set "
_DOWNLOAD = (
    b'{"type":"download","ts":%.3f,"seq":%d,"url":%s,"response_code":%d,"wget_code":%s,"is_error":%s,"is_warning":%s}'
)
_encode = msgspec.json.Encoder().encode


def download(at_ms: int, seq: int, url: str, status: int, error: str) -> bytes:
    """The entry of an exchange, or of a try without an answer."""
    bad = bool(error) or status >= 500
    return _DOWNLOAD % (
        at_ms / 1000,
        seq,
        _text(url),
        status,
        _text(error) if error else b'"OK"',
        b"true" if bad else b"false",
        b"true" if 400 <= status < 500 else b"false",
    )  # fmt: skip


def ignored(at_ms: int, seq: int, url: str, pattern: str) -> bytes:
    """The entry of a URL that a pattern left out."""
    texts = _text(url), _text(pattern)
    return b'{"type":"ignore","ts":%.3f,"seq":%d,"url":%s,"pattern":%s,"source":"accept_url"}' % (
        at_ms / 1000,
        seq,
        *texts,
    )


def stdout(at_ms: int, seq: int, message: str) -> bytes:
    """The entry of a line for operators."""
    return b'{"type":"stdout","ts":%.3f,"seq":%d,"message":%s}' % (at_ms / 1000, seq, _text(message))


def _text(text: str) -> bytes:
    """A text as JSON; a longer one ends in an ellipsis."""
    try:
        made = _encode(text)
    except UnicodeEncodeError:
        made = _encode(text.encode("utf-8", "replace").decode())
    return made if len(made) <= _MOST_TEXT else _encode(text[:_MOST_ESCAPED].encode("utf-8", "replace").decode() + "…")


def unlisted(count: int) -> str:
    """The line for URLs without entries."""
    return f"{count} more URLs were ignored, and are not listed."


class ServerEntries:
    """The entries of the jobs of a server."""

    def __init__(self) -> None:
        self._second = self._listed = 0

    def of_pages(
        self, pages: Sequence[PageResult], skipped: Sequence[tuple[str, str]], *, reports: bool
    ) -> list[LogEntry]:
        """The entries of pages, and with `reports` those of what patterns left out."""
        made = [LogEntry(at, url, status, error) for url, status, error, _, at in rows_of(pages)]
        return [*made, *self._ignored(skipped)] if reports else made

    def _ignored(self, skipped: Sequence[tuple[str, str]]) -> list[LogEntry]:
        found = [(url, pattern) for url, reason in skipped if (pattern := pattern_of(reason))]
        now = now_ms()
        if now // 1000 != self._second:
            self._second, self._listed = now // 1000, 0
        listed = found[: max(0, IGNORES_A_SECOND - self._listed)]
        self._listed += len(listed)
        made = [LogEntry(now, url, pattern=pattern) for url, pattern in listed]
        rest = len(found) - len(listed)
        return [*made, LogEntry(now, unlisted(rest))] if rest else made

    def encoded(self, seq: int, entry: LogEntry) -> bytes:
        """An entry with its number."""
        if entry.status is not None:
            return download(entry.at, seq, entry.text, entry.status, entry.error)
        if entry.pattern:
            return ignored(entry.at, seq, entry.text, entry.pattern)
        return stdout(entry.at, seq, entry.text)


def rows_of(pages: Iterable[PageResult]) -> Iterable[ExchangeRow]:
    """URL, status, error, length and end (Unix ms) of each exchange and of each try that left no row."""
    for page in pages:
        yield from page.exchanges
        if page.unanswered:
            yield page.unanswered, page.status, page.error, 0, page.finished_at


def pattern_of(reason: str) -> str:
    """The pattern that a page's reason names; empty for another reason."""
    return reason.removeprefix(_PATTERN).partition(_SET)[0] if reason.startswith(_PATTERN) else ""


def event_line(event: Event) -> str:
    """What the log says of an event, as one line; empty for nothing."""
    text = ""
    match event:
        case StartEvent(resumed=resumed):
            text = "The run goes on." if resumed else "The run begins."
        case ChangeEvent(who, what, before, after):
            text = f"{who or 'somebody'} changed {what}: {before or '-'} -> {after or '-'}"
        case PauseEvent(host=host, reason=reason, until=until):
            room = " No space left on device." if "disk" in reason else ""
            text = f"Pause of {host or 'the job'}: {reason}{f', until {until}' if until else ''}.{room}"
        case ResumeEvent(host=host, reason=reason):
            text = f"The pause of {host or 'the job'} is over: {reason}."
        case WorkerEvent(number=number, state="lost", reason=reason):
            text = f"Worker {number} died: {reason}."
        case StopEvent(reason):
            text = f"The run is asked to stop: {reason}."
        case DamageEvent(file=file, pages=pages):
            text = f"{file} is damaged and set aside; {pages} pages are fetched again."
        case FinishEvent(reason, code, captured, failed, queued):
            text = f"The run has ended ({reason}, exit {code}): {captured} captured, {failed} failed, {queued} queued."
    return text


def last_lines(job: LiveJob) -> list[str]:
    """What the log says when a run ends, in the words by which ArchiveBot's dashboard knows an end."""
    reason = job.reason or "no start URL was captured"
    lines = [f"The job has failed: {reason}."] if job.outcome == JobOutcome.FAILED else []
    if job.outcome == JobOutcome.ABORTED:
        lines.append(f"Adjusted target WARC path to {job.ident}-aborted")
    return [*lines, f"Finished RsyncUpload for Item {job.ident}"]
