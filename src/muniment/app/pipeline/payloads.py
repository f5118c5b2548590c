"""The payloads of a directory, read from its index when the file that knows them is new or not to be trusted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from muniment.model.capture import EarlierCapture
from muniment.tracker.stores.payload_file import PayloadFile

__all__ = ["filled_payloads"]

_COLUMNS = ("digest", "url", "started_at", "record_id", "record_type")
_URN = "urn:uuid:"


async def filled_payloads(payloads: PayloadFile, out: Path, *, anew: bool) -> None:
    """Read the captures of a directory into its payloads, if these know nothing of it; `anew`: whatever they know."""
    if anew:
        payloads.begin_anew()
    if anew or payloads.is_new:
        rows = await asyncio.to_thread(list, _captures(out))
        for captures in rows:
            payloads.remember(captures)


def _captures(out: Path) -> Iterator[list[tuple[bytes, EarlierCapture]]]:
    from muniment.archive.index.read import rows  # noqa: PLC0415  (pyarrow: for old directories only)

    for batch in rows(out, _COLUMNS):
        columns = [batch.column(name).to_pylist() for name in _COLUMNS]
        yield [
            (
                bytes.fromhex(digest),
                EarlierCapture(url, started_at, bytes.fromhex(record[len(_URN) :].replace("-", ""))),
            )
            for digest, url, started_at, record, kind in zip(*columns, strict=True)
            if digest and record and kind == "response"
        ]
