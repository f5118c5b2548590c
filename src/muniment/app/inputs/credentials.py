"""Credentials of a job: what was given for its requests, and the start URLs that say how far each goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec import structs

from muniment.app.inputs.secrets import Secrets
from muniment.app.inputs.start_urls import keep_account
from muniment.errors import UsageError
from muniment.http.auth import Account
from muniment.http.credentials import Credentials
from muniment.model.url import host_of, origin_of

if TYPE_CHECKING:
    from muniment.seeds.source import SeedSource

__all__ = ["crawl_credentials", "list_credentials"]

_MOST_ACCOUNTS = 10_000


def crawl_credentials(secrets: Secrets, urls: Iterable[str], accounts: dict[str, Account]) -> Credentials:
    """Those of a job that begins with these start URLs, and the accounts that stood in them."""
    given = Credentials(secrets.headers, secrets.accounts, accounts)
    if not given.secret:
        return given
    origins = tuple(dict.fromkeys(map(origin_of, urls)))
    safe = all(origin.startswith("https:") for origin in origins)
    return structs.replace(given, starts=origins, safe=safe)


def list_credentials(secrets: Secrets, source: SeedSource, accounts: dict[str, Account]) -> Credentials:
    """Those of the fetch of a list, which is read for them when something secret was given or stands in it.

    Raises UsageError for a secret header that is for nobody in particular while the list names several hosts.
    """
    from muniment.seeds.survey import names_accounts  # noqa: PLC0415  (a crawl needs none of it)

    if source.path is None:
        return crawl_credentials(secrets, [source.url], accounts)
    given = Credentials(secrets.headers, secrets.accounts)
    return _surveyed(given, source) if given.secret or names_accounts(source) else given


def _surveyed(given: Credentials, source: SeedSource) -> Credentials:
    from muniment.seeds.survey import web_lines  # noqa: PLC0415  (as above)

    starts: dict[str, None] = {}
    accounts: dict[str, Account] = {}
    safe, wanted = True, _wanted(given)
    for line in web_lines(source):
        url = line.url
        safe = safe and url.startswith("https:")
        if wanted(host_of(url)):
            starts[origin_of(url)] = None
        if line.account is not None:
            keep_account(accounts, url, line.account)
            starts[origin_of(url)] = None
            if len(accounts) > _MOST_ACCOUNTS:
                raise UsageError(f"the list has accounts for more than {_MOST_ACCOUNTS} origins; divide it")
    return Credentials(given.headers, given.accounts, accounts, tuple(starts), safe)


def _wanted(given: Credentials) -> Callable[[str], bool]:
    """The hosts that headers or accounts were given for."""
    bare = next((header.name for header in given.headers if header.for_starts), "")
    named = {*given.accounts, *(header.host for header in given.headers)}
    first = ""

    def wanted(host: str) -> bool:
        nonlocal first
        first = first or host
        if bare and host != first:
            raise UsageError(
                f"the list names several hosts ({first}, {host}), and the header {bare} may hold a secret: "
                f"write '{first}={bare}: ...' for one of them or '*={bare}: ...' for all"
            )
        return bool(bare) or host in named

    return wanted
