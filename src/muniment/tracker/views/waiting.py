"""What of a job waits: its pages by host, its hosts, and where it begins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import bindparam, func, literal_column, or_, select

from muniment.model.network.dashboard import HostStanding, QueuedPage
from muniment.rules.hosts.job_waits import HostWait
from muniment.tracker.db.database import Database, Prepared
from muniment.tracker.schema.hooks import hook_pages
from muniment.tracker.schema.tables import CLAIMED, PENDING, hosts, pages, robots

__all__ = [
    "claimed_pages",
    "first_url",
    "host_standings",
    "next_pages",
    "pages_with_hooks",
    "pending_pages",
    "waits_of_hosts",
]

_AT_ONCE = 5_000
_MOST_REASONS = 1_000
_JOB = pages.c.job_id == bindparam("job")
_OF_PENDING = pages, "INDEXED BY ix_pages_pending", "sqlite"
_OF_SKIPPED = pages, "INDEXED BY ix_pages_skipped", "sqlite"
_OF_CLAIMED = pages, "INDEXED BY ix_pages_claimed", "sqlite"
_NEXT_HOST = Prepared(
    select(pages.c.host_id)
    .with_hint(*_OF_PENDING)
    .where(_JOB, PENDING, pages.c.host_id > bindparam("host"))
    .order_by(pages.c.host_id)
    .limit(1),
    "job", "host",
)  # fmt: skip
_OF_HOST = Prepared(
    select(pages.c.id, pages.c.url, pages.c.nice, pages.c.ready_at)
    .with_hint(*_OF_PENDING)
    .where(_JOB, PENDING, pages.c.host_id == bindparam("host"))
    .order_by(pages.c.nice, pages.c.id)
    .limit(bindparam("most")),
    "job", "host", "most",
)  # fmt: skip
_PENDING_OF_HOST = Prepared(
    select(func.count())
    .select_from(pages)
    .with_hint(*_OF_PENDING)
    .where(_JOB, PENDING, pages.c.host_id == bindparam("host")),
    "job", "host",
)  # fmt: skip


def first_url(db: Database, job_id: int) -> str:
    """The first URL of a job; empty as long as it has none."""
    found = select(pages.c.url).where(pages.c.job_id == job_id).order_by(pages.c.id).limit(1)
    return str(db.connection.execute(found).scalar() or "")


def _host_names(db: Database, job_id: int) -> dict[int, str]:
    found = select(hosts.c.id, hosts.c.name).where(hosts.c.job_id == job_id)
    return {int(number): str(name) for number, name in db.connection.execute(found)}


def claimed_pages(db: Database, job_id: int, most: int) -> list[QueuedPage]:
    """Pages that are handed out."""
    found = (
        select(hosts.c.name, pages.c.url, pages.c.nice)
        .with_hint(*_OF_CLAIMED)
        .join(hosts, (hosts.c.job_id == pages.c.job_id) & (hosts.c.id == pages.c.host_id))
        .where(pages.c.job_id == job_id, CLAIMED)
        .limit(most)
    )
    rows = db.connection.execute(found)
    return [QueuedPage(host=host, url=url, nice=nice, ready_at=0, in_flight=True) for host, url, nice in rows]


def next_pages(db: Database, job_id: int, most_hosts: int, most_each: int) -> list[QueuedPage]:
    """The pages that come next, of each of the first hosts; reads no others."""
    made: list[QueuedPage] = []
    host_id = -1
    for _ in range(most_hosts):
        rows = db.rows(_NEXT_HOST, (job_id, host_id))
        if not rows:
            break
        host_id = int(rows[0][0])
        name = _host_name(db, job_id, host_id)
        made += [
            QueuedPage(host=name, url=str(url), nice=int(nice), ready_at=int(ready_at))
            for _, url, nice, ready_at in db.rows(_OF_HOST, (job_id, host_id, most_each))
        ]
    return made


def _host_name(db: Database, job_id: int, host_id: int) -> str:
    found = select(hosts.c.name).where(hosts.c.job_id == job_id, hosts.c.id == host_id)
    return str(db.connection.execute(found).scalar() or "")


def pending_pages(db: Database, job_id: int) -> Iterator[QueuedPage]:
    """All pages that wait, by host, in the order of their turn; a part at a time."""
    names = _host_names(db, job_id)
    found = (
        select(pages.c.host_id, pages.c.url, pages.c.nice, pages.c.ready_at)
        .with_hint(*_OF_PENDING)
        .where(pages.c.job_id == job_id, PENDING)
        .order_by(pages.c.host_id, pages.c.nice, pages.c.id)
    )
    for part in db.connection.execute(found).partitions(_AT_ONCE):
        for host_id, url, nice, ready_at in part:
            yield QueuedPage(host=names.get(host_id, ""), url=url, nice=nice, ready_at=ready_at)


def waits_of_hosts(db: Database, job_id: int, now: int) -> tuple[list[HostWait], int, int]:
    """The hosts that are left alone now, by reason; how many there are; the longest delay of a robots.txt in ms."""
    c = hosts.c
    mine = select(func.count(), func.max(c.crawl_delay_ms)).where(c.job_id == job_id)
    every, delay = db.connection.execute(mine).one()
    alone = select(c.wait_reason, func.count(), func.min(c.wait_until)).where(c.job_id == job_id, c.wait_until > now)
    found = db.connection.execute(alone.group_by(c.wait_reason).limit(_MOST_REASONS))
    return [HostWait(str(why), int(count), int(until)) for why, count, until in found], int(every), int(delay or 0)


def pages_with_hooks(db: Database, job_id: int) -> int:
    """How many pages wait for their hooks."""
    waiting = select(func.count()).select_from(hook_pages).where(hook_pages.c.job_id == job_id, ~hook_pages.c.done)
    return int(db.connection.execute(waiting).scalar_one())


def host_standings(db: Database, job_id: int, after: str, most: int) -> list[HostStanding]:
    """The hosts of a job after a name, in the order of their names."""
    c = hosts.c
    found = select(c.id, c.name, c.crawl_delay_ms, c.wait_until, c.wait_reason, c.strikes, c.answered)
    found = found.where(c.job_id == job_id, c.name > after).order_by(c.name).limit(most)
    rows = db.connection.execute(found).all()
    busy, files = _in_flight(db, job_id), _robots_of(db, job_id, {row.name for row in rows})
    dead = _dead(db, job_id, [row.id for row in rows if not row.answered])
    return [
        _standing(db, job_id, row, busy.get(row.id, 0), files.get(row.name, []), dead.get(row.id, "")) for row in rows
    ]


def _robots_of(db: Database, job_id: int, names: set[str]) -> dict[str, list[str]]:
    """By host: the status of the robots.txt of its origins."""
    c = robots.c
    usual = [f"{scheme}://{name}" for name in names for scheme in ("http", "https")]
    found = select(c.origin, c.status).where(c.job_id == job_id, or_(c.origin.in_(usual), c.origin.like("%://%:%")))
    told: dict[str, list[str]] = {}
    for origin, status in db.connection.execute(found.order_by(c.origin)):
        place = str(origin).partition("://")[2]
        name = place if place in names else place.rpartition(":")[0]
        if name in names:
            told.setdefault(name, []).append(str(status or "no answer"))
    return told


def _dead(db: Database, job_id: int, ids: list[int]) -> dict[int, str]:
    """Why hosts that never answered were given up, or may not be reached, by what is said of their pages."""
    if not ids:
        return {}
    final = or_(pages.c.reason.startswith("dead-host: "), pages.c.reason.startswith("private-address: "))
    skipped = (pages.c.state == literal_column("'SKIPPED'")) & final
    found = select(pages.c.host_id, func.min(pages.c.reason)).with_hint(*_OF_SKIPPED)
    found = found.where(pages.c.job_id == job_id, skipped, pages.c.host_id.in_(ids)).group_by(pages.c.host_id)
    return {int(host): str(why) for host, why in db.connection.execute(found)}


def _in_flight(db: Database, job_id: int) -> dict[int, int]:
    found = select(pages.c.host_id, func.count()).with_hint(*_OF_CLAIMED).where(pages.c.job_id == job_id, CLAIMED)
    return {int(host): int(count) for host, count in db.connection.execute(found.group_by(pages.c.host_id))}


def _standing(db: Database, job_id: int, row: Any, in_flight: int, robots_txt: list[str], dead: str) -> HostStanding:
    return HostStanding(
        name=row.name,
        queued=int(db.rows(_PENDING_OF_HOST, (job_id, row.id))[0][0]),
        in_flight=in_flight,
        crawl_delay_ms=row.crawl_delay_ms,
        wait_until=row.wait_until,
        wait_reason=row.wait_reason,
        strikes=row.strikes,
        answered=row.answered,
        robots=", ".join(robots_txt),
        dead=dead,
    )
