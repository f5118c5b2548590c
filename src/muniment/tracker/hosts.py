"""The hosts of a job: their numbers, which paths of them belong to the site, and what they asked us to wait for."""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import bindparam, select

from muniment.tracker.engine import Database, Prepared, Row, one_transaction
from muniment.tracker.tables import hosts

__all__ = ["Host", "HostWaits", "Hosts"]

_ALL = Prepared(select(hosts.c.id, hosts.c.name, hosts.c.site_paths).where(hosts.c.job_id == bindparam("job")), "job")
_ADD = Prepared(
    hosts.insert().values(
        job_id=bindparam("job"), id=bindparam("host"), name=bindparam("n"), site_paths=bindparam("p")
    ),
    "job",
    "host",
    "n",
    "p",
)
_SITE = Prepared(
    hosts.update()
    .where(hosts.c.job_id == bindparam("job"), hosts.c.id == bindparam("host"))
    .values(site_paths=bindparam("p")),
    "p",
    "job",
    "host",
)
_WAITING = Prepared(
    select(hosts.c.id, hosts.c.crawl_delay_ms, hosts.c.wait_until, hosts.c.wait_reason, hosts.c.strikes).where(
        hosts.c.job_id == bindparam("job"),
        (hosts.c.crawl_delay_ms > 0) | (hosts.c.wait_until > 0) | (hosts.c.strikes > 0),
    ),
    "job",
)
_WAIT = Prepared(
    hosts.update()
    .where(hosts.c.job_id == bindparam("job"), hosts.c.id == bindparam("host"))
    .values(
        crawl_delay_ms=bindparam("gap"), wait_until=bindparam("u"), wait_reason=bindparam("r"), strikes=bindparam("s")
    ),
    "gap", "u", "r", "s", "job", "host",
)  # fmt: skip


class HostWaits(Struct, frozen=True):
    """What a host wants of us, over a resume."""

    crawl_delay_ms: int = 0
    until: int = 0
    """Unix ms: nothing is asked before."""
    reason: str = ""
    strikes: int = 0
    """Bad news in a row; the back-off grows with it."""


_NONE = HostWaits()


class Host(Struct, frozen=True):
    """A host of a job."""

    host_id: int
    name: str
    site_paths: str
    """Path prefixes that belong to the site, one a line; empty for none."""


class Hosts:
    """All hosts of one job, in memory and in the table; changes happen within the caller's transaction."""

    def __init__(self, db: Database, job_id: int) -> None:
        self._db, self._job_id = db, job_id
        self._by_name: dict[str, Host] = {}
        self._names: dict[int, str] = {}
        self._new: list[Row] = []
        self.waits: dict[int, HostWaits] = {}
        """By host number; hosts that ask for nothing are left out."""
        self._load()
        db.forget.append(self._load)

    def _load(self) -> None:
        rows = self._db.rows(_ALL, (self._job_id,))
        self._by_name = {name: Host(host_id, name, paths) for host_id, name, paths in rows}
        # those who were given the names keep them
        self._names.clear()
        self._names.update((host.host_id, host.name) for host in self._by_name.values())
        self._next = max(self._names, default=0) + 1
        self._new.clear()
        self.waits.clear()
        self.waits.update((row[0], HostWaits(*row[1:])) for row in self._db.rows(_WAITING, (self._job_id,)))

    def waits_of(self, host_id: int) -> HostWaits:
        """What a host wants of us."""
        return self.waits.get(host_id, _NONE)

    @one_transaction
    def keep_waits(self, host_id: int, waits: HostWaits) -> None:
        """Keep them at once, in a transaction of their own: a kill before the page's finish must not lose them."""
        if waits == _NONE:
            self.waits.pop(host_id, None)
        else:
            self.waits[host_id] = waits
        row = (waits.crawl_delay_ms, waits.until, waits.reason, waits.strikes, self._job_id, host_id)
        with self._db.transaction():
            self._db.many(_WAIT, [row])

    def name(self, host_id: int) -> str:
        """The name of a host by its number."""
        return self._names[host_id]

    def names(self) -> dict[int, str]:
        """All names by number; do not change it."""
        return self._names

    def get(self, name: str) -> Host:
        """The host of that name; a new one is made, and written by the next `write_new`."""
        host = self._by_name.get(name)
        if host is None:
            host = Host(self._next, name, "")
            self._next += 1
            self._by_name[name] = host
            self._names[host.host_id] = name
            self._new.append((self._job_id, host.host_id, name, ""))
        return host

    def write_new(self) -> None:
        """Write the hosts that were made."""
        self._db.many(_ADD, self._new)
        self._new.clear()

    def add_site_path(self, name: str, prefix: str) -> bool:
        """Make a path prefix of a host part of the site; False when it was already."""
        host = self.get(name)
        self.write_new()
        known = host.site_paths.split("\n") if host.site_paths else []
        if prefix in known or "/" in known:
            return False
        paths = "/" if prefix == "/" else "\n".join([*known, prefix])
        self._by_name[name] = Host(host.host_id, name, paths)
        self._db.many(_SITE, [(paths, self._job_id, host.host_id)])
        return True
