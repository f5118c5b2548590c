"""What is known of URLs that are not archived: other captures, other hosts, and what trackers say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from muniment.control.tracker_location import tracker_place
from muniment.control.why import why
from muniment.errors import MunimentError
from muniment.model.url import path_of
from muniment.replay import pages
from muniment.replay.catalog import Catalog, Entry
from muniment.replay.pages import Missing

__all__ = ["Absences", "loop_of"]

_MOST_HOPS = 20


class Absences:
    """Says why something is not shown."""

    def __init__(self, catalog: Catalog, directories: Sequence[Path], front: str) -> None:
        self._catalog, self._directories, self._front = catalog, directories, front

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

    def _reasons(self, url: str) -> Iterable[str]:
        for directory in self._directories:
            if not (directory / "tracker.sqlite").exists():
                continue
            try:
                found = why(directory, tracker_place(directory, None), url, parents=False)
            except (MunimentError, OSError):
                continue
            yield f"{directory.name}: {found.verdict}: {found.text}"


def loop_of(catalog: Catalog, entry: Entry) -> str:
    """What is said of redirects that lead nowhere; empty where they do not."""
    seen, here = {entry.url}, entry
    for _ in range(_MOST_HOPS):
        if not here.redirect_to:
            return ""
        if here.redirect_to in seen:
            return f"Its redirects lead back to {here.redirect_to}, as they did when they were captured."
        seen.add(here.redirect_to)
        following, _ = catalog.nearest(here.redirect_to, here.at)
        if following is None:
            return ""
        here = following
    return f"More than {_MOST_HOPS} redirects follow each other."
