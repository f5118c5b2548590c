"""Pages with more links than are followed, as `crawl.jsonl` has them."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from muniment.errors import ArchiveError

__all__ = ["dropped_links"]

_EVENT = b'"event":"drop"'
_WITHIN = 60
"""Bytes of a line among which the event is named: no URL stands so early."""


class _Drop(Struct):
    url: str
    links: int


def dropped_links(out: Path) -> dict[str, int]:
    """About how many links of a page are not followed, by its URL; a page that was captured again counts once."""
    path = out / "crawl.jsonl"
    found: dict[str, int] = {}
    try:
        with path.open("rb") as stream:
            for line in stream:
                # a line that a kill has cut is none
                if _EVENT in line[:_WITHIN] and line.endswith(b"\n"):
                    drop = msgspec.json.decode(line, type=_Drop)
                    found[drop.url] = drop.links
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        raise ArchiveError(f"{path} cannot be read: {error}") from error
    return found
