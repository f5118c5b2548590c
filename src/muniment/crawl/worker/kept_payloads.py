"""Payloads of requisites that this worker has recorded: the same one of the next page becomes a revisit."""

from __future__ import annotations

from collections import OrderedDict

from muniment.archive.warc.revisits import REVISIT_ABOVE
from muniment.model.capture import Capture, EarlierCapture
from muniment.model.exchange import Exchange

__all__ = ["KeptPayloads", "payload_digest"]

_MOST = 20_000
"""Payloads that are remembered, some 5 MB; a forgotten one is stored again."""


class KeptPayloads:
    """By digest; those of records that are not synced yet do not count."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, EarlierCapture] = OrderedDict()
        self._fresh: dict[bytes, EarlierCapture] = {}
        self._news: list[tuple[bytes, EarlierCapture]] = []

    def get(self, digest: bytes) -> EarlierCapture | None:
        """The earlier capture of a payload."""
        earlier = self._kept.get(digest)
        if earlier is not None:
            self._kept.move_to_end(digest)
        return earlier

    def add(self, digest: bytes, capture: Capture) -> None:
        """A payload was recorded whole."""
        raw_id = bytes.fromhex(capture.record_id[len("urn:uuid:") :].replace("-", ""))
        self._fresh[digest] = EarlierCapture(capture.url, capture.started_at, raw_id)

    def synced(self) -> None:
        """What was recorded so far is on the disk."""
        new = {digest: earlier for digest, earlier in self._fresh.items() if digest not in self._kept}
        self._kept.update(new)
        self._news += new.items()
        self._fresh.clear()
        while len(self._kept) > _MOST:
            self._kept.popitem(last=False)

    def take_news(self) -> list[tuple[bytes, EarlierCapture]]:
        """Those that are synced and were not taken yet: the other workers of this directory may refer to them."""
        news, self._news = self._news, []
        return news


def payload_digest(exchange: Exchange) -> bytes:
    """The digest of a payload that an earlier capture may have, and a later one; empty for one that is kept anyway."""
    whole = exchange.head and exchange.failure is None and exchange.body.payload_length > REVISIT_ABOVE
    return exchange.body.payload_sha1 if whole else b""
