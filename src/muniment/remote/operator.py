"""The requests of an operator: each has a deadline, and what can be asked again is, until a server answers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYetError
from threading import Thread
from types import TracebackType
from typing import TypeVar

import httpx
import msgspec
from msgspec import Struct

from muniment.clock import monotonic
from muniment.errors import NotFoundError, PlaceError, ServerLostError, UsageError
from muniment.remote.credentials import ServerAddress

__all__ = ["ServerClient"]

_Answer = TypeVar("_Answer")
_PATIENCE_S = 7.0
"""How long a server may be away before a command gives up: with its start, a command takes 10 seconds then."""
_CONNECT_S = 2.5
_SILENCE_S = 4.0
"""How long an answer may take before the server is asked whether it is alive."""
_ALIVE_S = 1.5
_PAUSE_S = 0.3
_MOST_TEXT = 500
_ASK_LATER = {429, 502, 503, 504}


class _Detail(Struct):
    code: str
    text: str


class _Refusal(Struct):
    error: _Detail
    at: int = 0


class ServerClient:
    """Asks one server."""

    def __init__(self, address: ServerAddress) -> None:
        self._url = address.url
        # a proxy or a netrc file of the environment would get, or replace, the token
        self._http = httpx.Client(
            base_url=address.url,
            verify=address.certificates() if address.url.startswith("https:") else False,
            trust_env=False,
            headers={"Authorization": f"Bearer {address.token}", "Accept": "application/json"},
            timeout=httpx.Timeout(None, connect=_CONNECT_S),
        )

    def __enter__(self) -> ServerClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.close()

    def get(self, path: str, kind: type[_Answer], **query: str | int) -> _Answer:
        """The answer of a route that only reads."""
        given = {name: value for name, value in query.items() if value not in ("", 0)}
        return self._asked("GET", path, kind, query=given)

    def send(
        self,
        method: str,
        path: str,
        kind: type[_Answer],
        body: object = None,
        headers: Mapping[str, str] | None = None,
        *,
        again: bool = True,
    ) -> _Answer:
        """The answer of a route that changes something; with `again`, it does no harm to ask twice.

        Raises UsageError with the words of a server that refuses, and ServerLostError when none answers.
        """
        return self._asked(method, path, kind, body=body, headers=headers, again=again)

    def _asked(
        self,
        method: str,
        path: str,
        kind: type[_Answer],
        *,
        query: Mapping[str, str | int] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        again: bool = True,
    ) -> _Answer:
        given = dict(headers or {})
        content = None
        if body is not None:
            content = msgspec.json.encode(body)
            given["Content-Type"] = "application/json"
        request = self._http.build_request(method, path, params=dict(query or {}), content=content, headers=given)
        return self._read(self._patiently(request, again=again), kind)

    def _patiently(self, request: httpx.Request, *, again: bool) -> httpx.Response:
        over_at = monotonic() + _PATIENCE_S
        while True:
            pause = _PAUSE_S
            try:
                answer = self._answered(request)
                if answer.status_code not in _ASK_LATER:
                    return answer
                why, pause = _error_text(answer), max(_PAUSE_S, _retry_after(answer))
            except httpx.TransportError as error:
                why = str(error) or type(error).__name__
                if not again and not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
                    raise ServerLostError(
                        f"the answer of the server {self._url} was lost, so that the change may have been made: look "
                        f"before you give the command again ({why[:_MOST_TEXT]})"
                    ) from None
            if monotonic() + pause > over_at:
                raise self._lost(why)
            time.sleep(pause)

    def _answered(self, request: httpx.Request) -> httpx.Response:
        """The answer, waited for as long as the server is alive: some changes take a while."""
        asked: Future[httpx.Response] = Future()
        Thread(target=_carry_out, args=(self._http, request, asked), daemon=True).start()
        while True:
            try:
                return asked.result(_SILENCE_S)
            except NotYetError:
                if not asked.done() and not self._is_alive():
                    raise self._lost("it accepts connections and says nothing") from None

    def _is_alive(self) -> bool:
        try:
            return self._http.get("/healthz", timeout=_ALIVE_S).is_success
        except httpx.TransportError:
            return False

    def _lost(self, why: str) -> ServerLostError:
        return ServerLostError(f"the server {self._url} does not answer: {why[:_MOST_TEXT]}; give the command again")

    def _read(self, answer: httpx.Response, kind: type[_Answer]) -> _Answer:
        if not answer.is_success:
            raise _refusal(answer, self._url)
        if kind is type(None):
            return None
        try:
            return msgspec.json.decode(answer.content, type=kind)
        except msgspec.DecodeError:
            raise UsageError(f"{self._url} does not answer as a Muniment server; check the URL") from None


def _carry_out(http: httpx.Client, request: httpx.Request, asked: Future[httpx.Response]) -> None:
    try:
        asked.set_result(http.send(request))
    except BaseException as error:
        asked.set_exception(error)


def _refusal(answer: httpx.Response, url: str) -> Exception:
    """The error of an answer, in the words of the server."""
    try:
        refused = msgspec.json.decode(answer.content, type=_Refusal)
    except msgspec.DecodeError:
        return UsageError(f"{url} does not answer as a Muniment server ({answer.status_code}); check the URL")
    text = " ".join(refused.error.text.split())[:_MOST_TEXT]
    if refused.error.code == "place":
        return PlaceError(text, refused.at)
    if refused.error.code == "not-found":
        return NotFoundError(text)
    return UsageError(text)


def _error_text(answer: httpx.Response) -> str:
    try:
        return msgspec.json.decode(answer.content, type=_Refusal).error.text
    except msgspec.DecodeError:
        return f"status {answer.status_code}"


def _retry_after(answer: httpx.Response) -> float:
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else 0.0
