"""The front: our own pages about what is archived, and each capture below a banner."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar
from urllib.parse import parse_qsl, urlencode

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from muniment import __version__
from muniment.clock import iso_us
from muniment.errors import UsageError
from muniment.replay import pages
from muniment.replay.absences import Absences
from muniment.replay.addresses import AT_PATH, BANNER_SCRIPT, STYLE, Addresses, url_of
from muniment.replay.answers import Absence, Answers, ArchiveRequest, Chosen, KeptBytes, archive_request
from muniment.replay.banner import Banner, banner_page
from muniment.replay.captures.catalog import Search
from muniment.replay.captures.url_keys import full_stamp, http_date, micros_of, stamp, wanted_url
from muniment.replay.exact.windows import ExactWindows
from muniment.replay.plan import ReplayEngine, ReplayPlan
from muniment.replay.responses import body_response, page_response, static_response
from muniment.replay.security_headers import download_headers, front_headers
from muniment.replay.views import Latest, Views

__all__ = ["Front"]

_T = TypeVar("_T")
_MOST_CAPTURES = 10_000
_MOST_BODY = 64 << 10
_ANSWERING = 4
"""Threads of our own pages, which archived pages cannot keep busy."""
_NEWEST = "2999"
_FILES = {STYLE: "style.css", BANNER_SCRIPT: "banner.js"}
_SCHEME = re.compile(r"https?:/", re.IGNORECASE)
_HOST = re.compile(r"(?:localhost|[^\s/?#@]+\.[^\s/?#@.]+|\[[0-9a-f:.]+\])(?::\d+)?(?:[/?#]|$)", re.IGNORECASE)


class _CaptureTold(Struct, frozen=True):
    """A capture, as `/times` has it."""

    at: str
    """Twenty digits."""
    status: int
    type: str
    whole: bool


class _TimesTold(Struct, frozen=True):
    """The captures of a URL, the oldest first."""

    url: str
    captures: list[_CaptureTold]


class _MissingTold(Struct, frozen=True, rename={"destination": "as"}):
    """Something that a view asked for in vain, as `/missing` has it."""

    url: str
    destination: str
    reason: str
    text: str
    at: str
    """Twenty digits of the nearest capture of the URL; empty where there is none."""


class Front:
    """Answers with our own pages."""

    def __init__(
        self,
        plan: ReplayPlan,
        where: Addresses,
        absences: Absences,
        views: Views | None = None,
        engine: ReplayEngine | None = None,
    ) -> None:
        """Without `views` and an engine, archived pages are in an exact browser and have no banner."""
        self._catalog, self._answers, self._name = plan.catalog, Answers(plan.catalog), plan.name
        self._where, self._absences, self._views, self._engine = where, absences, views, engine
        self._exact = plan.options.exact
        self._windows = ExactWindows(plan.registry, plan.patterns)
        self._threads = ThreadPoolExecutor(_ANSWERING, "front")
        self._headers = front_headers(where.content, where.fallback)
        self.chosen: int | None = None
        """The time that an exact replay shows; None: the newest captures."""

    def close(self) -> None:
        """End the exact browsers that were opened."""
        self._windows.end()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def answer(self, request: Request, path: str, query: str) -> Response:
        """One request."""
        given = {name: value for name, value in parse_qsl(query) if value}
        if request.method == "POST" and path == "/exact" and not self._exact:
            return await self._open_exactly(request)
        if request.method not in {"GET", "HEAD"}:
            return PlainTextResponse("Only GET is answered here.\n", 405, self._headers)
        if path in _FILES:
            return static_response(_FILES[path], self._headers)
        routes: dict[str, Callable[[Mapping[str, str]], Response]] = {
            "/": self._first_page,
            "/search": self._search,
            "/go": self._go,
            "/times": self._times,
            "/missing": self._missing,
            "/latest": self._latest,
            "/licences": self._licences,
            "/favicon.ico": lambda _: Response(None, 204, self._headers),
        }
        if (route := routes.get(path)) is not None:
            return await self._aside(partial(route, given))
        if found := AT_PATH.fullmatch(path + (f"?{query}" if query else "")):
            return await self._aside(partial(self._capture, found))
        return self._page(pages.told_page("Not found", "", "There is no such page here."), 404)

    async def _aside(self, answer: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, answer)

    # -- pages about the archive

    def _first_page(self, _given: Mapping[str, str]) -> Response:
        catalog = self._catalog
        chosen = ""
        if self._exact:
            when = f"those nearest to {iso_us(self.chosen)[:19]} UTC" if self.chosen is not None else "the newest"
            chosen = f"Captures shown: {when}. Open one of another time to change that."
        return self._page(
            pages.front_page(self._name, catalog.totals(), catalog.start_pages(), catalog.hosts(), chosen)
        )

    def _search(self, given: Mapping[str, str]) -> Response:
        query = {name: value for name, value in given.items() if name != "page"}
        number = given.get("page", "0")
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
        return self._page(pages.search_page(wanted, found, more=more, query=query))

    def _licences(self, _given: Mapping[str, str]) -> Response:
        return self._page(pages.licences_page(__version__, self._engine))

    def _go(self, given: Mapping[str, str]) -> Response:
        """The way to what somebody typed: a URL, one without its scheme, or a part of one."""
        typed, at = given.get("url", "").strip(), given.get("at", "").strip()
        time = _digits(at) if at else _NEWEST
        if not time:
            return self._page(pages.told_page("Not a time", "", f"{at} is not a time; it takes 4 to 20 digits."), 400)
        url = wanted_url(typed)
        if not typed:
            place = "/"
        elif url and (_SCHEME.match(typed) or self._has(url, time) or self._is_address(typed)):
            place = pages.page_link(url, time)
        else:
            place = f"/search?{urlencode({'q': typed})}"
        return RedirectResponse(place, 303, self._headers)

    def _has(self, url: str, time: str) -> bool:
        chosen = self._answers.chosen(archive_request(url, time))
        return isinstance(chosen, Chosen) or chosen.kind != "not-archived"

    def _is_address(self, typed: str) -> bool:
        """It begins with the name of a host, and is part of no URL that is archived."""
        return bool(_HOST.match(typed)) and not self._catalog.search(Search(q=typed))[0]

    # -- what the banner asks

    def _times(self, given: Mapping[str, str]) -> Response:
        url = wanted_url(given.get("url", ""))
        found = self._catalog.all_of(url, _MOST_CAPTURES) if url else []
        captures = [
            _CaptureTold(full_stamp(one.at), one.status, one.kind.partition(";")[0].strip(), one.whole) for one in found
        ]
        return self._json(_TimesTold(url or given.get("url", ""), captures))

    def _missing(self, given: Mapping[str, str]) -> Response:
        rows = self._views.missing(given.get("view", "")) if self._views else []
        verdicts = [self._absences.verdict(row.url, row.at) for row in rows]
        told = [
            _MissingTold(
                row.url, row.destination, one.reason, one.text, "" if one.nearest is None else full_stamp(one.nearest)
            )
            for row, one in zip(rows, verdicts, strict=True)
        ]
        return self._json({"missing": told})

    def _latest(self, _given: Mapping[str, str]) -> Response:
        latest, reached = (self._views.latest(), self._views.reached) if self._views else (Latest(0, ""), True)
        return self._json({"number": latest.number, "view": latest.view, "reached": reached})

    async def _open_exactly(self, request: Request) -> Response:
        if refused := _from_elsewhere(request, self._where.front):
            return PlainTextResponse(f"{refused}\n", 403, self._headers)
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > _MOST_BODY:
                return PlainTextResponse("That is more than a URL and a time.\n", 413, self._headers)
        given = dict(parse_qsl(body.decode("utf-8", "replace")))
        url, time = wanted_url(given.get("url", "")), _digits(given.get("at", ""))
        if not (url and time):
            text = "A URL and a time of 4 to 20 digits are needed, as url and at."
            return self._page(pages.told_page("Not a page", "", text), 400)
        try:
            await self._windows.open(url, time)
        except UsageError as problem:
            return self._page(pages.told_page("No exact browser", url, f"{problem}."), 409)
        return RedirectResponse(pages.page_link(url, time), 303, self._headers)

    # -- captures

    def _capture(self, found: re.Match[str]) -> Response:
        kind, time, _, text = found.groups()
        url = url_of(text)
        if time == "*" and kind == "at" and (all_of := self._catalog.all_of(url)):
            return self._page(pages.captures_page(url, all_of))
        if not url:
            return self._page(pages.missing_page(self._absences.of(text)), 404)
        wanted = archive_request(url, time)
        if kind != "at":
            return self._bytes(kind, wanted)
        chosen = self._answers.chosen(wanted)
        return self._absent(chosen) if isinstance(chosen, Absence) else self._framed(chosen)

    def _bytes(self, kind: str, wanted: ArchiveRequest) -> Response:
        kept = self._answers.record(wanted) if kind == "record" else self._answers.payload(wanted)
        return self._absent(kept) if isinstance(kept, Absence) else _download(kind, kept)

    def _framed(self, chosen: Chosen) -> Response:
        entry, notes = chosen.entry, list(chosen.notes)
        if self._exact:
            text = "It is shown in the browser that belongs to this replay."
            return self._page(pages.told_page("Not in this browser", entry.url, text), 404)
        if (redirect := chosen.redirect) is not None:
            end = "" if redirect.at is not None else ", which is not in this archive"
            notes.append(f"It redirects to {redirect.url}{end}.")
        banner = Banner(
            entry=entry,
            content=self._where.content,
            fallback=self._where.fallback,
            captures=self._catalog.all_of(entry.url, _MOST_CAPTURES),
            notes=notes,
            shown=self._views.latest().number if self._views else 0,
        )
        return self._page(banner_page(banner))

    def _absent(self, absence: Absence) -> Response:
        if absence.kind == "not-archived":
            return self._page(pages.missing_page(self._absences.of(absence.url)), 404)
        return self._page(pages.told_page(absence.title, absence.url, absence.text), absence.status)

    def _page(self, text: str, status: int = 200) -> Response:
        return page_response(text, status, self._headers)

    def _json(self, told: object) -> Response:
        return Response(msgspec.json.encode(told), 200, self._headers, "application/json")


def _digits(time: str) -> str:
    """The digits of a time as it was given; empty when it is not one."""
    at = micros_of(time)
    if at is None:
        return ""
    return time if time.isascii() and time.isdigit() else stamp(at)


def _from_elsewhere(request: Request, front: str) -> str:
    """The reason to refuse a form that another page may have sent; empty for our own.

    Our pages send no referrer, so that a browser gives `null` as the Origin of their forms and says who asks by
    Sec-Fetch-Site.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None and site != "same-origin":
        return "A page of another site cannot open anything here."
    if origin not in ({None, "null", front} if site else {front}):
        return "A page of another origin cannot open anything here."
    return ""


def _download(kind: str, kept: KeptBytes) -> Response:
    entry, record = kept.entry, kind == "record"
    name = f"{stamp(entry.at)}-{re.sub('[^A-Za-z0-9.-]+', '-', entry.url.partition('://')[2])[:80].strip('-')}"
    headers = {
        **download_headers(f"{name}.warc" if record else name),
        "Content-Type": "application/warc" if record else "application/octet-stream",
        "Memento-Datetime": http_date(entry.at),
    }
    return body_response(kept.pieces, kept.length, 200, list(headers.items()))
