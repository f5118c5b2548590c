"""A documentation tree in which every page also leads into the traps of a wiki, a forum and a shop.

What is worth keeping is finite and known (`wanted`); the traps never end: each of their pages links to others that were
not there before. The addresses are those of MediaWiki, phpBB, WooCommerce and of common calendars.
"""

from __future__ import annotations

import itertools
import mimetypes
from email.message import Message
from pathlib import Path
from urllib.parse import quote

from tests.support.gated_site import Answer, GatedSite

__all__ = ["TOPICS", "TrapSite"]

TOPICS = 20
"""Topics of the forum: pages worth keeping."""

_HTML = (("Content-Type", "text/html; charset=utf-8"),)


class TrapSite(GatedSite):
    """Serves the files below `root`, a forum of `TOPICS` topics, and traps without end."""

    def __init__(self, root: Path) -> None:
        super().__init__({})
        self._root = root.resolve()
        self._numbers = itertools.count(2100)

    @property
    def forum(self) -> set[str]:
        """The paths of the forum that are worth keeping."""
        return {"/forum/viewforum.php?f=1", *(f"/forum/viewtopic.php?t={topic}" for topic in range(TOPICS))}

    def answer(self, path: str, headers: Message[str, str]) -> Answer:
        """A file with traps added to it, a page of the forum, or a trap."""
        self.requests.append(path)
        name = path.partition("?")[0].lstrip("/") or "index.html"
        file = self._root / name
        if file.is_file():
            return self._file(file, name)
        if path in self.forum or name.startswith(("w/", "forum/", "calendar/", "shop/")):
            return Answer(self._page(name, path), headers=_HTML)
        return Answer("there is no such page", 404)

    def _file(self, file: Path, name: str) -> Answer:
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        if kind != "text/html":
            return Answer(file.read_bytes(), headers=(("Content-Type", kind),))
        text = file.read_text("utf-8")
        return Answer(text.replace("</body>", self._links(name) + "</body>"), headers=_HTML)

    def _page(self, name: str, path: str) -> str:
        topics = "".join(f'<a href="/forum/viewtopic.php?t={topic}">topic {topic}</a>' for topic in range(TOPICS))
        return f"<!doctype html><title>{quote(path)}</title><body>{topics}{self._links(name)}</body>"

    def _links(self, name: str) -> str:
        hrefs = [*_wiki(quote(name), self._number()), *_forum(self._number()), *_calendar(self._number())]
        hrefs += [*_shop(self._number()), *_site(self._number())]
        return "".join(f'<a href="{href.replace("&", "&amp;")}">more</a>' for href in hrefs)

    def _number(self) -> int:
        return next(self._numbers)


def _wiki(title: str, number: int) -> list[str]:
    return [
        f"/w/index.php?title={title}&action=edit",
        f"/w/index.php?title={title}&action=history&offset={number}&limit=50",
        f"/w/index.php?title={title}&oldid={number}",
        f"/w/index.php?title={title}&diff={number}&oldid={number - 1}",
        f"/w/index.php?title=Special:RecentChanges&days=7&from={number}",
        f"/w/index.php?title=Special:UserLogin&returnto={title}",
        f"/w/index.php/Special:WhatLinksHere/{title}?limit={number}",
    ]


def _forum(number: int) -> list[str]:
    topic = number % TOPICS
    return [
        "/forum/viewforum.php?f=1",
        f"/forum/viewtopic.php?p={number}#p{number}",
        f"/forum/viewtopic.php?t={topic}&view=print&start={number}",
        f"/forum/posting.php?mode=reply&t={topic}&post={number}",
        f"/forum/memberlist.php?mode=contactadmin&u={number}",
        f"/forum/search.php?search_id=active_topics&start={number}",
        f"/forum/ucp.php?mode=login&redirect={number}",
        f"/forum/viewtopic.php?t={topic}&sid={number:032x}",
    ]


def _calendar(number: int) -> list[str]:
    year, month = 2040 + number % 5000, number % 12 + 1
    return [f"/calendar/?month={month}&year={year}", f"/calendar/{year}/{month:02}/"]


def _shop(number: int) -> list[str]:
    return [
        f"/shop/?add-to-cart={number}",
        f"/shop/?orderby=price&filter_color=red&min_price={number}&max_price={number + 10}",
    ]


def _site(number: int) -> list[str]:
    return [f"/w/css/css/css/{number}.css", f"/w/logout.php?token={number}", f"/w/https://a/{'x/' * 3}{number}"]
