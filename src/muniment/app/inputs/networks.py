"""Networks: which of them the start URLs let a crawl reach."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from muniment.fetch.address_policy import address_class
from muniment.fetch.dns import Resolver, resolved_here
from muniment.model.failure import Failure
from muniment.model.url import host_of
from muniment.rules.proxies import ProxyRule, proxy_for

__all__ = ["NetworkReach", "reach_of"]

_CLASSES = ("loopback", "link-local", "private")
_MOST_RESOLVED = 1000


class NetworkReach(Struct, frozen=True):
    """The addresses that a crawl may reach besides public ones."""

    classes: tuple[str, ...]
    """The address classes that its start URLs resolve to."""
    late_names: tuple[str, ...] = ()
    """The hosts of start URLs that did not resolve: whoever finds one first adds its class."""


async def reach_of(urls: Sequence[str], proxies: Sequence[ProxyRule], *, everything: bool) -> NetworkReach:
    """The reach that the start URLs of a crawl give it, as far as their hosts resolve now."""
    if everything:
        return NetworkReach((*_CLASSES, "reserved"))
    resolver = Resolver(frozenset((*_CLASSES, "reserved")))
    classes: set[str] = set()
    late: list[str] = []
    try:
        for host in dict.fromkeys(map(host_of, urls[:_MOST_RESOLVED])):
            if not resolved_here(proxy_for(proxies, host), host):
                # the proxy finds it; asking here as well would tell others where the crawl goes
                continue
            found = await resolver.resolve(host)
            if isinstance(found, Failure):
                late.append(host)
            else:
                classes.update(map(address_class, found))
    finally:
        await resolver.close()
    return NetworkReach(tuple(sorted(classes - {"public"})), tuple(late))
