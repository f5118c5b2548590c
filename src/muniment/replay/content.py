"""The origin of archived pages: the service worker that shows them, and the recorded answers that it asks for."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from importlib.resources import files
from typing import TypeVar
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from muniment.replay import pages
from muniment.replay.absences import Absences
from muniment.replay.addresses import AT_PATH, STYLE, Addresses, url_of
from muniment.replay.answers import Absence, Answer, Answers, archive_request
from muniment.replay.captures.catalog import Entry
from muniment.replay.captures.url_keys import full_stamp, http_date, stamp
from muniment.replay.responses import body_response, page_response, static_response
from muniment.replay.security_headers import DROPPED, content_headers, shown_headers, worker_headers
from muniment.replay.views import Views
from muniment.replay.wabac import Wabac
from muniment.replay.worker_pages import over_page, starting_page

__all__ = ["Content"]

_WORKER_PARTS = ("texts", "documents", "module_scope", "modules", "import_maps", "playlists", "workers", "mended", "sw")
_WORKER_FILES = tuple(f"worker/{name}.js" for name in _WORKER_PARTS)
_SCRIPTS = {
    "/start.js": ("start.js",),
    "/worker.js": ("page/worker.js",),
    "/before.js": (
        "page/natives.js",
        "page/insertions.js",
        "page/guard.js",
        "page/outline.js",
        "page/over.js",
        "page/cookies.js",
        "page/workers.js",
        "page/inline_modules.js",
    ),
    "/after.js": ("page/listeners.js", "page/bare_imports.js", "page/report.js"),
}
_JAVASCRIPT = "text/javascript; charset=utf-8"
_BODIES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_MOST_BODY = 64 << 20
_THREADS = 8
_T = TypeVar("_T")
_FRAMES = frozenset({"iframe", "frame", "fencedframe", "object", "embed"})
_DOCUMENTS = _FRAMES | {"document"}
_CHILDREN = _FRAMES | {"worker", "sharedworker"}
"""What a page begins that asks for things itself."""
_FRAMED = frozenset({None, "mp_", "if_", "fr_"})
_TIME_NOW = "29991231235959"
_COOKIE = re.compile(r"[^=;,\s]+=[^;,]*")


class Content:
    """Answers with archived pages."""

    def __init__(self, answers: Answers, where: Addresses, absences: Absences, views: Views, wabac: Wabac) -> None:
        self._answers, self._where, self._absences, self._wabac = answers, where, absences, wabac
        self._views = views
        self._name = urlsplit(where.content).netloc
        """What the worker knows this replay by."""
        self._threads = ThreadPoolExecutor(_THREADS, "content")

    async def answer(self, request: Request, path: str, query: str) -> Response:
        """One request."""
        self._views.reached = True
        headers = {**content_headers(self._where.front), "X-Muniment-Replay": self._name}
        given = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers.raw}
        if given.get("service-worker") and (path != "/sw.js" or query):
            return PlainTextResponse("Archived pages have no service workers here.\n", 403, headers)
        if own := self._own_file(path, query, headers):
            return own
        found = AT_PATH.fullmatch(path + (f"?{query}" if query else ""))
        if found is None or found[2] == "*":
            return PlainTextResponse("Only archived pages are here.\n", 404, headers)
        return await self._archived(request, found, given, headers)

    def _own_file(self, path: str, query: str, headers: dict[str, str]) -> Response | None:
        if path == "/sw.js":
            return self._worker(query)
        if path == "/wabac.js":
            return Response(self._wabac.script, 200, headers, _JAVASCRIPT)
        if path == STYLE:
            return static_response("style.css", headers)
        return Response(_script(_SCRIPTS[path]), 200, headers, _JAVASCRIPT) if path in _SCRIPTS else None

    def _worker(self, query: str) -> Response:
        if query:
            return PlainTextResponse("The worker of this archive has no such address.\n", 403, worker_headers())
        told = {
            "replay": self._name,
            "front": self._where.front,
            "policy": content_headers(self._where.front)["Content-Security-Policy"],
            "headers": shown_headers(self._where.front),
            "dropped": sorted(DROPPED),
            "files": [*_SCRIPTS, STYLE],
            "over": over_page(),
        }
        return Response(
            f"const MUNIMENT = {json.dumps(told)};\n{_joined(_WORKER_FILES)}", 200, worker_headers(), _JAVASCRIPT
        )

    async def _archived(
        self, request: Request, found: re.Match[str], given: Mapping[str, str], headers: dict[str, str]
    ) -> Response:
        kind, time, modifier, text = found.groups()
        url, destination = url_of(text), given.get("sec-fetch-dest", "")
        if kind == "record" or (kind == "raw" and destination != "empty"):
            return PlainTextResponse("Only archived pages are here.\n", 404, headers)
        if kind == "at" and (destination in _DOCUMENTS or given.get("sec-fetch-mode") == "navigate"):
            if modifier not in _FRAMED:
                return PlainTextResponse("Documents are shown rewritten alone.\n", 404, headers)
            if destination == "document":
                # a window of its own: the front shows it, with its banner and in its frame
                return RedirectResponse(f"{self._where.front}/at/{time}/{text}", 302, headers)
            return page_response(starting_page(url or text, self._where.front, time), 200, headers)
        body = await _body_of(request) if request.method in _BODIES else b""
        asked = archive_request(
            url, time, method=request.method, body=body, content_type=given.get("content-type", ""),
            byte_range=given.get("range", ""),
        )  # fmt: skip
        answer = await self._aside(partial(self._answers.answer, asked, coded=False)) if url else None
        if kind == "raw":
            self._note(f"{time}/{url or text}", given, answer)
        if answer is None or isinstance(answer, Absence):
            return await self._aside(partial(self._missing, url or text, answer, headers))
        # aside, too: a few bytes from the end of a large body are read only now
        return await self._aside(partial(self._for_worker if kind == "raw" else self._recorded, answer, headers))

    def _note(self, address: str, given: Mapping[str, str], answer: Answer | Absence | None) -> None:
        """Note what is shown, and what it asks for in vain, as the worker says who asks."""
        page, destination = given.get("x-muniment-page", ""), given.get("x-muniment-as", "")
        if isinstance(answer, Answer) and answer.redirect:
            return
        if destination == "document":
            self._views.begin(address)
        elif destination in _CHILDREN and page:
            self._views.begin(address, page)
        if not isinstance(answer, Answer) and destination != "document":
            time, _, url = address.partition("/")
            self._views.asked_in_vain(page, url, destination, time)

    async def _aside(self, answer: Callable[[], _T]) -> _T:
        """Run in a thread of its own kind, so that many requests of pages leave the front its threads."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, answer)

    def _missing(self, url: str, absence: Absence | None, headers: dict[str, str]) -> Response:
        if absence is None or absence.kind == "not-archived":
            return page_response(self._absences.text_of(url), 404, headers)
        return page_response(pages.told_page(absence.title, absence.url, absence.text), absence.status, headers)

    def _recorded(self, answer: Answer, headers: dict[str, str]) -> Response:
        """The answer as it was recorded, for what is not a browser with a worker of ours."""
        lines = [(name, value) for name, value in answer.headers if name not in DROPPED and name != "location"]
        if answer.redirect:
            time = full_stamp(answer.redirect.at if answer.redirect.at is not None else answer.entry.at)
            lines.append(("location", f"/at/{time}/{_ascii(answer.redirect.url)}"))
        return body_response(
            answer.pieces,
            answer.length,
            answer.status,
            [*lines, *headers.items(), *self._memento(answer.entry).items()],
        )

    def _for_worker(self, answer: Answer, headers: dict[str, str]) -> Response:
        """The answer in the form that wabac.js reads: its status and the way of a redirect are headers of a 200."""
        lines = [(name, value) for name, value in answer.headers if name not in DROPPED and name != "location"]
        lines.append(("X-Redirect-Status", str(answer.status)))
        if answer.redirect:
            time = full_stamp(answer.redirect.at if answer.redirect.at is not None else answer.entry.at)
            lines += [("X-Orig-Location", _ascii(answer.redirect.url)), ("X-Orig-Ts", time)]
        cookies = [
            found[0] for name, value in answer.headers if name == "set-cookie" and (found := _COOKIE.match(value))
        ]
        if cookies:
            lines.append(("X-Proxy-Set-Cookie", ",".join(cookies)))
        lines.append(("Memento-Datetime", http_date(answer.entry.at)))
        return body_response(answer.pieces, answer.length, 200, [*lines, *headers.items()])

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


async def _body_of(request: Request) -> bytes:
    """The body, up to what is compared."""
    held = bytearray()
    async for piece in request.stream():
        held += piece[: _MOST_BODY - len(held)]
    return bytes(held)


def _ascii(url: str) -> str:
    """A URL for a header: nothing outside ASCII."""
    return "".join(one if "!" <= one <= "~" else "".join(f"%{byte:02X}" for byte in one.encode()) for one in url)


@cache
def _script(names: tuple[str, ...]) -> str:
    """Files as one script, whose names no script of a page sees."""
    return f"(() => {{\n{_joined(names)}\n}})();\n"


@cache
def _joined(names: tuple[str, ...]) -> str:
    return "\n".join((files("muniment.replay") / "static" / name).read_text() for name in names)
