"""An HTTP session: URLs are fetched with the cookies and the account that belong to their host."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Protocol

from msgspec import Struct, structs

from muniment.clock import now_us
from muniment.fetch.client import Client
from muniment.http.auth import Account, Challenge, authorization, challenge_of
from muniment.http.cookies import domains_of, parse_set_cookie
from muniment.http.credentials import CredentialReach
from muniment.http.jar import Jar, alive
from muniment.model.cookie import Cookie, digest_of
from muniment.model.exchange import Exchange
from muniment.model.url import host_of, origin_of

__all__ = ["HttpSession", "Visit"]

_MOST_COOKIES = 100
"""Maximum of Set-Cookie fields of one answer that are read."""
_MOST_ORIGINS = 1000

_MOST_SENT = 1 << 20
_MOST_MISSING = 20_000
"""More hosts than the pages that a worker holds are of."""

Headers = tuple[tuple[str, str], ...]
Ask = Callable[[str], Awaitable[str]]


async def _none(_url: str) -> str:
    return ""


class Visit(Struct, frozen=True):
    """An answer, and how it was obtained."""

    exchange: Exchange
    before: tuple[Exchange, ...] = ()
    """Exchanges that the answer took: the challenge that an account met."""
    cookies_sent: bytes = b""
    """Digest of the cookies that were sent with the request."""


class HostTurns(Protocol):
    """Says when a host may be asked (`HeldPages`)."""

    def start(self, host: str, url: str) -> bool:
        """Whether a request for a URL of a host may go out at this moment; if so, it counts as sent."""

    def wait(self, host: str, url: str) -> float:
        """Seconds until it may."""


class _Opened:
    """An origin that took an account: its challenge, and how often the nonce was used."""

    __slots__ = ("challenge", "count", "taken")

    def __init__(self, challenge: Challenge) -> None:
        self.challenge, self.count, self.taken = challenge, 0, False


class HttpSession:
    """One worker's cookies and accounts; a host without either costs a look into two empty tables."""

    def __init__(self, client: Client, reach: CredentialReach, turns: HostTurns, ask: Ask = _none) -> None:
        """`ask` gives the Cookie field of a URL whose cookies are not in memory."""
        self._client, self._reach, self._turns, self._ask = client, reach, turns, ask
        self._jar = Jar(dropped=self._miss)
        self._missing: dict[str, None] = {}
        """Hosts and domains whose cookies are not in memory, or not all."""
        self._news: list[Cookie] = []
        self._opened: dict[str, _Opened] = {}
        self._refused: set[tuple[str, str]] = set()

    async def visit(self, url: str, host: str, added: Headers = ()) -> Visit | None:
        """Fetch a normalised URL of a host; answers a challenge once, when there is an account for the host.

        `added` are headers that every request gets. None when the host may not be asked at this moment.
        """
        cookies = await self._cookies_for(url, host) if self._jar or self._missing else ""
        account = self._reach.account(url, host) if self._reach.any_accounts else None
        if account is not None:
            return await self._visit_with(account, url, host, cookies, added)
        sent = (*added, *_cookie(cookies)) if added else _cookie(cookies)
        exchange = await self._client.fetch_if(url, partial(self._turns.start, host, url), sent)
        if exchange is None:
            return None
        self._learn(exchange)
        return Visit(exchange, (), digest_of(cookies)) if cookies else Visit(exchange)

    async def _visit_with(self, account: Account, url: str, host: str, cookies: str, added: Headers) -> Visit | None:
        origin, start = origin_of(url), partial(self._turns.start, host, url)
        known = self._opened.get(origin)
        sent = (*added, *_cookie(cookies), *_authorized(known, account, url))
        first = await self._client.fetch_if(url, start, sent)
        if first is None:
            return None
        self._learn(first)
        before: tuple[Exchange, ...] = ()
        last = first
        challenge = _challenge(first)
        if challenge is not None and self._worth_answering(origin, challenge, known):
            opened = self._open(origin, challenge)
            cookies = await self._cookies_for(url, host)
            sent = (*added, *_cookie(cookies), *_authorized(opened, account, url))
            last = await self._ask_again(url, host, sent)
            self._learn(last)
            before = (first,)
            again = _challenge(last)
            opened.taken = again is None
            if again is not None and not again.stale:
                self._give_up(origin, challenge)
        return Visit(last, before, digest_of(cookies))

    def authorization(self, url: str, method: str) -> Headers:
        """What a browser's request for a URL is sent where the origin has taken an account already."""
        opened = self._opened.get(origin_of(url)) if self._opened else None
        account = self._reach.account(url, host_of(url)) if opened is not None else None
        return _authorized(opened, account, url, method) if account is not None else ()

    def answers(self, url: str, headers: Headers, *, sent: bool) -> bool:
        """Whether a browser's request is sent again that was refused with 401; `sent`: it had an account with it."""
        challenge = challenge_of(value for name, value in headers if name == "www-authenticate")
        account = self._reach.account(url, host_of(url)) if self._reach.any_accounts else None
        origin = origin_of(url)
        if challenge is None or account is None or (origin, challenge.realm) in self._refused:
            return False
        known = self._opened.get(origin)
        if sent and not self._worth_answering(origin, challenge, known):
            return False
        if sent or known is None:
            self._open(origin, challenge)
        return True

    def learn_answer(self, exchange: Exchange) -> None:
        """What came of a browser's request that was sent again: an account that was never taken is given up."""
        challenge, opened = _challenge(exchange), self._opened.get(origin_of(exchange.url))
        if opened is not None and challenge is None:
            opened.taken = True
        elif opened is not None and challenge is not None and not (opened.taken or challenge.stale):
            self._give_up(origin_of(exchange.url), challenge)

    def _open(self, origin: str, challenge: Challenge) -> _Opened:
        if len(self._opened) >= _MOST_ORIGINS:
            self._opened.clear()
        opened = self._opened[origin] = _Opened(challenge)
        return opened

    def _give_up(self, origin: str, challenge: Challenge) -> None:
        # another request would be refused again, and some servers lock the account
        self._refused.add((origin, challenge.realm))
        self._opened.pop(origin, None)

    async def _ask_again(self, url: str, host: str, headers: Headers) -> Exchange:
        while True:
            await asyncio.sleep(max(0.0, self._turns.wait(host, url)))
            exchange = await self._client.fetch_if(url, partial(self._turns.start, host, url), headers)
            if exchange is not None:
                return exchange

    def _worth_answering(self, origin: str, challenge: Challenge, known: _Opened | None) -> bool:
        if (origin, challenge.realm) in self._refused:
            return False
        # the same Basic answer was just refused; a digest may have had a nonce that was too old
        return known is None or challenge.scheme == "digest" or challenge.realm != known.challenge.realm

    def learn(self, cookies: Iterable[Cookie]) -> None:
        """Add cookies that other workers, or an earlier run, got."""
        for cookie in cookies:
            self._jar.keep(cookie)

    def given(self, cookies: Mapping[str, list[Cookie]], more: Iterable[str]) -> None:
        """Add all cookies of each of some hosts; those in `more` have too many, and are asked for."""
        for host, said in cookies.items():
            self._missing.pop(host, None)
            self.learn(said)
        for host in more:
            self._miss(host)

    def _miss(self, domain: str) -> None:
        self._missing[domain] = None
        if len(self._missing) > _MOST_MISSING:
            # so many came after it that none of its pages is held: the next one brings its cookies along
            del self._missing[next(iter(self._missing))]

    async def _cookies_for(self, url: str, host: str) -> str:
        if self._missing and not self._missing.keys().isdisjoint(domains_of(host)):
            return await self._ask(url)
        return self._jar.header(url, now_us() // 1_000_000)

    def take_news(self) -> list[list[Cookie]]:
        """The cookies that answers set since the last call, in parts that go into one message each."""
        news, self._news = self._news, []
        parts: list[list[Cookie]] = [[]]
        size = 0
        for cookie in news:
            if size > _MOST_SENT:
                parts.append([])
                size = 0
            parts[-1].append(cookie)
            size += len(cookie.value)
        return parts

    def cookies_of(self, host: str) -> list[Cookie]:
        """The cookies of a host that hold, as far as they are here."""
        return alive(self._jar.of(host), now_us() // 1_000_000) if self._jar else []

    def learn_from_page(self, cookies: Iterable[Cookie]) -> None:
        """Add cookies that a browser has at the end of a page; those that say something new are passed on."""
        now = now_us()
        for cookie in cookies:
            known = {(one.name, one.path, one.domain): one.value for one in self._jar.of(cookie.domain)}
            if known.get((cookie.name, cookie.path, cookie.domain)) == cookie.value:
                continue
            said = structs.replace(cookie, set_at=now)
            if self._jar.keep(said) is not None:
                self._news.append(said)

    def _learn(self, exchange: Exchange) -> None:
        fields = [value for name, value in exchange.headers if name == "set-cookie"]
        for field in fields[:_MOST_COOKIES]:
            cookie = parse_set_cookie(field, exchange.url, now_us())
            if cookie is not None and self._jar.keep(cookie) is not None:
                self._news.append(cookie)


def _cookie(cookies: str) -> Headers:
    return (("Cookie", cookies),) if cookies else ()


def _challenge(exchange: Exchange) -> Challenge | None:
    if exchange.status != 401:
        return None
    return challenge_of(value for name, value in exchange.headers if name == "www-authenticate")


def _authorized(opened: _Opened | None, account: Account, url: str, method: str = "GET") -> Headers:
    if opened is None:
        return ()
    opened.count += 1
    target = url[len(origin_of(url)) :] or "/"
    field = authorization(opened.challenge, account, target, opened.count, secrets.token_hex(8), method)
    return (("Authorization", field),)
