"""Credentials: the headers and accounts that were given, and the origins that each may go to (decisions 0166, 0167)."""

from __future__ import annotations

import re

from msgspec import Struct

from muniment.http.auth import Account
from muniment.model.url import host_of, origin_of

__all__ = ["AddedHeader", "CredentialReach", "Credentials"]

_HARMLESS = re.compile(r"accept.*|dnt|from|referer", re.IGNORECASE | re.DOTALL)
_ALL = "*"


class AddedHeader(Struct, frozen=True, array_like=True):
    """One added header."""

    name: str
    value: str
    place: str = ""
    """`*` for every host, a host, or `HOST:PORT`; empty for where its name lets it go."""

    @property
    def harmless(self) -> bool:
        """Whether its name says that it holds no secret."""
        return _HARMLESS.fullmatch(self.name) is not None

    @property
    def for_starts(self) -> bool:
        """Whether it goes to the hosts of start URLs: it may be a secret, and no host is given."""
        return not self.place and not self.harmless

    @property
    def host(self) -> str:
        """The host that it is for; empty when it is for more than one."""
        return "" if self.place in ("", _ALL) else host_of(f"http://{self.place}/")


class Credentials(Struct, frozen=True, array_like=True):
    """The accounts and headers of a job."""

    headers: tuple[AddedHeader, ...] = ()
    accounts: dict[str, Account] = {}
    """By host, proxies too."""
    start_accounts: dict[str, Account] = {}
    """By origin: those in start URLs."""
    starts: tuple[str, ...] = ()
    """The origins of the start URLs; of a list, those of hosts that something was given for."""
    safe: bool = False
    """Every start URL is https."""

    @property
    def secret(self) -> bool:
        """Whether there is something that others must not see."""
        return bool(self.accounts or self.start_accounts) or not all(header.harmless for header in self.headers)


class CredentialReach:
    """Which of the credentials a request may carry.

    What is for the host of an https start URL goes to the origins of its start URLs alone, so never over http. For
    other hosts it is https, when all start URLs are.
    """

    def __init__(self, credentials: Credentials) -> None:
        self._given = credentials
        self._hosts: dict[str, set[str]] = {}
        """By host of a start URL, the origins of its https ones."""
        for origin in credentials.starts:
            tied = self._hosts.setdefault(host_of(origin), set())
            if origin.startswith("https:"):
                tied.add(origin)
        self.any_accounts = bool(credentials.accounts or credentials.start_accounts)

    def headers(self, origin: str) -> tuple[tuple[str, str], ...]:
        """The added headers of requests to an origin: of one name, those that are meant for it most closely."""
        if not self._given.headers:
            return ()
        going = [(rank, header) for header in self._given.headers if (rank := self._rank(header, origin))]
        closest: dict[str, int] = {}
        for rank, header in going:
            name = header.name.lower()
            closest[name] = max(rank, closest.get(name, 0))
        return tuple((header.name, header.value) for rank, header in going if rank == closest[header.name.lower()])

    def account(self, url: str, host: str) -> Account | None:
        """The account for a URL of a host."""
        origin = origin_of(url)
        if (own := self._given.start_accounts.get(origin)) is not None:
            return own
        account = self._given.accounts.get(host)
        return account if account is not None and self._may(host, origin) else None

    def _rank(self, header: AddedHeader, origin: str) -> int:
        """How closely a header is meant for an origin; 0 when it must not go there."""
        host = host_of(origin)
        if header.place == _ALL or (not header.place and header.harmless):
            return 1
        if not header.place:
            return 2 if host in self._hosts and self._may(host, origin) else 0
        if header.place == host:
            return 3 if self._may(host, origin) else 0
        if header.place == _host_and_port(origin):
            # the port was said: on the host of an https start URL it may be another, but not http
            return 4 if self._may(host, origin) or origin.startswith("https:") else 0
        return 0

    def _may(self, host: str, origin: str) -> bool:
        tied = self._hosts.get(host)
        if tied is None:
            return not self._given.safe or origin.startswith("https:")
        return not tied or origin in tied


def _host_and_port(origin: str) -> str:
    scheme, _, place = origin.partition("://")
    if len(host_of(origin)) < len(place):
        return place
    return f"{place}:{443 if scheme == 'https' else 80}"
