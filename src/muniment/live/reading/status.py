"""The state of the live planes of a database: what each says of itself, and what of its jobs is there."""

from __future__ import annotations

from functools import partial

from msgspec import Struct

from muniment.clock import now_ms
from muniment.live import layout
from muniment.live.link import Client, text_of, texts, typed
from muniment.live.reaper import REAPER
from muniment.live.steering import whole_number

__all__ = ["JobStatus", "LiveStatus", "PlaneStatus", "read_status"]


class PlaneStatus(Struct, frozen=True, kw_only=True):
    """A process that has a live plane."""

    host: str
    pid: int
    since: int
    """Unix ms: connected since then."""
    roles: tuple[str, ...]
    reaper: bool
    """It is the one that looks for silent jobs."""
    fault: str
    """The last time that Redis could not be used; empty for none."""
    fault_at: int
    known_epoch: bool
    """It has this very data."""


class JobStatus(Struct, frozen=True, kw_only=True):
    """A job that runs."""

    ident: str
    url: str
    ours: bool
    log_score: int
    broadcasted: int
    analyzed: int
    trimmed: int
    entries: int
    """In Redis."""
    waiting: int | None
    """Entries that are committed and not in Redis, as of some seconds ago; None: unknown."""
    batch_age_ms: int | None
    left_out: int
    """Entries that left Redis before others had read them."""
    foreign_roles: tuple[str, ...]
    """Roles of ours that another program plays, too."""


class LiveStatus(Struct, frozen=True, kw_only=True):
    """A database of the live plane."""

    address: str
    version: str
    run_id: str
    epoch: str
    planes: list[PlaneStatus]
    jobs: list[JobStatus]
    foreign_pipelines: list[str]


def read_status(client: Client, address: str) -> LiveStatus:
    """The state of all of it now."""
    info = client.info("server")
    epoch = text_of(typed(lambda: client.get(layout.EPOCH)))
    holder = text_of(typed(lambda: client.get(REAPER)))
    keys = sorted(client.scan_iter(match=f"{layout.PLANES}*", count=1000))
    planes = [_plane(_hash(client, key), holder, epoch) for key in keys]
    running = dict.fromkeys(typed(lambda: client.lrange(layout.WORKING, 0, -1)) or ())
    jobs = [_job(client, text_of(ident)) for ident in running]
    return LiveStatus(
        address=address,
        version=str(info["redis_version"]),
        run_id=str(info["run_id"]),
        epoch=epoch,
        planes=planes,
        jobs=jobs,
        foreign_pipelines=_foreign_pipelines(client, jobs),
    )


def _plane(fields: dict[str, str], holder: str, epoch: str) -> PlaneStatus:
    return PlaneStatus(
        host=fields.get("host", ""),
        pid=_number(fields.get("pid")),
        since=_number(fields.get("since")),
        roles=tuple(filter(None, fields.get("roles", "").split(","))),
        reaper=bool(holder) and fields.get("reaper") == holder,
        fault=fields.get("fault", ""),
        fault_at=_number(fields.get("fault_at")),
        known_epoch=fields.get("epoch") == epoch,
    )


def _job(client: Client, ident: str) -> JobStatus:
    record, own = _hash(client, ident), _hash(client, layout.own_key(ident))
    score, committed = _number(record.get("log_score")), own.get("committed")
    stamp = record.get("ts", "").partition(".")[0]
    return JobStatus(
        ident=ident,
        url=record.get("url", ""),
        ours=bool(own),
        log_score=score,
        broadcasted=_number(record.get("last_broadcasted_log_entry")),
        analyzed=_number(record.get("last_analyzed_log_entry")),
        trimmed=_number(record.get("last_trimmed_log_entry")),
        entries=typed(lambda: client.zcard(layout.log_key(ident))) or 0,
        waiting=None if committed is None else max(0, _number(committed) - score),
        batch_age_ms=max(0, now_ms() - 1000 * _number(stamp)) if stamp else None,
        left_out=_number(own.get("left_out")),
        foreign_roles=tuple(filter(None, own.get("foreign", "").split(","))),
    )


def _foreign_pipelines(client: Client, jobs: list[JobStatus]) -> list[str]:
    """The pipelines of jobs that are not of ours."""
    found = {_hash(client, job.ident).get("pipeline_id", "") for job in jobs if not job.ours}
    return sorted(found - {""})


def _hash(client: Client, key: str | bytes) -> dict[str, str]:
    found = typed(partial(client.hgetall, key)) or {}
    return dict(zip(texts(found), texts(found.values()), strict=True))


def _number(text: str | None) -> int:
    return whole_number(text or "") or 0
