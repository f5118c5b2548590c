"""The front: our own pages about what is archived, and each capture below a banner."""

from __future__ import annotations

import asyncio
import re
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from muniment.clock import iso_us
from muniment.replay import pages
from muniment.replay.absences import Absences, loop_of
from muniment.replay.addresses import AT_PATH, STYLE, Addresses, url_of
from muniment.replay.catalog import Catalog, Entry, Search
from muniment.replay.records import RecordError, message_of, stored_record
from muniment.replay.responses import page_response, static_response
from muniment.replay.security_headers import download_headers, front_headers
from muniment.replay.url_keys import http_date, micros_of, stamp

__all__ = ["Front", "notes_of"]


class Front:
    """Answers with our own pages."""

    def __init__(self, catalog: Catalog, name: str, where: Addresses, absences: Absences, *, exact: bool) -> None:
        self._catalog, self._name, self._where, self._absences, self._exact = catalog, name, where, absences, exact
        self.chosen: int | None = None
        """The time that an exact replay shows; None: the newest captures."""

    async def answer(self, request: Request, path: str, query: str) -> Response:
        """One request."""
        headers = front_headers(self._where.content)
        if request.method not in {"GET", "HEAD"}:
            return PlainTextResponse("Only GET is answered here.\n", 405, headers)
        if path == "/":
            text, status = await asyncio.to_thread(self._first_page), 200
        elif path == "/search":
            text, status = await asyncio.to_thread(self._search, query), 200
        elif path == STYLE:
            return static_response("style.css", headers)
        elif found := AT_PATH.fullmatch(path + (f"?{query}" if query else "")):
            return await asyncio.to_thread(self._capture, found, headers)
        else:
            text, status = pages.told_page("Not found", "", "There is no such page here."), 404
        return Response(text, status, headers, "text/html; charset=utf-8")

    def _first_page(self) -> str:
        catalog = self._catalog
        chosen = ""
        if self._exact:
            when = f"those nearest to {iso_us(self.chosen)[:19]} UTC" if self.chosen is not None else "the newest"
            chosen = f"Captures shown: {when}. Open one of another time to change that."
        return pages.front_page(self._name, catalog.totals(), catalog.start_pages(), catalog.hosts(), chosen)

    def _search(self, query: str) -> str:
        given = {name: value for name, value in parse_qsl(query) if value}
        number = given.pop("page", "0")
        wanted = Search(
            q=given.get("q", ""),
            host=given.get("host", ""),
            status=given.get("status", ""),
            type=given.get("type", ""),
            since=micros_of(given.get("from", "")),
            until=micros_of(given.get("to", "")),
            page=int(number) if number.isdigit() and len(number) < 7 else 0,
        )
        found, more = self._catalog.search(wanted)
        return pages.search_page(wanted, found, more=more, query=given)

    def _capture(self, found: re.Match[str], headers: dict[str, str]) -> Response:
        kind, time, _, text = found.groups()
        url = url_of(text)
        if time == "*" and kind == "at" and (all_of := self._catalog.all_of(url)):
            return page_response(pages.captures_page(url, all_of), 200, headers)
        entry, loosely = self._catalog.nearest(url, None if time == "*" else micros_of(time)) if url else (None, False)
        if entry is None:
            return page_response(pages.missing_page(self._absences.of(url or text)), 404, headers)
        if kind == "at":
            return self._framed(entry, notes_of(entry, url, loosely), headers)
        return self._bytes(kind, entry, headers)

    def _framed(self, entry: Entry, notes: list[str], headers: dict[str, str]) -> Response:
        if self._exact:
            text = "It is shown in the browser that belongs to this replay."
            return page_response(pages.told_page("Not in this browser", entry.url, text), 404, headers)
        if loop := loop_of(self._catalog, entry):
            return page_response(pages.told_page("A circle of redirects", entry.url, loop), 508, headers)
        others = len(self._catalog.all_of(entry.url))
        if entry.redirect_to:
            notes.append(f"It redirects to {entry.redirect_to}.")
        return page_response(pages.banner_page(entry, self._where.content, others, notes), 200, headers)

    def _bytes(self, kind: str, entry: Entry, headers: dict[str, str]) -> Response:
        name = f"{stamp(entry.at)}-{re.sub('[^A-Za-z0-9.-]+', '-', entry.url.partition('://')[2])[:80].strip('-')}"
        try:
            if kind == "record":
                made = download_headers(f"{name}.warc")
                return StreamingResponse(stored_record(self._catalog, entry), 200, made, "application/warc")
            message = message_of(self._catalog, entry)
        except RecordError as problem:
            return page_response(pages.told_page("The capture cannot be read", entry.url, f"{problem}."), 404, headers)
        made = {**download_headers(name), "Memento-Datetime": http_date(entry.at)}
        return StreamingResponse(message.payload, 200, made, "application/octet-stream")


def notes_of(entry: Entry, url: str, loosely: bool) -> list[str]:
    """What a reader is to know of a capture that was asked for by a URL."""
    notes = []
    if loosely:
        notes.append(f"{url} itself was not captured; this differs in the order or the numbers of its query.")
    if not entry.whole:
        notes.append("This capture is not complete: what came of it is shown.")
    return notes
