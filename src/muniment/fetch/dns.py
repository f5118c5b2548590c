"""Names to addresses: c-ares, a bounded cache, and one query in flight per name."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable
from typing import Any

import aiodns
from msgspec import Struct

from muniment.clock import monotonic
from muniment.fetch.address_policy import address_class, permitted
from muniment.model.failure import NO_NAME_SERVER, NO_SUCH_NAME, Failure

__all__ = ["MAX_TTL", "MIN_TTL", "NAMES_STAY", "NEGATIVE_TTL", "Resolver", "literal_address", "resolved_here"]

MIN_TTL = 60.0
"""Seconds that an answer is kept at least: some servers say 0, which would mean a query per connection."""
MAX_TTL = 3600.0
NEGATIVE_TTL = 5.0
"""Seconds that a failure is kept, so that many pages of one dead host make few queries."""
_FRESH_S = 4.0
"""Seconds that a channel is used to ask again: no longer than a failure is kept, so that it never asked before."""
NAMES_STAY = ("socks4", "socks5")
"""Proxies that take addresses only, not names."""
_MAX_NAMES = 50_000
_SILENT = aiodns.error.ARES_ETIMEOUT
"""No server answered in time, which is the same for a name whose own servers are down."""
_DOWN = frozenset({aiodns.error.ARES_ECONNREFUSED, _SILENT})
"""What c-ares says when it has no answer of any server."""
_NAMELESS = {
    aiodns.error.ARES_ENOTFOUND: NO_SUCH_NAME,
    aiodns.error.ARES_ENODATA: f"{NO_SUCH_NAME} with an address",
    aiodns.error.ARES_EBADNAME: f"{NO_SUCH_NAME}: not a host name",
}
"""What a server that works says of names."""
# Search domains are for names of one's own network, which have no dot; a crawler must not turn example.com into
# example.com.corp.example.
_NO_SEARCH = 1 << 5


class _Answer(Struct, frozen=True):
    addresses: tuple[str, ...] | Failure
    expires: float


def literal_address(host: str) -> str:
    """The address that a URL's host spells, without brackets, in RFC 5952 form; empty when the host is a name."""
    try:
        return str(ipaddress.ip_address(host.removeprefix("[").removesuffix("]")))
    except ValueError:
        return ""


def resolved_here(proxy: str, host: str) -> bool:
    """Whether this machine finds a host's address, and not the proxy of that URL or scheme."""
    stay = proxy.partition(":")[0] in ("", *NAMES_STAY)
    return stay or bool(literal_address(host)) or _is_local_name(host)


def _unheard(_name: str, _classes: tuple[str, ...]) -> None:
    return


def _is_local_name(host: str) -> bool:
    name = host.lower().rstrip(".")
    return name == "localhost" or name.endswith(".localhost")


def _is_short(name: str) -> bool:
    """Whether a name is one of a network of its own, such as `intranet`."""
    return "." not in name and not _is_local_name(name)


class Resolver:
    """Resolves names and applies the address policy."""

    def __init__(
        self,
        allowed: frozenset[str],
        nameservers: tuple[str, ...] = (),
        timeout: float = 10.0,
        late: frozenset[str] = frozenset(),
    ) -> None:
        """Addresses of the classes in `allowed` may be reached, and those of what names in `late` resolve to first."""
        self._allowed = allowed | {"public"}
        self._late = set(late)
        self.told: Callable[[str, tuple[str, ...]], None] = _unheard
        """Called with a name of `late` that was found, and its classes."""
        self._nameservers = nameservers
        self._timeout = timeout
        self._channels: dict[bool, aiodns.DNSResolver] = {}
        """That for names without a dot has search domains."""
        self._fresh: dict[bool, tuple[aiodns.DNSResolver, float]] = {}
        """The same for names that were not found before, and when each was made: c-ares keeps what servers said."""
        self._retired: set[aiodns.DNSResolver] = set()
        self._ends: set[asyncio.Future[None]] = set()
        self._answers: dict[str, _Answer] = {}
        self._queries: dict[str, asyncio.Task[tuple[str, ...] | Failure]] = {}
        self._good = ""
        """The name that was found last: when not even that is found any more, no name server answers."""

    async def resolve(self, host: str) -> tuple[str, ...] | Failure:
        """The addresses of a host that may be reached, the preferred one first."""
        literal = literal_address(host)
        found = (literal,) if literal else await self._lookup(host.lower())
        if isinstance(found, Failure):
            return found
        if host in self._late:
            self._find(host, found)
        return permitted(found, self._allowed)

    def allow(self, name: str, classes: tuple[str, ...]) -> None:
        """A name of `late` was found: only the first time, for whoever owns the name may give another address later."""
        self._late.discard(name)
        self._allowed |= frozenset(classes)

    def _find(self, name: str, addresses: tuple[str, ...]) -> None:
        classes = tuple(sorted({*map(address_class, addresses)} - {"public"}))
        self.allow(name, classes)
        self.told(name, classes)

    async def close(self) -> None:
        """End all queries; whoever waits for one gets a failure."""
        for channel in (*self._channels.values(), *(fresh for fresh, _ in self._fresh.values()), *self._retired):
            await channel.close()
        self._retired.clear()
        await asyncio.gather(*self._ends, *self._queries.values(), return_exceptions=True)

    async def _lookup(self, name: str) -> tuple[str, ...] | Failure:
        answer = self._answers.get(name)
        if answer is not None and answer.expires > monotonic():
            return answer.addresses
        query = self._queries.get(name)
        if query is None:
            query = self._queries[name] = asyncio.ensure_future(self._query(name))
            query.add_done_callback(lambda _: self._queries.pop(name, None))
        # Shielded: one fetch that is cancelled must not take the answer from the others.
        return await asyncio.shield(query)

    async def _query(self, name: str) -> tuple[str, ...] | Failure:
        channel = self._channel_for(name)
        try:
            found = await self._ask(channel, name)
        except aiodns.error.DNSError as error:
            down = await self._is_down(channel, error.args[0])
            return self._keep(name, NO_NAME_SERVER if down else Failure("dns", _text(error, name)), NEGATIVE_TTL)
        except (UnicodeError, ValueError) as error:
            return self._keep(name, Failure("dns", f"{NO_SUCH_NAME}: {error}"), MAX_TTL)
        addresses = tuple(dict.fromkeys(_address(node) for node in found.nodes))
        if not addresses:
            return self._keep(name, Failure("dns", _NAMELESS[aiodns.error.ARES_ENODATA]), NEGATIVE_TTL)
        if not _is_local_name(name):  # those need no server
            self._good = name
        ttl = min((node.ttl for node in found.nodes), default=0)
        return self._keep(name, addresses, min(max(ttl, MIN_TTL), MAX_TTL))

    async def _ask(self, channel: aiodns.DNSResolver, name: str) -> Any:
        """What the name servers say of a name; raises DNSError."""
        try:
            async with asyncio.timeout(self._timeout):
                return await channel.getaddrinfo(name, type=1)
        except TimeoutError:
            # c-ares gives every server its time, one after the other
            raise aiodns.error.DNSError(_SILENT, "no answer in time") from None

    async def _is_down(self, channel: aiodns.DNSResolver, code: int) -> bool:
        """Whether the name servers, and not those of one name, are out of reach, after an error of c-ares."""
        if not self._good or code not in _DOWN:
            return False
        if code == _SILENT:
            # a name that nobody asked for: c-ares remembers answers
            probe = f"muniment-{int(monotonic() * 1000)}.{self._good}"
            try:
                await self._ask(channel, probe)
            except aiodns.error.DNSError as error:
                return error.args[0] in _DOWN
            return False
        return True

    def _channel_for(self, name: str) -> aiodns.DNSResolver:
        searched, known = _is_short(name), self._answers.get(name)
        if known is not None and isinstance(known.addresses, Failure):
            return self._fresh_channel(searched=searched)
        channel = self._channels.get(searched)
        if channel is None:
            channel = self._channels[searched] = self._new_channel(searched=searched)
        return channel

    def _fresh_channel(self, *, searched: bool) -> aiodns.DNSResolver:
        now = monotonic()
        channel, made_at = self._fresh.get(searched, (None, 0.0))
        if channel is not None and now - made_at < _FRESH_S:
            return channel
        if channel is not None:
            self._retired.add(channel)
            asyncio.get_running_loop().call_later(2 * self._timeout, self._end, channel)
        channel = self._new_channel(searched=searched)
        self._fresh[searched] = channel, now
        return channel

    def _end(self, channel: aiodns.DNSResolver) -> None:
        """Let go of a channel, whose queries have all ended."""
        if channel in self._retired:
            self._retired.discard(channel)
            closing = asyncio.ensure_future(channel.close())
            self._ends.add(closing)
            closing.add_done_callback(self._ends.discard)

    def _new_channel(self, *, searched: bool) -> aiodns.DNSResolver:
        flags = 0 if searched else _NO_SEARCH
        options: dict[str, Any] = {"timeout": max(self._timeout / 4, 0.2), "tries": 3, "flags": flags}
        return aiodns.DNSResolver(self._nameservers or None, **options)

    def _keep(self, name: str, found: tuple[str, ...] | Failure, ttl: float) -> tuple[str, ...] | Failure:
        if len(self._answers) >= _MAX_NAMES:
            # The oldest tenth goes: a dict keeps the order of insertion.
            for old in list(self._answers)[: _MAX_NAMES // 10]:
                del self._answers[old]
        self._answers[name] = _Answer(found, monotonic() + ttl)
        return found


def _address(node: Any) -> str:
    raw = node.addr[0]
    return str(ipaddress.ip_address((raw.decode() if isinstance(raw, bytes) else raw).partition("%")[0]))


def _text(error: aiodns.error.DNSError, name: str) -> str:
    text = _NAMELESS.get(error.args[0]) or (str(error.args[1]) if len(error.args) > 1 else str(error))
    if _is_short(name):
        text += f", not in the search domains of resolv.conf either; write the whole name, as in {name}.example.com"
    return text
