"""Shards: a list divided among runs by the URLs themselves, the same on every machine and for ever."""

from __future__ import annotations

__all__ = ["in_shard"]


def in_shard(key: bytes, shard: int, shards: int) -> bool:
    """Whether the URL of a key (`model.url.url_key`) belongs to a part: its first eight bytes, modulo the parts."""
    return int.from_bytes(key[:8], "big") % shards == shard
