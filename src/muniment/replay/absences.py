"""What is known of URLs that are not archived: other captures, other hosts, and what trackers say."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from muniment.clock import monotonic
from muniment.control.tracker_location import tracker_place
from muniment.control.why import Why, why
from muniment.errors import MunimentError
from muniment.model.url import path_of
from muniment.replay import pages
from muniment.replay.captures.catalog import Catalog
from muniment.replay.pages import Missing

__all__ = ["Absences", "UrlVerdict"]

_NEVER_SEEN = "never seen"
_MOST_VERDICTS = 2_000
_FRESH_S = 30.0
"""A running crawl may come to know more of a URL."""


class UrlVerdict(Struct, frozen=True):
    """What became of a URL."""

    reason: str
    """A verdict of `why`; `never-seen` where no tracker knows of it."""
    text: str
    """A sentence."""
    nearest: int | None
    """The time of the nearest capture, in Unix microseconds, if there is one."""


class Absences:
    """Says why something is not shown."""

    def __init__(self, catalog: Catalog, directories: Sequence[Path], front: str) -> None:
        self._catalog, self._directories, self._front = catalog, directories, front
        self._verdicts: OrderedDict[tuple[str, int], tuple[float, UrlVerdict]] = OrderedDict()

    def text_of(self, url: str) -> str:
        """The page of a URL that is not archived, for where the front is not."""
        return pages.missing_page(self.of(url), home=self._front)

    def of(self, url: str) -> Missing:
        """All that is known of a URL."""
        path = path_of(url) if "://" in url else ""
        query = urlsplit(url).query if "://" in url else ""
        tail = path + (f"?{query}" if query else "")
        elsewhere = self._catalog.elsewhere(url, tail) if len(tail) > 1 else []
        return Missing(url, self._catalog.all_of(url), elsewhere, list(self._reasons(url)))

    def verdict(self, url: str, at: int) -> UrlVerdict:
        """The verdict of the tracker that knows most of a URL, which was wanted as of a time in Unix microseconds."""
        known = self._verdicts.get((url, at))
        if known is not None and monotonic() - known[0] < _FRESH_S:
            return known[1]
        made = self._verdict(url, at)
        self._verdicts[url, at] = monotonic(), made
        if len(self._verdicts) > _MOST_VERDICTS:
            self._verdicts.popitem(last=False)
        return made

    def _verdict(self, url: str, at: int) -> UrlVerdict:
        others = self._catalog.all_of(url)
        nearest = min((one.at for one in others), key=lambda one: abs(one - at), default=None)
        found = [one for _, one in self._told_by_trackers(url)]
        best = next((one for one in found if one.verdict != _NEVER_SEEN), next(iter(found), None))
        if best is None:
            return UrlVerdict("never-seen", "no tracker of this archive has it", nearest)
        return UrlVerdict("never-seen" if best.verdict == _NEVER_SEEN else best.verdict, best.text, nearest)

    def _reasons(self, url: str) -> Iterable[str]:
        return (f"{name}: {found.verdict}: {found.text}" for name, found in self._told_by_trackers(url))

    def _told_by_trackers(self, url: str) -> Iterable[tuple[str, Why]]:
        for directory in self._directories:
            if not (directory / "tracker.sqlite").exists():
                continue
            try:
                found = why(directory, tracker_place(directory, None), url, parents=False)
            except (MunimentError, OSError):
                continue
            yield directory.name, found
