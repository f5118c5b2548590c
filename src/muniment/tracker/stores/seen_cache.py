"""The seen-cache: which URLs a job knows, and how near each stands, without asking the database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muniment.rules.scope import FAR

__all__ = ["UNREACHED", "SeenCache", "next_unknown", "pack", "page_of", "unknown"]


def pack(page_id: int, link_hops: int, requisite_hops: int) -> int:
    """One word: page id, link hops and requisite hops."""
    return page_id << 32 | link_hops << 16 | requisite_hops


def page_of(word: int) -> int:
    """The page id of a word."""
    return word >> 32


def next_unknown(words: list[int | None], start: int) -> int:
    """The index of the first key from `start` on that the cache did not know; -1 without one."""
    try:
        return words.index(None, start)
    except ValueError:
        return -1


def unknown(words: list[int | None], keys: Sequence[bytes]) -> Iterator[bytes]:
    """The keys that the cache did not know."""
    at = next_unknown(words, 0)
    while at >= 0:
        yield keys[at]
        at = next_unknown(words, at + 1)


class SeenCache:
    """URL key → word, bounded: two generations, of which the older is dropped when the younger is full.

    About 130 bytes an entry. What was dropped is found in the database again.
    """

    def __init__(self, entries: int = 600_000, *, complete: bool = False) -> None:
        self._half = entries // 2
        self.complete = complete
        """Whether every URL of the job is in the cache, so that what it does not know is new."""
        self._young: dict[bytes, int] = {}
        self._old: dict[bytes, int] = {}

    def word(self, key: bytes) -> int | None:
        """The word of a key; None where the cache does not know."""
        word = self._young.get(key)
        return self._from_old(key) if word is None and self._old else word

    def words(self, keys: Sequence[bytes]) -> list[int | None]:
        """The words of many keys; None where the cache does not know."""
        found: list[int | None] = list(map(self._young.get, keys))
        if self._old and None in found:
            found = [self._from_old(key) if word is None else word for key, word in zip(keys, found, strict=True)]
        return found

    def _from_old(self, key: bytes) -> int | None:
        word = self._old.get(key)
        if word is not None:
            self.put(key, word)
        return word

    def put(self, key: bytes, word: int) -> None:
        """Remember a key's newest word."""
        if len(self._young) >= self._half:
            self.complete = self.complete and not self._old
            self._old, self._young = self._young, {}
        self._young[key] = word

    def __len__(self) -> int:
        return len(self._young) + len(self._old)


UNREACHED = FAR << 16 | FAR
"""The lower half of the word of a page that no relation admits yet."""
