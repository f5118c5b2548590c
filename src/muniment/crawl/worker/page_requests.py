"""The requests of a browser's or a hook's page: judged, forwarded by the engine, recorded under the page."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

from msgspec import structs

from muniment.archive.durable import body_error
from muniment.clock import monotonic
from muniment.crawl.worker.documents import offered_images
from muniment.crawl.worker.host_signals import page_signal
from muniment.crawl.worker.services import EngineServices, RefusedRequest
from muniment.extract.media_type import media_type
from muniment.fetch.forwarding.followed import SpooledBytes
from muniment.fetch.forwarding.forward import Forwarded, Forwarder
from muniment.http.chunked import Piece
from muniment.http.head import Head
from muniment.model.capture import PageContext
from muniment.model.exchange import Exchange, RequestOutcome
from muniment.model.failure import Failure
from muniment.model.url import host_of
from muniment.proxy.answerer import AnswerTaker, Headers, ProxyRequest, TunnelEnd
from muniment.proxy.events import PageOwner
from muniment.proxy.resource_types import resource_type

__all__ = ["Judge", "PageAccounts", "PageRequests"]

_PATIENCE_S = 60.0
"""How long a request waits for a host that is left alone; then the page goes on without it."""
_LOOK_S = 1.0
_REQUISITE = "requisite"
_REFUSALS = frozenset({"robots", "ignored", "private-address", "dead-host", "scheme", "limit"})
"""Codes of what no server was asked for."""

Judge = Callable[[str, int], Awaitable[Failure | RefusedRequest | None]]
"""Says why a URL is not asked for, by a page of this depth; None when it is."""


class PageAccounts(Protocol):
    """The accounts of the job, for what pages ask."""

    def authorization(self, url: str, method: str) -> Headers:
        """What a request is sent where its origin has taken an account already."""

    def answers(self, url: str, headers: Headers, *, sent: bool) -> bool:
        """Whether a request that was refused is sent again; `sent`: it had an account with it."""

    def learn_answer(self, exchange: Exchange) -> None:
        """What came of a request that was sent again: an account that was never taken is given up."""


class PageRequests:
    """An `Answerer` that asks servers, and records what they say."""

    def __init__(
        self,
        owner: PageOwner,
        type_of: Callable[[ProxyRequest], str],
        services: EngineServices,
        judge: Judge,
        forwarder: Forwarder,
        accounts: PageAccounts,
    ) -> None:
        self._owner, self._type_of = owner, type_of
        self._services, self._judge, self._forwarder = services, judge, forwarder
        self._accounts = accounts
        self._waiting: set[asyncio.Task[object]] = set()
        """Those that have no answer yet, for want of a turn or of a connection."""
        self._cut = False
        self._hosts: dict[str, asyncio.Future[None]] = {}
        """Those of which the page has permits, or soon will."""
        self._heard = {owner.host}
        """Those of them that are known to have answered."""
        self._busy: Counter[str] = Counter()
        """Requests that wait for a host or ask it."""

    async def answer(self, request: ProxyRequest, taker: AnswerTaker) -> RequestOutcome:
        """Ask a server, and hand its answer on while it comes."""
        try:
            found: Exchange | Failure | RefusedRequest = await self._ask(request, taker)
        except asyncio.CancelledError:
            if not self._cut:
                raise
            found = Failure("limit", "its page has ended")
        finally:
            if request.body is not None and request.body.in_memory:
                request.body.close()
        if isinstance(found, Failure | RefusedRequest):
            return _turned_away(found, taker, self._kind_of(request))
        return await self._record(request, found, taker)

    async def tunnel(self, request: ProxyRequest, client: TunnelEnd) -> TunnelEnd | RequestOutcome:
        """Connect a websocket: judged like any request, and not recorded."""
        refusal = await self._judge(request.url, self._owner.depth)
        made = refusal or await self._forwarder.tunnel(_forwarded(request), client)
        if not isinstance(made, Failure | RefusedRequest):
            return made
        return RequestOutcome(error=str(made), refused=made.code if made.code in _REFUSALS else "", type="websocket")

    def cut(self) -> None:
        """The page has no more time."""
        self._cut = True
        self._forwarder.cut()
        self._leave_hosts()
        for task in list(self._waiting):
            task.cancel()

    async def _ask(self, request: ProxyRequest, taker: AnswerTaker) -> Exchange | Failure | RefusedRequest:
        task = asyncio.current_task()
        assert task is not None
        if self._cut:
            return Failure("limit", "its page has ended")
        self._waiting.add(task)
        try:
            if (refusal := await self._judge(request.url, self._owner.depth)) is not None:
                return refusal
            start = partial(self._start, request.url, task)
            if self._owner.engine != "browser" or request.header("authorization"):
                # hooks, and pages that have their own, are left alone
                return await self._in_turn(_forwarded(request), start, _HandOn(taker))
            return await self._with_account(request, taker, start)
        finally:
            self._waiting.discard(task)

    async def _with_account(
        self, request: ProxyRequest, taker: AnswerTaker, start: Callable[[], bool]
    ) -> Exchange | Failure:
        """Ask with the account of its origin; a challenge that it may meet is recorded, and answered once."""
        asked, url = _forwarded(request), request.url
        known = self._accounts.authorization(url, asked.method)
        resent = request.body is None or request.body.in_memory
        follower = _HandOn(taker, partial(self._accounts.answers, url, sent=bool(known)) if resent else None)
        first = await self._in_turn(_with(asked, known), start, follower)
        if not follower.again or isinstance(first, Failure):
            return first
        self._note_answer(first)
        await self._services.record_beside(first, self._context(self._type_of(request)))
        last = await self._in_turn(_with(asked, self._accounts.authorization(url, asked.method)), start, _HandOn(taker))
        if isinstance(last, Exchange):
            self._accounts.learn_answer(last)
        return last

    def _start(self, url: str, task: asyncio.Task[object]) -> bool:
        if not self._services.held.start_beside(host_of(url), url):
            return False
        # from now on its connection can be cut, and what came of it is kept
        self._waiting.discard(task)
        return True

    async def _in_turn(self, asked: Forwarded, start: Callable[[], bool], follower: _HandOn) -> Exchange | Failure:
        """Forward when the host is not left alone."""
        host = host_of(asked.url)
        self._busy[host] += 1
        try:
            await self._with_permits(host)
            return await self._forward(asked, host, start, follower)
        finally:
            self._busy[host] -= 1
            if not (self._owner.url or self._busy[host]):
                self._leave_hosts(host)  # hooks of the crawl may go on as long as it does

    async def _forward(
        self, asked: Forwarded, host: str, start: Callable[[], bool], follower: _HandOn
    ) -> Exchange | Failure:
        held, until = self._services.held, monotonic() + _PATIENCE_S
        held.enter(host)
        try:
            while (wait := held.left_alone_for(host, asked.url)) <= until - monotonic():
                if (dead := self._services.dead(asked.url)) is not None:
                    return dead
                if wait > 0:
                    await follower.held_for(min(wait, _LOOK_S))
                    continue
                exchange = await self._forwarder.send(asked, start, follower)
                if exchange is not None:
                    return exchange
                await asyncio.sleep(0)
            return Failure("unreachable", "its host is left alone for now")
        finally:
            held.leave(host)

    async def _with_permits(self, host: str) -> None:
        """Have permits of a host until the page ends: they are asked for once."""
        asked = self._hosts.get(host)
        if asked is None:
            self._services.held.enter(host)
            heard = self._owner.url if host == self._owner.host else ""
            asked = self._hosts[host] = asyncio.ensure_future(self._services.lend(host, heard))
        await asyncio.shield(asked)

    def _leave_hosts(self, *hosts: str) -> None:
        """Give back the permits of these hosts, or of all."""
        left = [host for host in hosts or list(self._hosts) if self._hosts.pop(host, None) is not None]
        for host in left:
            self._services.held.leave(host)
            self._busy.pop(host, None)
        self._services.give_back(left)

    def _note_answer(self, exchange: Exchange) -> None:
        """A host's first answer here: it may get more connections than the one that it began with."""
        host = host_of(exchange.url)
        if exchange.status and host in self._hosts and host not in self._heard:
            self._heard.add(host)
            self._hosts[host] = asyncio.ensure_future(self._services.lend(host, exchange.url, again=True))

    async def _record(self, request: ProxyRequest, exchange: Exchange, taker: AnswerTaker) -> RequestOutcome:
        failure = exchange.failure
        if failure is not None and failure.code == "disk":
            # not the page's fault: the run stops
            self._services.fail(body_error(failure))
            return _turned_away(failure, taker, self._kind_of(request))
        self._note_answer(exchange)
        if exchange.head:
            taker.end(whole=failure is None)
        elif failure is not None:
            turned_away = _turned_away(failure, taker, self._kind_of(request))
            if turned_away.refused:
                return turned_away
        kind = self._kind_of(request)
        if (signal := page_signal(exchange)) is not None:
            self._services.signal(host_of(exchange.url), signal)
        answered = RequestOutcome(
            status=exchange.status,
            mime=media_type(exchange.field("content-type")).essence,
            type=kind,
            size=exchange.body.payload_length,
            error=str(failure or ""),
            offers=offered_images(exchange) if kind == "stylesheet" else (),
        )
        await self._services.record_beside(exchange, self._context(kind))
        return answered

    def _kind_of(self, request: ProxyRequest) -> str:
        return self._type_of(request) or resource_type(request.header("sec-fetch-dest"), request.method)

    def _context(self, kind: str) -> PageContext:
        owner = self._owner
        return PageContext(
            via=owner.url,
            depth=owner.depth,
            found_as=_REQUISITE,
            attempt=owner.attempt,
            seed_url=owner.seed_url,
            meta_json=owner.meta_json,
            redirect_to="",
            page_id=owner.page_id,
            engine=owner.engine,
            resource_type=kind if owner.engine == "browser" else "",
        )


class _HandOn:
    """A `Follower` that hands an answer to the client."""

    def __init__(self, taker: AnswerTaker, answers: Callable[[Headers], bool] | None = None) -> None:
        """`answers` says of the fields of a 401 whether the request is sent again; its client then sees nothing."""
        self._taker, self._answers = taker, answers
        self.again = False

    async def held_for(self, seconds: float) -> None:
        """Wait, and have that said: the page's time stands still."""
        self._taker.hold(held=True)
        try:
            await asyncio.sleep(seconds)
        finally:
            self._taker.hold(held=False)

    def begin(self, head: Head) -> None:
        """The header block is complete."""
        self.again = self._answers is not None and head.status == 401 and self._answers(head.headers)
        if self.again:
            return
        streamed = media_type(head.field("content-type")).essence == "text/event-stream"
        self._taker.begin(head.raw, keep=head.keep_alive, streamed=streamed)

    def more(self, piece: Piece, stored: SpooledBytes | None) -> None:
        """More of its body has come."""
        if not self.again:
            self._taker.more(piece, stored)


def _forwarded(request: ProxyRequest) -> Forwarded:
    return Forwarded(request.url, request.method, request.target, request.version, request.headers, request.body)


def _with(asked: Forwarded, headers: Headers) -> Forwarded:
    return structs.replace(asked, headers=(*asked.headers, *headers))


def _turned_away(failure: Failure | RefusedRequest, taker: AnswerTaker, kind: str) -> RequestOutcome:
    """Tell the client that it gets no answer of a server."""
    refused = failure.code if failure.code in _REFUSALS else ""
    taker.refuse(403 if refused else 502, failure.code, failure.text)
    return RequestOutcome(error=str(failure), refused=refused, type=kind)
