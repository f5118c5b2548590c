"""The proxy of a process: a port for each page, and the certificate authority that all of them share."""

from __future__ import annotations

from collections.abc import Callable

from muniment.proxy.answerer import Answerer, ProxyRequest, RequestBody
from muniment.proxy.authority import CertificateAuthority
from muniment.proxy.events import PageOwner, ProxyEvent
from muniment.proxy.page_port import PagePort

__all__ = ["PageProxy", "TypeOf"]

TypeOf = Callable[[ProxyRequest], str]
"""Names the resource type of a request, or nothing."""


class PageProxy:
    """Opens ports for pages; must be made and used inside one running event loop, and closed there."""

    def __init__(self, answerer: Callable[[PageOwner, TypeOf], Answerer], body: Callable[[], RequestBody]) -> None:
        """`answerer` makes who answers the requests of a page; `body` makes a place for the body of a request."""
        self.authority = CertificateAuthority()
        """What clients must trust."""
        self._answerer, self._body = answerer, body
        self._ports: set[PagePort] = set()

    async def open(
        self, owner: PageOwner, notify: Callable[[ProxyEvent], None], type_of: TypeOf = lambda _request: ""
    ) -> PagePort:
        """A port for a page. Raises OSError when there is none left."""
        port = PagePort(owner, self._answerer(owner, type_of), self.authority, self._body, notify)
        await port.listen()
        self._ports.add(port)
        port.closed = self._ports.discard
        return port

    def pass_on(self, port: PagePort, owner: PageOwner, notify: Callable[[ProxyEvent], None], type_of: TypeOf) -> None:
        """Have a port that rests serve another page."""
        port.pass_on(owner, self._answerer(owner, type_of), notify)

    async def close(self) -> None:
        """Close all ports at once."""
        for port in list(self._ports):
            await port.close(0.0)
