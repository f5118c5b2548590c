"""The other scheme: whether the port of a start URL that fails speaks https instead of http, or http instead."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from msgspec import structs

from muniment.model.exchange import Exchange
from muniment.model.failure import Failure

__all__ = ["OtherScheme"]

_PORTS = {"http": 80, "https": 443}
_SILENT = frozenset({"reset", "cut", "protocol", "timeout-connect"})
"""What a server makes of a protocol that it does not speak."""
_BAD_REQUEST = 400
"""A port of TLS says so to http, for want of another word."""
Ask = Callable[[str], Awaitable[Exchange | None]]


class OtherScheme:
    """Asks each origin once; `ask` fetches a robots.txt and records it, or gives None when that may not be now."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._answering: dict[str, str] = {}
        """By origin: the other one of its port, when that answers."""

    async def explained(self, url: str, failure: Failure) -> Failure:
        """The failure of a start URL, with the URL that answers in its place."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if not _may_be_other(parts.scheme, failure):
            return failure
        if origin not in self._answering:
            port = parts.port or _PORTS[parts.scheme]
            scheme = "http" if parts.scheme == "https" else "https"
            other = f"{scheme}://{parts.netloc.removesuffix(f':{port}')}:{port}"
            exchange = await self._ask(f"{other}/robots.txt")
            if exchange is None:
                return failure
            self._answering[origin] = other if _speaks(scheme, exchange) else ""
        other = self._answering[origin]
        return structs.replace(failure, text=f"{failure.text}; {other} answers") if other else failure


def _may_be_other(scheme: str, failure: Failure) -> bool:
    """Whether a port may speak the other protocol: what names a fault of TLS speaks TLS."""
    if failure.code == "tls":
        return scheme == "https" and not _is_of_tls(failure)
    return failure.code in _SILENT


def _speaks(scheme: str, exchange: Exchange) -> bool:
    if exchange.failure is not None and exchange.failure.code == "tls":
        return _is_of_tls(exchange.failure)
    return bool(exchange.head) and not (scheme == "http" and exchange.status == _BAD_REQUEST)


def _is_of_tls(failure: Failure) -> bool:
    """Whether a TLS handshake failed by what the other side said in it."""
    return failure.text.startswith("certificate: ") or "ALERT" in failure.text or "UNSUPPORTED" in failure.text
