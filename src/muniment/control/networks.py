"""Networks: which of them the start URLs let a crawl reach."""

from __future__ import annotations

from collections.abc import Sequence

from muniment.fetch.addresses import address_class
from muniment.fetch.dns import Resolver, resolved_here
from muniment.model.failure import Failure
from muniment.model.url import host_of
from muniment.rules.proxies import ProxyRule, proxy_for

__all__ = ["allowed_classes"]

_CLASSES = ("loopback", "link-local", "private")
_MOST_RESOLVED = 1000


async def allowed_classes(urls: Sequence[str], proxies: Sequence[ProxyRule], *, everything: bool) -> tuple[str, ...]:
    """The address classes besides public ones that a crawl may reach: those its own start URLs resolve to."""
    if everything:
        return (*_CLASSES, "reserved")
    resolver = Resolver(frozenset((*_CLASSES, "reserved")))
    classes: set[str] = set()
    try:
        for host in dict.fromkeys(map(host_of, urls[:_MOST_RESOLVED])):
            if not resolved_here(proxy_for(proxies, host), host):
                # the proxy finds it; asking here as well would tell others where the crawl goes
                continue
            found = await resolver.resolve(host)
            if not isinstance(found, Failure):
                classes.update(map(address_class, found))
    finally:
        await resolver.close()
    return tuple(sorted(classes - {"public"}))
