"""The cookies of a job: one jar over all workers, kept with the pages that they came with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import structs
from sqlalchemy import bindparam, select

from muniment.http.cookies import domains_of
from muniment.http.jar import Jar, alive
from muniment.model.cookie import Cookie
from muniment.model.url import host_of
from muniment.tracker.db.database import BatchInsert, Database, Lookup, Prepared, Row
from muniment.tracker.schema.cookies import cookies

__all__ = ["CookieStore"]

_COLUMNS = ("domain", "name", "path", "value", "host_only", "secure", "http_only", "expires_at", "set_at")
_ROWS = select(*(cookies.c[name] for name in _COLUMNS)).where(cookies.c.job_id == bindparam("job"))
_ANY = Prepared(_ROWS.limit(bindparam("most")), "job", "most")
_DOMAINS = Prepared(select(cookies.c.domain).where(cookies.c.job_id == bindparam("job")).distinct(), "job")
_OF_MANY = Lookup(select(*(cookies.c[name] for name in _COLUMNS)), cookies.c.job_id, cookies.c.domain)
_OF = Prepared(_ROWS.where(cookies.c.domain == bindparam("d")).order_by(cookies.c.set_at), "job", "d")
_PUT = BatchInsert(cookies, "job_id", *_COLUMNS, conflict="REPLACE")
_DROP = Prepared(
    cookies.delete().where(
        cookies.c.job_id == bindparam("job"),
        cookies.c.domain == bindparam("d"),
        cookies.c.name == bindparam("n"),
        cookies.c.path == bindparam("p"),
    ),
    "job", "d", "n", "p",
)  # fmt: skip


_MOST_BYTES = 16 << 20
"""Of the part in use: the rest is read when it is asked for."""
_MOST_SENT, _MOST_OF_A_HOST = 2 << 20, 64 << 10
"""Bytes of the cookies that go to a worker with its pages; and of one host's."""
_AT_ONCE = 20
"""Domains that are read together at the end, each of which may have most of a megabyte."""


class CookieStore:
    """The jar of one job: all of it in the table, the part in use in memory."""

    def __init__(self, db: Database, job_id: int) -> None:
        self._db, self._job_id = db, job_id
        self._begin()
        db.on_rollback(self._begin)

    def look_again(self) -> None:
        """Read again what other processes may have changed."""
        self._begin()

    def _begin(self) -> None:
        self._jar = Jar(_MOST_BYTES)
        self._any = bool(self._db.rows(_ANY, (self._job_id, 1)))

    def __bool__(self) -> bool:
        """Whether the job has any cookie, so that one without asks no further."""
        return self._any

    def keep(self, said: Iterable[Cookie]) -> None:
        """Take in cookies, within the caller's transaction; one that was said before what is known changes nothing."""
        for cookie in said:
            if not self._any:
                self._db.make_private()
                self._any = True
            # a Secure one of any of these may guard it, and may have been dropped from memory
            for domain in {cookie.domain, *(domains_of(cookie.http_host) if cookie.http_host else ())}:
                self._load(domain)
            fallen = self._jar.keep(cookie)
            if fallen is not None:
                self._db.many(_PUT, [(self._job_id, *structs.astuple(cookie)[: len(_COLUMNS)])])
                self._db.many(_DROP, [(self._job_id, out.domain, out.name, out.path) for out in fallen])

    def of(self, hosts: Iterable[str]) -> dict[str, list[Cookie]]:
        """The cookies of each of the hosts that has some, deletions included."""
        if not self._any:
            return {}
        found = {}
        for host in hosts:
            for domain in domains_of(host):
                self._load(domain)
            if mine := self._jar.of(host):
                found[host] = mine
        return found

    def some_of(self, hosts: Iterable[str]) -> tuple[dict[str, list[Cookie]], list[str]]:
        """The same as far as it goes into one message, and the hosts that have more, which are to be asked for."""
        if not self._any:
            return {}, []
        found: dict[str, list[Cookie]] = {}
        more, left = [], _MOST_SENT
        for host in hosts:
            mine = self.of([host]).get(host, [])
            size = sum(len(cookie.value) + len(cookie.path) for cookie in mine)
            if size > min(left, _MOST_OF_A_HOST):
                more.append(host)
            elif mine:
                found[host] = mine
                left -= size
        return found, more

    def header(self, url: str, now: int) -> str:
        """The Cookie field for a normalised URL at `now` (Unix s)."""
        return self._jar.header(url, now) if self.of([host_of(url)]) else ""

    def everything(self, now: int) -> Iterator[list[Cookie]]:
        """All that is alive at `now` (Unix s), by domain, some domains at a time."""
        domains = sorted(row[0] for row in self._db.rows(_DOMAINS, (self._job_id,)))
        for at in range(0, len(domains), _AT_ONCE):
            rows = self._db.lookup(_OF_MANY, self._job_id, domains[at : at + _AT_ONCE])
            yield alive(map(_cookie, rows), now)

    def _load(self, domain: str) -> None:
        if not self._jar.knows(domain):
            self._jar.open(domain)
            for row in self._db.rows(_OF, (self._job_id, domain)):
                self._jar.keep(_cookie(row))


def _cookie(row: Row) -> Cookie:
    domain, name, path, value, host_only, secure, http_only, expires_at, set_at = row
    return Cookie(domain, name, path, value, bool(host_only), bool(secure), bool(http_only), expires_at, set_at)
