"""Answers of an exact replay: every request that its browser sends to the proxy is answered from the archive."""

from __future__ import annotations

import asyncio
import http.client
import re
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from urllib.parse import urlsplit

from msgspec import Struct

from muniment.archive.warc.request_bodies import MOST_BODY
from muniment.model.exchange import RequestOutcome
from muniment.proxy.answerer import AnswerTaker, ProxyRequest, TunnelEnd
from muniment.replay.absences import Absences
from muniment.replay.addresses import AT_PATH, url_of
from muniment.replay.answers import Absence, Answer, Answers, ArchiveRequest, Chosen, archive_request
from muniment.replay.captures.url_keys import http_date
from muniment.replay.choice import Entry
from muniment.replay.exact.times import ShownTimes
from muniment.replay.front import Front
from muniment.replay.pages import noted_page, told_page

__all__ = ["ExactAnswers"]

_DROPPED = re.compile(
    rb"(?i)(?:age|alt-svc|cache-control|connection|content-length|expires|keep-alive|pragma|proxy-[a-z-]+|trailer|"
    rb"transfer-encoding|upgrade)[ \t]*:"
)
"""What belongs to one connection, or would have the browser show a page of another time from its cache."""
_NO_CODINGS = re.compile(r"(?:^|,)\s*\*\s*;\s*q=0(?:\.0*)?\s*(?:,|$)")
"""Of an Accept-Encoding (RFC 9110 §12.5.3)."""
_CORS = re.compile(rb"(?i)access-control-allow-(?:origin|credentials)[ \t]*:")
_BODILESS = frozenset({204, 205, 304})
_PATIENCE_S = 60
_NO_SOCKETS = "not-archived: websockets are not in archives"


class _Reply(Struct, frozen=True):
    """An answer that can be sent."""

    status: int
    lines: list[bytes]
    """Header lines, those about the length left out."""
    pieces: Iterator[bytes]
    length: int | None
    """Bytes of the pieces; None: they end with the connection."""
    reason: bytes = b""

    @property
    def head(self) -> bytes:
        """The header block."""
        about = b"Connection: close" if self.length is None else b"Content-Length: %d" % self.length
        first = b"HTTP/1.1 %d %b" % (self.status, self.reason or _reason(self.status))
        return b"\r\n".join([first, *self.lines, *([] if self.status in _BODILESS else [about]), b"", b""])


class ExactAnswers:
    """An `Answerer` for one browser: captures of the time that was chosen on the front, and of the pages' own times."""

    def __init__(self, answers: Answers, front: Front, address: str, absences: Absences) -> None:
        self._answers, self._pages, self._front, self._absences = answers, front, urlsplit(address), absences
        self._times = ShownTimes()

    async def answer(self, request: ProxyRequest, taker: AnswerTaker) -> RequestOutcome:
        """Answer from the archive, or from our own pages."""
        try:
            reply = await asyncio.to_thread(self._reply, request)
        finally:
            if request.body is not None:
                request.body.close()
        await _send(reply, taker, with_body=request.method != "HEAD" and reply.status not in _BODILESS)
        return RequestOutcome(status=reply.status)

    async def tunnel(self, request: ProxyRequest, client: TunnelEnd) -> TunnelEnd | RequestOutcome:
        """No websocket is in an archive."""
        del request, client
        return RequestOutcome(error=_NO_SOCKETS, refused="not-archived", type="websocket")

    def cut(self) -> None:
        """What is under way ends by itself."""

    def _reply(self, request: ProxyRequest) -> _Reply:
        asked = urlsplit(request.url)
        if (asked.scheme, asked.netloc) == (self._front.scheme, self._front.netloc):
            return self._own_page(request)
        return self._archived(request)

    # -- our own pages

    def _own_page(self, request: ProxyRequest) -> _Reply:
        """A page of the front: for the reader alone, whatever archived pages try."""
        if request.header("sec-fetch-site") not in {"none", "same-origin"} or request.method not in {"GET", "HEAD"}:
            return _text(403, "Archived pages have no way to the archive's own pages.\n", "text/plain")
        found = AT_PATH.fullmatch(request.target)
        if found and found[1] == "at" and found[2] != "*":
            url = url_of(found[4])
            chosen = self._answers.chosen(archive_request(url, found[2])) if url else None
            if isinstance(chosen, Chosen):
                self._pages.chosen = chosen.entry.at
                self._times.open(chosen.entry.url, chosen.entry.at)
                return _opened(chosen.entry, chosen.notes)
        return self._from_server(request)

    def _from_server(self, request: ProxyRequest) -> _Reply:
        connection = http.client.HTTPConnection(self._front.hostname or "", self._front.port, timeout=_PATIENCE_S)
        try:
            connection.request("GET", request.target, headers={"Host": self._front.netloc})
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            return _text(502, f"The archive's own pages do not answer: {error}\n", "text/plain")
        finally:
            connection.close()
        lines = [f"{name}: {value}".encode("latin-1", "replace") for name, value in answer.getheaders()]
        return _Reply(answer.status, [one for one in lines if not _LENGTHS.match(one)], iter((body,)), len(body))

    # -- archived ones

    def _archived(self, request: ProxyRequest) -> _Reply:
        moment = self._times.wanted(request, self._pages.chosen)
        asked = ArchiveRequest(
            url=request.url,
            at=moment.at,
            pinned=moment.pinned,
            method=request.method,
            body=request.body.payload(MOST_BODY) if request.body is not None else b"",
            content_type=request.header("content-type"),
            byte_range=request.header("range"),
        )
        answer = self._answers.answer(asked, coded=_takes_codings(request))
        if not isinstance(answer, Absence):
            self._times.answered(request, moment, answer)
            return _recorded(request, answer)
        if request.method == "OPTIONS" and request.header("origin"):
            return _Reply(204, _allowed(request), iter(()), 0)
        if answer.kind != "not-archived":
            return _text(answer.status, told_page(answer.title, answer.url, answer.text))
        if "text/html" not in request.header("accept"):
            return _text(404, "Not in this archive.\n", "text/plain")
        return _text(404, self._absences.text_of(request.url))


def _opened(entry: Entry, notes: Sequence[str]) -> _Reply:
    """The way to a page: what a banner would say of it comes first, since the page itself has none."""
    if notes:
        return _text(200, noted_page(entry, notes), policy="default-src 'none'; style-src 'self'")
    place = f"Location: {entry.url}".encode("latin-1", "replace")
    return _Reply(302, [place, b"Cache-Control: no-store"], iter(()), 0)


_LENGTHS = re.compile(rb"(?i)(?:content-length|transfer-encoding|connection)[ \t]*:")


def _recorded(request: ProxyRequest, answer: Answer) -> _Reply:
    cross = bool(request.header("origin"))
    lines = [
        *(line for line in answer.lines if not _DROPPED.match(line) and not (cross and _CORS.match(line))),
        *_allowed(request),
        b"Cache-Control: no-store",
        f"Memento-Datetime: {http_date(answer.entry.at)}".encode(),
        *(f"Muniment-Note: {note}".encode("latin-1", "replace") for note in answer.notes),
    ]
    return _Reply(answer.status, lines, answer.pieces, answer.length, answer.reason.encode("latin-1"))


def _takes_codings(request: ProxyRequest) -> bool:
    """Content codings may stay: players that ask for ranges refuse them."""
    return not _NO_CODINGS.search(request.header("accept-encoding"))


def _allowed(request: ProxyRequest) -> list[bytes]:
    """What lets a page read what it asks for: the capture was made for no page, and says nothing of this one."""
    origin = request.header("origin").encode("latin-1", "replace")
    if not origin:
        return []
    lines = [b"Access-Control-Allow-Origin: " + origin, b"Access-Control-Allow-Credentials: true"]
    if request.method == "OPTIONS":
        names = request.header("access-control-request-headers").encode("latin-1", "replace")
        method = request.header("access-control-request-method").encode("latin-1", "replace")
        lines += [b"Access-Control-Allow-Headers: " + names, b"Access-Control-Allow-Methods: " + method]
    return lines


def _text(status: int, text: str, kind: str = "text/html", *, policy: str = "default-src 'none'") -> _Reply:
    body = text.encode()
    lines = [
        f"Content-Type: {kind}; charset=utf-8".encode(),
        b"Cache-Control: no-store",
        f"Content-Security-Policy: {policy}".encode(),
        b"X-Content-Type-Options: nosniff",
    ]
    return _Reply(status, lines, iter((body,)), len(body))


def _reason(status: int) -> bytes:
    try:
        return HTTPStatus(status).phrase.encode()
    except ValueError:
        return b"Unknown"


async def _send(reply: _Reply, taker: AnswerTaker, *, with_body: bool) -> None:
    taker.begin(reply.head, keep=reply.length is not None)
    while with_body and not taker.gone and (piece := await asyncio.to_thread(next, reply.pieces, b"")):
        taker.more(piece)
        await taker.room()
    taker.end(whole=True)
