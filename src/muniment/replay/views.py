"""Views: what archived pages asked for in vain while they were shown, kept in bounded memory."""

from __future__ import annotations

import re
from collections import OrderedDict
from threading import Lock

from msgspec import Struct

from muniment.replay.addresses import url_of
from muniment.replay.captures.url_keys import full_stamp, micros_of

__all__ = ["Latest", "Vain", "ViewKey", "Views"]

_MOST_VIEWS = 200
_MOST_ROWS = 500
_MOST_FRAMES = 100
_MOST_TEXT = 256 << 10
"""Characters of all URLs of a view."""
_LONGEST_WORD = 20
_PAGE = re.compile(r"(?:/?at/)?([0-9]{1,20})(?:[a-z]{2,4}_)?/(.+)", re.DOTALL)
"""A document by its address `/at/TIMEMOD/URL`, or by `TIME/URL` alone."""


class ViewKey(Struct, frozen=True):
    """The name of a view: the address of its document, however it is written."""

    url: str
    at: int
    """Unix microseconds of the TIME in the address."""


class Vain(Struct, frozen=True):
    """A request of an archived page that had no answer."""

    url: str
    destination: str
    """That of Fetch: `image`, `script` and so on; empty for requests of scripts."""
    at: int
    """The time that was wanted, in Unix microseconds."""


class Latest(Struct, frozen=True):
    """A document that was shown."""

    number: int
    """How many were shown before, and this one."""
    view: str
    """Its address `TIME/URL`."""


class _View:
    """One showing of one document."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Vain] = {}
        self.frames: set[ViewKey] = set()
        self.room = _MOST_TEXT

    def note(self, row: Vain) -> None:
        """Keep a row, if it is another one and there is room."""
        name = row.url, row.destination
        if name not in self.rows and len(self.rows) < _MOST_ROWS and len(row.url) <= self.room:
            self.rows[name] = row
            self.room -= len(row.url)


class Views:
    """The documents that are shown, each named by its address `TIME/URL`, and what each asked for in vain.

    Callable from any thread.
    """

    def __init__(self) -> None:
        self._views: OrderedDict[ViewKey, _View] = OrderedDict()
        self._latest: Latest = Latest(0, "")
        self._lock = Lock()
        self.reached = False
        """A browser has found the origin of archived pages."""

    def begin(self, page: str, parent: str = "") -> None:
        """A document is shown anew, in a frame of its `parent` if one is named."""
        key, framing = _key(page), _key(parent) if parent else None
        if key is None:
            return
        with self._lock:
            self._made(key, _View())
            if not parent:
                self._latest = Latest(self._latest.number + 1, f"{full_stamp(key.at)}/{key.url}")
            if framing is not None and framing != key and len(frames := self._view(framing).frames) < _MOST_FRAMES:
                frames.add(key)

    def asked_in_vain(self, page: str, url: str, destination: str, at: str = "") -> None:
        """A document asked for a URL that has no answer; `at` is the time that it wanted, else that of the document."""
        key = _key(page)
        if key is None:
            return
        wanted = micros_of(at) if at else None
        row = Vain(url, destination[:_LONGEST_WORD], key.at if wanted is None else wanted)
        with self._lock:
            self._view(key).note(row)

    def missing(self, view: str) -> list[Vain]:
        """What a document and those in its frames asked for in vain, the first first; at most 500."""
        key = _key(view)
        with self._lock:
            first = self._nearest(key) if key else None
            if first is None:
                return []
            self._views.move_to_end(first)
            found: dict[tuple[str, str], Vain] = {}
            seen, left = {first}, [first]
            while left and len(found) < _MOST_ROWS:
                one = self._views.get(left.pop())
                if one is not None:
                    found |= {name: row for name, row in one.rows.items() if name not in found}
                    left += one.frames - seen
                    seen |= one.frames
            return list(found.values())[:_MOST_ROWS]

    def latest(self) -> Latest:
        """The document that was shown last in no frame of another."""
        return self._latest

    def _nearest(self, key: ViewKey) -> ViewKey | None:
        """The view of this address, else that of the same URL nearest in time.

        A document may say the time of its capture, and have another in its address.
        """
        if key in self._views:
            return key
        others = [one for one in self._views if one.url == key.url]
        return min(others, key=lambda one: abs(one.at - key.at), default=None)

    def _view(self, key: ViewKey) -> _View:
        return self._made(key, self._views.get(key) or _View())

    def _made(self, key: ViewKey, view: _View) -> _View:
        """The view, as the one that was used last."""
        self._views[key] = view
        self._views.move_to_end(key)
        while len(self._views) > _MOST_VIEWS:
            self._views.popitem(last=False)
        return view


def _key(page: str) -> ViewKey | None:
    found = _PAGE.fullmatch(page)
    at = micros_of(found[1]) if found else None
    url = url_of(found[2]) if found else ""
    return ViewKey(url, at) if url and at is not None else None
