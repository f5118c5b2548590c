"""The port of one page, as the browser uses it: what the proxy says of requests becomes the page's traffic."""

from __future__ import annotations

from functools import partial

from muniment.browser.ports import RecordingPort
from muniment.browser.traffic import PageTraffic
from muniment.proxy.events import PageOwner, ProxyEvent, RequestAnswered, RequestBegun, RequestEnded, RequestHeld
from muniment.proxy.page_port import PagePort
from muniment.proxy.page_proxy import PageProxy

__all__ = ["PageRecording"]


class PageRecording:
    """A `Recording` for one page; it may be opened again when a browser was lost."""

    def __init__(self, proxy: PageProxy, owner: PageOwner) -> None:
        self._proxy, self._owner = proxy, owner

    @property
    def trusted(self) -> str:
        """The digest of the key by which it signs certificates."""
        return self._proxy.authority.spki_sha256

    async def open(self, traffic: PageTraffic, kept: RecordingPort | None = None) -> RecordingPort:
        """A port whose requests `traffic` is informed of: one that rests, or a new one; raises OSError."""
        told, type_of = partial(_tell, traffic), lambda request: traffic.type_of(request.method, request.url)
        if isinstance(kept, PagePort):
            self._proxy.pass_on(kept, self._owner, told, type_of)
            return kept
        return await self._proxy.open(self._owner, told, type_of)


def _tell(traffic: PageTraffic, event: ProxyEvent) -> None:
    match event:
        case RequestBegun(number):
            traffic.begun(number)
        case RequestAnswered(number, streamed):
            if streamed:
                traffic.streams(number)
        case RequestHeld(number, held):
            traffic.held(number, held=held)
        case RequestEnded():
            traffic.over(event)
