"""The origin of archived pages, and the index for the rewriter."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse

from muniment.archive.export.surt import surt
from muniment.clock import iso_us
from muniment.replay import pages
from muniment.replay.absences import Absences, loop_of
from muniment.replay.addresses import AT_PATH, STYLE, Addresses, url_of
from muniment.replay.catalog import Catalog, Entry
from muniment.replay.forward import forwarded
from muniment.replay.modules import asks_for_module, module_text, with_inline_modules
from muniment.replay.records import RecordError, message_of, response_record
from muniment.replay.responses import page_response, static_response
from muniment.replay.security_headers import content_headers
from muniment.replay.url_keys import http_date, micros_of, stamp, wanted_url

__all__ = ["Content"]

_OWN_FILES = {STYLE: "style.css", "/static/muniment-guard.js": "guard.js"}
_ANSWERING = 4
"""Threads that answer the rewriter."""
_T = TypeVar("_T")
_TIME_NOW = "29991231235959"


class Content:
    """Answers with archived pages."""

    def __init__(self, catalog: Catalog, where: Addresses, absences: Absences) -> None:
        self._catalog, self._where, self._absences = catalog, where, absences
        self.rewriter = "", 0
        """Where the rewriter answers."""
        self._answering = ThreadPoolExecutor(_ANSWERING, "answer")

    async def answer(self, request: Request, path: str, query: str) -> Response:
        """One request."""
        headers = content_headers(self._where.front)
        given = dict(request.headers)
        if path in _OWN_FILES:
            return static_response(_OWN_FILES[path], headers)
        if given.get("service-worker"):
            return PlainTextResponse("Archived pages have no service workers here.\n", 403, headers)
        if path.startswith("/static/") and "/../" not in path:
            return await asyncio.to_thread(forwarded, self.rewriter, request.method, path, given, headers, {})
        found = AT_PATH.fullmatch(path + (f"?{query}" if query else ""))
        if found is None or found[1] != "at":
            return PlainTextResponse("Only archived pages are here.\n", 404, headers)
        if given.get("sec-fetch-dest") == "document":
            # a window of its own: the front shows it, with its banner and in its frame
            return RedirectResponse(f"{self._where.front}/at/{found[2]}/{found[4]}", 302, headers)
        return await asyncio.to_thread(self._archived, request.method, found, given, headers)

    def _archived(self, method: str, found: re.Match[str], given: dict[str, str], headers: dict[str, str]) -> Response:
        _, time, modifier, text = found.groups()
        url = url_of(text)
        entry, _ = self._catalog.nearest(url, micros_of(time)) if url and time != "*" else (None, False)
        if entry is None:
            return page_response(self._absences.text_of(url or text), 404, headers)
        if loop := loop_of(self._catalog, entry):
            return page_response(pages.told_page("A circle of redirects", entry.url, loop), 508, headers)
        try:
            message = message_of(self._catalog, entry)
        except RecordError as problem:
            text = f"It was captured at {iso_us(entry.at)[:19]} UTC, but {problem}."
            return page_response(pages.told_page("The capture cannot be shown", entry.url, text), 404, headers)
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

    # -- the rewriter's questions

    async def inner(self, _request: Request, path: str, query: str) -> Response:
        """A question of the rewriter."""
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
