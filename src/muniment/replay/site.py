"""The three faces of one server, chosen by the Host: the front, archived pages, and the index for the rewriter."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from muniment.archive.export.surt import surt
from muniment.clock import iso_us
from muniment.control.tracker_location import tracker_place
from muniment.control.why import why
from muniment.errors import MunimentError
from muniment.model.url import path_of
from muniment.replay import pages
from muniment.replay.catalog import Catalog, Entry, Search
from muniment.replay.forward import forwarded
from muniment.replay.modules import asks_for_module, module_text, with_inline_modules
from muniment.replay.pages import Missing
from muniment.replay.records import RecordError, message_of, response_record, stored_record
from muniment.replay.security_headers import content_headers, download_headers, front_headers
from muniment.replay.url_keys import http_date, micros_of, stamp, wanted_url

__all__ = ["AT_PATH", "Addresses", "ReplaySite", "notes_of", "url_of"]

AT_PATH = re.compile(r"/(at|raw|record)/([0-9]{1,14}|\*)([a-z]{2,3}_)?/(.+)", re.DOTALL)
"""Addresses of captures: what is wanted, when, a modifier of the rewriter, and the URL."""
_OWN_FILES = {pages.STYLE: "style.css", "/static/muniment-guard.js": "guard.js"}
_MOST_HOPS = 20
_ANSWERING = 4
"""Threads that answer the rewriter."""
_T = TypeVar("_T")
_TIME_NOW = "29991231235959"


class Addresses(Struct, frozen=True):
    """Where the faces are."""

    front: str
    """Origin of our own pages."""
    content: str
    """Origin of archived pages."""
    inner: str
    """Origin that the rewriter asks; on an address that nobody knows."""
    secret: str
    """The path of its routes."""


class ReplaySite:
    """Answers requests. What blocks runs in threads."""

    def __init__(
        self, catalog: Catalog, name: str, where: Addresses, directories: Sequence[Path], *, exact: bool = False
    ) -> None:
        self._catalog, self._name, self._where = catalog, name, where
        self._directories, self._exact = directories, exact
        self.chosen: int | None = None
        """The time that an exact replay shows; None: the newest captures."""
        self.rewriter = "", 0
        """Where the rewriter answers; there is none in an exact replay."""
        self._answering = ThreadPoolExecutor(_ANSWERING, "answer")
        self._hosts: dict[str, Callable[[Scope, str, str], Awaitable[Response]]] = {
            urlsplit(where.front).netloc: self._front,
        }
        if not exact:
            self._hosts |= {urlsplit(where.content).netloc: self._content, urlsplit(where.inner).netloc: self._inner}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1").lower()
        face = self._hosts.get(host)
        path = scope.get("raw_path", scope["path"].encode()).decode("latin-1")
        query = scope["query_string"].decode("latin-1")
        if face is None:
            policy = download_headers("refused.txt")
            response: Response = PlainTextResponse("This server answers to its own names only.\n", 421, policy)
        else:
            response = await face(scope, path, query)
        await response(scope, receive, send)

    # -- our own pages

    async def _front(self, scope: Scope, path: str, query: str) -> Response:
        headers = front_headers(self._where.content)
        if scope["method"] not in {"GET", "HEAD"}:
            return PlainTextResponse("Only GET is answered here.\n", 405, headers)
        if path == "/":
            text, status = await asyncio.to_thread(self._first_page), 200
        elif path == "/search":
            text, status = await asyncio.to_thread(self._search, query), 200
        elif path == pages.STYLE:
            return _static("style.css", headers)
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
            return _page(pages.captures_page(url, all_of), 200, headers)
        entry, loosely = self._catalog.nearest(url, None if time == "*" else micros_of(time)) if url else (None, False)
        if entry is None:
            return _page(pages.missing_page(self._missing(url or text)), 404, headers)
        if kind == "at":
            return self._framed(entry, notes_of(entry, url, loosely), headers)
        return self._bytes(kind, entry, headers)

    def _framed(self, entry: Entry, notes: list[str], headers: dict[str, str]) -> Response:
        if self._exact:
            text = "It is shown in the browser that belongs to this replay."
            return _page(pages.told_page("Not in this browser", entry.url, text), 404, headers)
        if loop := self.loop_of(entry):
            return _page(pages.told_page("A circle of redirects", entry.url, loop), 508, headers)
        others = len(self._catalog.all_of(entry.url))
        if entry.redirect_to:
            notes.append(f"It redirects to {entry.redirect_to}.")
        return _page(pages.banner_page(entry, self._where.content, others, notes), 200, headers)

    def _bytes(self, kind: str, entry: Entry, headers: dict[str, str]) -> Response:
        name = f"{stamp(entry.at)}-{re.sub('[^A-Za-z0-9.-]+', '-', entry.url.partition('://')[2])[:80].strip('-')}"
        try:
            if kind == "record":
                made = download_headers(f"{name}.warc")
                return StreamingResponse(stored_record(self._catalog, entry), 200, made, "application/warc")
            message = message_of(self._catalog, entry)
        except RecordError as problem:
            return _page(pages.told_page("The capture cannot be read", entry.url, f"{problem}."), 404, headers)
        made = {**download_headers(name), "Memento-Datetime": http_date(entry.at)}
        return StreamingResponse(message.payload, 200, made, "application/octet-stream")

    # -- archived pages

    async def _content(self, scope: Scope, path: str, query: str) -> Response:
        headers = content_headers(self._where.front)
        given = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if path in _OWN_FILES:
            return _static(_OWN_FILES[path], headers)
        if given.get("service-worker"):
            return PlainTextResponse("Archived pages have no service workers here.\n", 403, headers)
        if path.startswith("/static/") and "/../" not in path:
            return await asyncio.to_thread(forwarded, self.rewriter, scope["method"], path, given, headers, {})
        found = AT_PATH.fullmatch(path + (f"?{query}" if query else ""))
        if found is None or found[1] != "at":
            return PlainTextResponse("Only archived pages are here.\n", 404, headers)
        if given.get("sec-fetch-dest") == "document":
            # a window of its own: the front shows it, with its banner and in its frame
            return RedirectResponse(f"{self._where.front}/at/{found[2]}/{found[4]}", 302, headers)
        return await asyncio.to_thread(self._archived, scope["method"], found, given, headers)

    def _archived(self, method: str, found: re.Match[str], given: dict[str, str], headers: dict[str, str]) -> Response:
        _, time, modifier, text = found.groups()
        url = url_of(text)
        entry, _ = self._catalog.nearest(url, micros_of(time)) if url and time != "*" else (None, False)
        if entry is None:
            return _page(self.missing_text(url or text), 404, headers)
        if loop := self.loop_of(entry):
            return _page(pages.told_page("A circle of redirects", entry.url, loop), 508, headers)
        try:
            message = message_of(self._catalog, entry)
        except RecordError as problem:
            text = f"It was captured at {iso_us(entry.at)[:19]} UTC, but {problem}."
            return _page(pages.told_page("The capture cannot be shown", entry.url, text), 404, headers)
        if asks_for_module(given, modifier) and (module := module_text(entry, message)) is not None:
            return Response(module, 200, {**headers, **self._memento(entry)}, "text/javascript")
        target = f"/at/{stamp(entry.at)}{'js_' if modifier == 'esm_' else modifier or 'mp_'}/{text}"
        mend = partial(with_inline_modules, entry)
        return forwarded(self.rewriter, method, target, given, headers, self._memento(entry), mend)

    def _memento(self, entry: Entry) -> dict[str, str]:
        """The headers of RFC 7089 about a capture."""
        date, content = http_date(entry.at), self._where.content
        url = entry.url.replace(">", "%3E")
        links = (
            f'<{url}>; rel="original"',
            f'<{content}/at/{_TIME_NOW}/{url}>; rel="timegate"',
            f'<{self._where.front}/at/*/{url}>; rel="timemap"; type="text/html"',
            f'<{content}/at/{stamp(entry.at)}/{url}>; rel="memento"; datetime="{date}"',
        )
        return {"Memento-Datetime": date, "Link": ", ".join(links)}

    def loop_of(self, entry: Entry) -> str:
        """What is said of redirects that lead nowhere; empty where they do not."""
        seen, here = {entry.url}, entry
        for _ in range(_MOST_HOPS):
            if not here.redirect_to:
                return ""
            if here.redirect_to in seen:
                return f"Its redirects lead back to {here.redirect_to}, as they did when they were captured."
            seen.add(here.redirect_to)
            following, _ = self._catalog.nearest(here.redirect_to, here.at)
            if following is None:
                return ""
            here = following
        return f"More than {_MOST_HOPS} redirects follow each other."

    def missing_text(self, url: str) -> str:
        """The page of a URL that is not archived, for where the front is not."""
        return pages.missing_page(self._missing(url), home=self._where.front)

    def _missing(self, url: str) -> Missing:
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

    # -- the rewriter's questions

    async def _inner(self, _scope: Scope, path: str, query: str) -> Response:
        if path == f"/{self._where.secret}/index":
            return PlainTextResponse(await self._aside(partial(self._line, query)))
        found = re.fullmatch(rf"/{self._where.secret}/record/(\d+)/(\d+)/(\d+)", path)
        if found is None:
            return PlainTextResponse("", 404)
        return await self._aside(partial(self._record, int(found[1]), int(found[2]), int(found[3])))

    async def _aside(self, answer: Callable[[], _T]) -> _T:
        """Run in a thread of its own kind: in all others requests may wait for the rewriter, which asks this."""
        return await asyncio.get_running_loop().run_in_executor(self._answering, answer)

    def _line(self, query: str) -> str:
        """The one capture that the rewriter is to take, as a line of CDXJ."""
        given = dict(parse_qsl(query, keep_blank_values=True))
        if given.get("matchType", "exact") != "exact":
            return ""
        url = wanted_url(given.get("url", ""))
        entry, _ = self._catalog.nearest(url, micros_of(given.get("closest", ""))) if url else (None, False)
        if entry is None:
            return ""
        status = str(entry.status)
        try:
            status = str(message_of(self._catalog, entry).head.status)
        except RecordError:
            return ""
        fields = {
            "url": url,
            "mime": entry.kind.partition(";")[0].strip() or "unk",
            "status": status,
            "digest": "-",
            "length": "0",
            "offset": "0",
            "filename": f"{entry.place}/{entry.offset}/{entry.at}",
        }
        return f"{surt(url)} {stamp(entry.at)} {json.dumps(fields)}\n"

    def _record(self, place: int, offset: int, at: int) -> Response:
        entry = self._catalog.entry(place, offset, at)
        if entry is None:
            return PlainTextResponse("", 404)
        try:
            return StreamingResponse(response_record(entry, message_of(self._catalog, entry)), 200)
        except RecordError:
            return PlainTextResponse("", 404)


def url_of(text: str) -> str:
    """The URL in a path: as it stands, or escaped as a whole."""
    found = wanted_url(text)
    return found if "://" in text or not text.lower().startswith(("http%3a", "https%3a")) else wanted_url(unquote(text))


def notes_of(entry: Entry, url: str, loosely: bool) -> list[str]:
    """What a reader is to know of a capture that was asked for by a URL."""
    notes = []
    if loosely:
        notes.append(f"{url} itself was not captured; this differs in the order or the numbers of its query.")
    if not entry.whole:
        notes.append("This capture is not complete: what came of it is shown.")
    return notes


def _page(text: str, status: int, headers: dict[str, str]) -> Response:
    return Response(text, status, headers, "text/html; charset=utf-8")


@cache
def _bytes_of(name: str) -> bytes:
    return (files("muniment.replay") / "static" / name).read_bytes()


def _static(name: str, headers: dict[str, str]) -> Response:
    kind = "text/css" if name.endswith("css") else "text/javascript"
    return Response(_bytes_of(name), 200, headers, f"{kind}; charset=utf-8")
