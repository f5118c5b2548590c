"""The hosts of a job: their numbers, and which paths of them belong to the site."""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import bindparam, select

from muniment.tracker.engine import Database, Prepared
from muniment.tracker.tables import hosts

__all__ = ["Host", "Hosts"]

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
        self._by_name = {name: Host(host_id, name, paths) for host_id, name, paths in db.rows(_ALL, (job_id,))}
        self._names = {host.host_id: host.name for host in self._by_name.values()}
        self._next = max(self._names, default=0) + 1

    def name(self, host_id: int) -> str:
        """The name of a host by its number."""
        return self._names[host_id]

    def names(self) -> dict[int, str]:
        """All names by number; do not change it."""
        return self._names

    def get(self, name: str) -> Host:
        """The host of that name, made when it is new."""
        host = self._by_name.get(name)
        if host is None:
            host = Host(self._next, name, "")
            self._next += 1
            self._by_name[name] = host
            self._names[host.host_id] = name
            self._db.many(_ADD, [(self._job_id, host.host_id, name, "")])
        return host

    def add_site_path(self, name: str, prefix: str) -> bool:
        """Make a path prefix of a host part of the site; False when it was already."""
        host = self.get(name)
        known = host.site_paths.split("\n") if host.site_paths else []
        if prefix in known or "/" in known:
            return False
        paths = "/" if prefix == "/" else "\n".join([*known, prefix])
        self._by_name[name] = Host(host.host_id, name, paths)
        self._db.many(_SITE, [(paths, self._job_id, host.host_id)])
        return True
