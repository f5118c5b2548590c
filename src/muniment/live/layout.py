"""The layout of a job in Redis: its keys, and the fields of its record."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from muniment.model.job import JobOutcome
from muniment.model.network.live import LiveJob, LogState, QueuedJob
from muniment.model.url import is_web
from muniment.settings.option_table import DEFAULT_USER_AGENT

__all__ = [
    "ANNOUNCED", "EPOCH", "IN_FORCE", "NOTICES", "PIPELINES", "PIPELINE_UPDATES", "PLANES", "QUEUED", "TAKEN",
    "UPDATES", "WORKING", "ReadFirst", "begun_fields", "counter_fields", "ignores_key", "job_channel", "job_keys",
    "log_key", "notice", "notice_of_queued", "own_ignores_key", "own_key", "pipeline_key", "plane_key",
    "rebuild_channel", "record_fields", "setting_fields", "target_of", "watermark",
]  # fmt: skip

WORKING, PIPELINES, NOTICES = "working", "pipelines", "finish_notifications"
EPOCH, TAKEN = "muniment:epoch", "muniment:taken"
"""Ours: which data this is; and idents taken from queues, until the tracker has them, with the tracker's name."""
PLANES = "muniment:plane:"
"""How keys of live planes begin."""
UPDATES, PIPELINE_UPDATES = "updates", "archivebot:pipeline_updates"
QUEUED, ANNOUNCED = "tweets:queue", "tweets:done"
IN_FORCE = ("concurrency", "delay_min", "delay_max", "suppress_ignore_reports", "note")
"""Fields that others may change, which are settings; an absent one is empty."""
_WATERMARK = 100_000


class ReadFirst(NamedTuple):
    """The fields of a record that are read before it is written."""

    url: bytes | None
    counted: bytes | None
    log_score: bytes | None
    heartbeat: bytes | None
    last_trimmed_log_entry: bytes | None
    settings_age: bytes | None
    pipeline_id: bytes | None
    grabber: bytes | None
    youtube_dl: bytes | None


def log_key(ident: str) -> str:
    """The key of a job's log."""
    return f"{ident}_log"


def ignores_key(ident: str) -> str:
    """The key of its ignore patterns."""
    return f"{ident}_ignores"


def job_channel(ident: str) -> str:
    """The channel on which the age of its settings is published."""
    return f"archivebot:job:{ident}"


def rebuild_channel(ident: str) -> str:
    """The channel on which somebody asks that its layout be written anew."""
    return f"muniment:rebuild:{ident}"


def plane_key(instance: str) -> str:
    """The key under which a live plane reports its state."""
    return f"{PLANES}{instance}"


def own_key(ident: str) -> str:
    """The key beside the record of a job of ours: what was written last, and how far its log goes."""
    return f"muniment:{ident}"


def own_ignores_key(ident: str) -> str:
    """The key of the patterns that were written last."""
    return f"{own_key(ident)}_ignores"


def job_keys(ident: str) -> tuple[str, ...]:
    """All keys of a job: its record, log and patterns, and ours beside them."""
    return ident, log_key(ident), ignores_key(ident), own_key(ident), own_ignores_key(ident)


def pipeline_key(instance: str) -> str:
    """The key of a pipeline's record; empty for none."""
    return f"pipeline:{instance}" if instance else ""


def target_of(url: str, seed: str) -> str:
    """What a job archives: its first start URL, or its list."""
    if not seed:
        return url
    return seed if is_web(seed) else Path(seed).absolute().as_uri()


def record_fields(job: LiveJob, state: LogState, queued: int, now_ms: int) -> dict[str, str]:
    """The whole record of a job, as far as the tracker has it."""
    fields = begun_fields(job, job.ident, "") | setting_fields(job)
    fields |= counter_fields(state, queued, now_ms, analyzer=True)
    fields |= {"settings_age": str(job.age), "log_score": str(state.position.score)}
    if job.finished_at:
        fields["finished_at"] = _seconds(job.finished_at)
    return {name: value for name, value in fields.items() if value}


def begun_fields(job: LiveJob, ident: str, pipeline_id: str) -> dict[str, str]:
    """The fields that stay as they are."""
    settings = job.settings
    depth, listed = _depth(job), bool(settings.seed or settings.start_list)
    agent = settings.user_agent
    fields = {
        "url": job.url,
        "slug": _slug(job.url, depth, listed=listed),
        "fetch_depth": depth,
        "log_key": log_key(ident),
        "ignore_patterns_set_key": ignores_key(ident),
        "started_by": job.started_by,
        "started_in": job.started_in,
        "queued_at": job.queued or _seconds(job.created_at),
        "started_at": _seconds(job.started_at or job.created_at),
        "user_agent": "" if agent == DEFAULT_USER_AGENT else agent,
    }
    if pipeline_id:
        fields["pipeline_id"] = pipeline_id
    if listed:
        fields["url_file"] = job.url
    if not settings.offsite_links:
        fields["no_offsite_links"] = "true"
    return fields


def _depth(job: LiveJob) -> str:
    return "shallow" if job.settings.page_only or job.settings.seed else "inf"


def notice(job: LiveJob, outcome: str, pipeline_id: str) -> bytes:
    """The notice of a job's end."""
    queued, listed = job.queued or _seconds(job.created_at), bool(job.settings.seed or job.settings.start_list)
    asked = QueuedJob(
        ident=job.ident, url=job.url, queued=queued, listed=listed, shallow=_depth(job) == "shallow",
        started_by=job.started_by, started_in=job.started_in,
    )  # fmt: skip
    return notice_of_queued(asked, outcome, pipeline_id)


def notice_of_queued(job: QueuedJob, outcome: str, pipeline_id: str) -> bytes:
    """The same of a job that is known by its record alone."""
    return msgspec.json.encode(
        {
            "aborted": outcome == JobOutcome.ABORTED,
            "failed": outcome == JobOutcome.FAILED,
            "fetch_depth": "shallow" if job.shallow else "inf",
            "ident": job.ident,
            "pipeline_id": pipeline_id,
            "queued_at": job.queued,
            "started_by": job.started_by,
            "started_in": job.started_in,
            "url": job.url,
            "url_file": job.url if job.listed else None,
        }
    )


def _slug(url: str, depth: str, *, listed: bool) -> str:
    parts = urlsplit(url.partition("#")[0])
    host = parts.hostname or "local"
    return f"urls-{host}-{parts.path.rpartition('/')[2]}-{depth}" if listed else f"{host}-{depth}"


def setting_fields(job: LiveJob) -> dict[str, str]:
    """The settings in force; an empty text is for a field that is absent."""
    settings = job.settings
    return {
        "concurrency": "0" if job.paused else str(settings.per_host),
        "delay_min": str(settings.delay.low),
        "delay_max": str(settings.delay.high),
        "suppress_ignore_reports": "" if settings.ignore_reports == "on" else "true",
        "note": job.explanation,
    }


def counter_fields(state: LogState, queued: int, now_ms: int, *, analyzer: bool) -> dict[str, str]:
    """The sums after a commit; what an analyzer counts is left to another one where that has the role."""
    totals = state.totals
    fields = {
        "bytes_downloaded": totals.payload_bytes,
        "items_downloaded": totals.responses_2xx + totals.responses_3xx,
        "items_queued": queued,
        "next_watermark": watermark(queued),
    }
    if analyzer:
        fields |= {
            "error_count": totals.responses_4xx + totals.responses_5xx,
            "r1xx": totals.responses_1xx,
            "r2xx": totals.responses_2xx,
            "r3xx": totals.responses_3xx,
            "r4xx": totals.responses_4xx,
            "r5xx": totals.responses_5xx,
            "runk": state.position.unknown,
        }
    return {"ts": _seconds(now_ms), **{name: str(value) for name, value in fields.items()}}


def watermark(queued: int) -> int:
    """The next multiple of 100,000 that is not below what is queued."""
    return max(1, -(-queued // _WATERMARK)) * _WATERMARK


def _seconds(at_ms: int) -> str:
    return f"{at_ms / 1000:.3f}"
