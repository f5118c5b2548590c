"""The seen-cache: bounded, and never wrong about what it knows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from muniment.rules.scope import FAR
from muniment.tracker.stores.seen_cache import UNREACHED, SeenCache, pack, page_of

KEYS = [n.to_bytes(16, "big") for n in range(100)]


@given(st.integers(1, 1 << 55), st.integers(0, FAR), st.integers(0, FAR))
def test_a_word_holds_page_and_hops(page, link, requisite):
    word = pack(page, link, requisite)
    assert (page_of(word), word >> 16 & 0xFFFF, word & 0xFFFF) == (page, link, requisite)


def test_a_page_that_nothing_admits_yet():
    assert pack(7, FAR, FAR) == 7 << 32 | UNREACHED


def test_what_was_put_is_found():
    cache = SeenCache(10)
    cache.put(KEYS[0], 1)
    cache.put(KEYS[1], 2)
    assert cache.words([KEYS[1], KEYS[2], KEYS[0]]) == [2, None, 1]
    assert cache.words([]) == []


def test_the_newest_word_counts_even_from_the_older_generation():
    cache = SeenCache(4)
    for n in range(2):
        cache.put(KEYS[n], n)
    cache.put(KEYS[2], 2)
    cache.put(KEYS[0], 99)
    assert cache.words([KEYS[0]]) == [99]


def test_it_is_bounded():
    cache = SeenCache(10)
    for n, key in enumerate(KEYS):
        cache.put(key, n)
    assert len(cache) <= 10
    assert cache.words([KEYS[99]]) == [99]
    assert cache.words([KEYS[0]]) == [None]


def test_what_is_used_stays():
    cache = SeenCache(10)
    cache.put(KEYS[0], 7)
    for n, key in enumerate(KEYS[1:]):
        cache.put(key, n)
        assert cache.words([KEYS[0]]) == [7]


def test_complete_until_something_is_dropped():
    cache = SeenCache(10, complete=True)
    for n, key in enumerate(KEYS[:10]):
        cache.put(key, n)
        assert cache.complete
    cache.put(KEYS[10], 10)
    assert not cache.complete
    assert None in cache.words(KEYS[:11])


@given(st.lists(st.tuples(st.sampled_from(KEYS[:8]), st.integers(0, 9)), max_size=60), st.integers(2, 12))
def test_it_agrees_with_a_dictionary_as_far_as_it_knows(puts, entries):
    cache, truth = SeenCache(entries, complete=True), {}
    for key, word in puts:
        cache.put(key, word)
        truth[key] = word
        for known, found in zip(truth, cache.words(list(truth)), strict=True):
            assert found == truth[known] or (found is None and not cache.complete)
