"""Shards: every URL belongs to exactly one, and always to the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from muniment.model.seed import in_shard
from muniment.model.url import url_key


@given(st.binary(min_size=16, max_size=16), st.integers(1, 50))
def test_every_key_is_in_one_shard(key, shards):
    assert sum(in_shard(key, shard, shards) for shard in range(shards)) == 1


def test_the_shard_of_a_url_never_changes():
    """What other programs compute by the documents: XXH3-128, first eight bytes, big-endian."""
    key = url_key("https://example.com/")
    assert key.hex() == KEY
    assert in_shard(key, int(KEY[:16], 16) % 7, 7)


KEY = "503c1beec51db0209ff1930daa8e5b98"


def test_shards_are_even():
    keys = [url_key(f"https://example.com/{number}") for number in range(4000)]
    sizes = [sum(in_shard(key, shard, 4) for key in keys) for shard in range(4)]
    assert all(900 < size < 1100 for size in sizes)
