"""The folder of a page for its hooks: `page.json`, the recorded body, and an HTML page as UTF-8."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from muniment.crawl.hooks.bodies import recorded_body
from muniment.crawl.hooks.given_folder import remove_given
from muniment.crawl.hooks.trust_files import TrustFiles
from muniment.extract.text import document_text, page_text
from muniment.model.hooks.runs import HookPage

__all__ = ["PageFolder"]

_MOST_DOM = 16 << 20
"""Bytes of an HTML page that are read as text; as text they may take ten times as much memory."""
_MOST_TITLE = 4 << 20
_HTML = ("text/html", "application/xhtml+xml")


class PageFolder:
    """`OUT/hooks/pages/KK/KEY`. Made when the first hook of the page runs; body and text go when the last has."""

    def __init__(self, out: Path, page: HookPage, crawl_id: str) -> None:
        self._out, self._page, self._crawl_id = out, page, crawl_id
        self.key = page.page.key.hex()
        self.path = out / "hooks" / "pages" / self.key[:2] / self.key
        self.card = self.path / "page.json"
        self.body = self.path / "muniment_body" / "body"
        self._dom = self.path / "muniment_dom" / "output.html"
        self._trust = TrustFiles(self.path, page.network) if page.network is not None else None
        self._title, self._tags = page.title, page.tags

    def make(self) -> None:
        """Write all of it. Raises OSError."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.clear()
        found = recorded_body(self._out, self._page.page)
        self.body.parent.mkdir(exist_ok=True)
        with self.body.open("wb") as file:
            for piece in found.pieces if found else ():
                file.write(piece)
        if found is not None and found.content_type.lstrip().lower().startswith(_HTML):
            title = self._write_text(found.content_type)
            # what a hook said in an earlier run goes before
            self._title = self._page.title or title
        self._write_card()
        if self._trust is not None:
            self._trust.write()

    def say(self, title: str, tags: Iterable[str]) -> None:
        """Hooks have said a title, or nothing, and tags: later ones read them in `page.json`. Raises OSError."""
        self._title, self._tags = title or self._title, tuple(tags)
        self._write_card()

    @property
    def environment(self) -> dict[str, str]:
        """What hooks of the page get of it."""
        own = {"SNAP_DIR": str(self.path), "MUNIMENT_PAGE": str(self.card), "MUNIMENT_BODY": str(self.body)}
        return own if self._trust is None else {**own, **self._trust.environment}

    def _write_text(self, content_type: str) -> str:
        """The page as UTF-8; its title."""
        with self.body.open("rb") as file:
            data = file.read(_MOST_DOM)
        self._dom.parent.mkdir(exist_ok=True)
        self._dom.write_text(document_text(data, content_type), "utf-8", "replace", newline="")
        return page_text(data[:_MOST_TITLE], content_type, with_text=False).title

    def _write_card(self) -> None:
        page = self._page.page
        card = {
            "url": page.url,
            "snapshot_id": self.key,
            "crawl_id": self._crawl_id,
            "depth": page.depth,
            "status": page.status,
            "content_type": page.content_type,
            "fetched_at": page.fetched_at,
            "warc_file": page.warc_file,
            "warc_offset": page.warc_offset,
            "digest": page.digest,
            "title": self._title,
            "tags": list(self._tags),
        }
        aside = self.card.with_name(f"page.json.{os.getpid()}.part")
        aside.write_bytes(msgspec.json.format(msgspec.json.encode(card)) + b"\n")
        aside.replace(self.card)

    def clear(self) -> None:
        """Remove body, text and certificate."""
        for path in (self.body, self._dom):
            remove_given(path.parent, path.name)
        if self._trust is not None:
            self._trust.clear()
