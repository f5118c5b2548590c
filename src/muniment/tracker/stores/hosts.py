"""The hosts of a job: their numbers, which paths of them belong to the site, and what they asked us to wait for."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from msgspec import structs
from sqlalchemy import bindparam, literal_column, select

from muniment.model.host import HostRecord, HostWaits, origin_within
from muniment.rules.scope import site_paths
from muniment.tracker.db.database import BatchInsert, Database, Lookup, Prepared, Row, retrying_transaction
from muniment.tracker.schema.tables import hosts, jobs
from muniment.tracker.stores.hosts_in_memory import Host, HostTable
from muniment.tracker.stores.id_blocks import IdBlocks

__all__ = ["Host", "Hosts", "site_hosts"]

_ADD = BatchInsert(hosts, "job_id", "id", "name", "site_paths", conflict="IGNORE")
_FOUND = select(hosts.c.id, hosts.c.name, hosts.c.site_paths, hosts.c.answered)
_ALL = Prepared(_FOUND.where(hosts.c.job_id == bindparam("job")), "job")
_BY_NUMBER = Lookup(_FOUND, hosts.c.job_id, hosts.c.id)
_BY_NAME = Lookup(_FOUND.with_hint(hosts, "INDEXED BY uq_hosts_job_id_name", "sqlite"), hosts.c.job_id, hosts.c.name)
_SITE = Prepared(
    hosts.update()
    .where(hosts.c.job_id == bindparam("job"), hosts.c.id == bindparam("host"))
    .values(site_paths=bindparam("p")),
    "p",
    "job",
    "host",
)
_ANSWERED = Prepared(
    hosts.update()
    .where(hosts.c.job_id == bindparam("job"), hosts.c.id == bindparam("host"))
    .values(answered=bindparam("o")),
    "o",
    "job",
    "host",
)
_GROWN = Prepared(
    jobs.update().where(jobs.c.id == bindparam("job")).values(sites_age=literal_column("sites_age + 1")), "job"
)
_WAITING = Prepared(
    select(hosts.c.id, hosts.c.crawl_delay_ms, hosts.c.wait_until, hosts.c.wait_reason, hosts.c.strikes).where(
        hosts.c.job_id == bindparam("job"),
        (hosts.c.crawl_delay_ms > 0) | (hosts.c.wait_until > 0) | (hosts.c.strikes > 0),
    ),
    "job",
)
_MOST_SITES = 10_000
_OF_SITE = Prepared(
    select(hosts.c.name)
    .where(hosts.c.job_id == bindparam("job"), hosts.c.site_paths != literal_column("''"))
    .order_by(hosts.c.id)
    .limit(literal_column(str(_MOST_SITES))),
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


_NONE = HostWaits()


class Hosts:
    """All hosts of one job, in memory and in the table; changes happen within the caller's transaction."""

    def __init__(self, db: Database, job_id: int) -> None:
        self._db, self._job_id = db, job_id
        self._table = HostTable()
        self._numbers = IdBlocks(db, job_id, "hosts")
        self._noted: dict[int, HostWaits] = {}
        """To be written with the next finish."""
        self._written: dict[int, HostWaits] = {}
        """Written last; an undone transaction may have taken them along."""
        self._heard: dict[int, str] = {}
        self._heard_written: dict[int, str] = {}
        """The same two of `Host.answered`."""
        self.waits: dict[int, HostWaits] = {}
        """By host number; hosts that ask for nothing are left out."""
        self._rests: dict[int, dict[str, int]] = {}
        self._load()
        db.on_rollback(self._load)

    def _load(self) -> None:
        self._table = HostTable()
        self._meet_again(self._db.rows(_ALL, (self._job_id,)))
        self._numbers.begin(self._table.highest)
        self.waits.clear()
        self.waits.update((row[0], HostWaits(*row[1:])) for row in self._db.rows(_WAITING, (self._job_id,)))
        for host_id, waits in {**self._written, **self._noted}.items():
            self.note_waits(host_id, waits)
        self._heard = {**self._heard_written, **self._heard}
        for host_id, answered in self._heard.items():
            self._table.answer(host_id, answered)

    def waits_of(self, host_id: int) -> HostWaits:
        """The waits of a host."""
        return self.waits.get(host_id, _NONE)

    @retrying_transaction
    def keep_waits(self, host_id: int, waits: HostWaits) -> None:
        """Keep them at once, in a transaction of their own: a kill before the page's finish must not lose them."""
        self.note_waits(host_id, waits)
        with self._db.transaction():
            self.keep_noted()

    @retrying_transaction
    def keep_rest(self) -> None:
        """Keep what is noted still: no more pages will finish."""
        if self._noted or self._heard:
            with self._db.transaction():
                self.keep_noted()

    def note_waits(self, host_id: int, waits: HostWaits) -> None:
        """Keep them with the pages that finish next."""
        if waits == _NONE:
            self.waits.pop(host_id, None)
        else:
            self.waits[host_id] = waits
        self._noted[host_id] = waits

    def resting(self, host_ids: Iterable[int], now: int) -> dict[int, list[str]]:
        """How the URLs begin of origins that are left alone at `now` (Unix ms) though their hosts are not."""
        found = {}
        for host_id in host_ids if self._rests else ():
            rests = self._rests.get(host_id, {})
            if left := [f"{origin}/" for origin, until in rests.items() if until > now]:
                found[host_id] = left
        return found

    def keep_noted(self) -> None:
        """Write what was noted, within the caller's transaction."""
        self._written, self._noted = self._noted, {}
        rows = [(*structs.astuple(waits), self._job_id, host_id) for host_id, waits in sorted(self._written.items())]
        self._db.many(_WAIT, rows)
        self._heard_written, self._heard = self._heard, {}
        heard = [(answered, self._job_id, host_id) for host_id, answered in sorted(self._heard_written.items())]
        self._db.many(_ANSWERED, heard)

    def has_answered(self, host_id: int, url: str) -> bool:
        """Whether the origin of a URL of a host has answered in this job."""
        name = self.name(host_id)
        return HostRecord(host_id, self._table.answered(host_id)).has_answered(name, url)

    @property
    def any_answered(self) -> bool:
        """Whether any host has answered in this job."""
        return self._table.any_answered

    def answers(self, host_id: int) -> bool:
        """Whether any origin of a host has answered in this job."""
        self.name(host_id)
        return bool(self._table.answered(host_id))

    def note_answered(self, host_id: int, url: str) -> None:
        """Keep that the origin of a URL has answered, with the pages that finish next."""
        name, answered = self.name(host_id), self._table.answered(host_id)
        origin = origin_within(name, url)
        if origin not in answered.split():
            # one text for all hosts that are alike
            both = self._heard[host_id] = sys.intern(f"{answered} {origin}".lstrip())
            self._table.answer(host_id, both)

    def record(self, host_id: int) -> HostRecord | None:
        """What is kept of a host; None for nothing."""
        answered, waits = self._table.answered(host_id), self.waits.get(host_id, _NONE)
        return HostRecord(host_id, answered, waits) if answered or waits is not _NONE else None

    def note(self, record: HostRecord) -> None:
        """Keep what has changed of a host with the pages that finish next."""
        host_id = record.host_id
        self.name(host_id)
        if record.waits != self.waits_of(host_id):
            self.note_waits(host_id, record.waits)
        if record.rests:
            self._rests[host_id] = record.rests
        else:
            self._rests.pop(host_id, None)
        if record.answered != self._table.answered(host_id):
            answered = self._heard[host_id] = sys.intern(record.answered)
            self._table.answer(host_id, answered)

    def name(self, host_id: int) -> str:
        """The name of a host by its number."""
        name = self._table.name(host_id)
        if name is None:
            # another process made it
            self._meet_again(self._db.lookup(_BY_NUMBER, self._job_id, [host_id]))
            name = self._table.name(host_id)
            assert name is not None
        return name

    def of_site(self, host_id: int) -> bool:
        """Whether some path of a host belongs to the site."""
        return self._table.of_site(host_id)

    def get(self, name: str) -> Host:
        """The host of that name; a new one is made."""
        host = self._table.get(name)
        if host is None:
            self.meet([name])
            host = self._table.get(name)
            assert host is not None
        return host

    def known(self, name: str) -> int | None:
        """The number of the host of that name; None when the job has none."""
        host = self._table.get(name)
        if host is not None:
            return host.host_id
        self._meet_again(self._db.lookup(_BY_NAME, self._job_id, [name]))
        host = self._table.get(name)
        return None if host is None else host.host_id

    def expect(self, count: int) -> None:
        """Prepare for a transaction that may bring so many new hosts; to be called before it."""
        self._numbers.reserve(count)

    def meet(self, names: Iterable[str]) -> None:
        """Get a number for each host; new hosts are inserted, within the caller's transaction."""
        new = sorted(name for name in set(names) if name not in self._table)
        if not new:
            return
        rows = [(self._job_id, self._numbers.take(), name, "") for name in new]
        if self._db.changed(_ADD, rows) == len(rows):
            self._meet_again([(*row[1:], "") for row in rows])
        else:
            self._meet_again(self._db.lookup(_BY_NAME, self._job_id, new))

    def begin(self, sites: Mapping[str, str]) -> None:
        """Make the hosts of a new job, within the caller's transaction: name → path prefixes, one a line."""
        rows = [(self._job_id, self._numbers.take(), name, paths) for name, paths in sites.items()]
        self._db.many(_ADD, rows)
        self._meet_again((*row[1:], "") for row in rows)

    def _meet_again(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._table.put(_host(row))

    def look_again(self) -> None:
        """Read again which hosts belong to the site, which another process has changed."""
        self._meet_again(self._db.rows(_ALL, (self._job_id,)))
        for host_id, noted in {**self._heard_written, **self._heard}.items():
            answered = self._table.answered(host_id)
            self._table.answer(host_id, sys.intern(" ".join(dict.fromkeys([*answered.split(), *noted.split()]))))

    def add_site_path(self, name: str, prefix: str) -> bool:
        """Make a path prefix of a host part of the site; False when it was already."""
        host = self.get(name)
        known = host.site_paths.split("\n") if host.site_paths else []
        if prefix in known or "/" in known:
            return False
        paths = site_paths([*known, prefix])
        self._table.put(structs.replace(host, site_paths=paths))
        self._db.many(_SITE, [(paths, self._job_id, host.host_id)])
        self._db.many(_GROWN, [(self._job_id,)])
        return True


def _host(row: Row) -> Host:
    host_id, name, paths, answered = row
    return Host(host_id, name, paths, sys.intern(answered))


def site_hosts(db: Database, job_id: int) -> list[str]:
    """The hosts of a job's site: of its start URLs, and where these redirect to. Of a list there are none."""
    return [str(name) for (name,) in db.rows(_OF_SITE, (job_id,))]
