"""The connection to a server: each request has a deadline, and failures for now differ from refusals."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import httpx
import msgspec
from msgspec import Struct

from muniment import __version__
from muniment.clock import monotonic
from muniment.errors import (
    MunimentError,
    RefusedError,
    ServerLostError,
    SessionEndedError,
    TooLargeError,
)
from muniment.model.mask import redact
from muniment.remote.credentials import ServerAddress

__all__ = ["Retries", "ServerConnection"]

_Answer = TypeVar("_Answer")
_CONNECT_S = 10.0
_DEADLINE_S = 30.0
"""How long an answer may take, beside what it was asked to wait."""
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.2, 10.0
"""Between two tries of a request that fails for now; what is waited is drawn from the upper half of it."""
_MOST_TEXT = 500


class _ErrorText(Struct, frozen=True):
    code: str = ""
    text: str = ""


class _Complaint(Struct, frozen=True):
    """An answer that is an error."""

    error: _ErrorText = _ErrorText()
    ending: str = ""


class ServerConnection:
    """Asks a server."""

    def __init__(self, address: ServerAddress) -> None:
        """Raises UsageError for a file of certificates that cannot be read."""
        self.url = address.url
        self.answered_at = monotonic()
        """When a server answered last (`clock.monotonic`), whatever it said."""
        self._client = httpx.AsyncClient(
            headers={
                "Authorization": f"Bearer {address.token}",
                "Content-Type": "application/json",
                "User-Agent": f"muniment/{__version__}",
            },
            verify=address.certificates() if self.url.startswith("https:") else False,
            timeout=httpx.Timeout(None, connect=_CONNECT_S),
            limits=httpx.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=60),
            follow_redirects=False,
            trust_env=False,
        )

    async def close(self) -> None:
        """Close what is open."""
        await self._client.aclose()

    async def ask(
        self,
        method: str,
        path: str,
        answer: type[_Answer],
        body: Struct | None = None,
        *,
        wait_s: float = 0.0,
        deadline_s: float = _DEADLINE_S,
    ) -> _Answer:
        """The answer to one request.

        Raises ServerLostError for what may work later, another ServerError for what will not, and SessionEndedError.
        """
        content = msgspec.json.encode(body) if body is not None else None
        try:
            async with asyncio.timeout(deadline_s + wait_s):
                response = await self._client.request(method, f"{self.url}{path}", content=content)
        except TimeoutError:
            raise ServerLostError(f"{redact(self.url)} does not answer") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            why = str(error) or type(error).__name__
            raise ServerLostError(f"{redact(self.url)} cannot be reached: {why[:_MOST_TEXT]}") from None
        return self._answer(path, response, answer)

    def _answer(self, path: str, response: httpx.Response, kind: type[_Answer]) -> _Answer:
        if response.status_code < 300:
            try:
                value = msgspec.json.decode(response.content or b"null", type=kind)
            except msgspec.MsgspecError as error:
                # a balancer or a captive portal may say 200
                raise ServerLostError(f"{redact(self.url)} does not answer as a server does: {error}") from None
            self.answered_at = monotonic()
            return value
        raise self._error(path, response)

    def _error(self, path: str, response: httpx.Response) -> MunimentError:
        status, said = response.status_code, _Complaint()
        try:
            said = msgspec.json.decode(response.content, type=_Complaint)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            pass
        code, text = said.error.code, said.error.text or f"HTTP {status}"
        text = " ".join(f"{redact(self.url)}: {text}".split())[:_MOST_TEXT]
        if code and status < 500 and status != 429:
            self.answered_at = monotonic()
        match status, code:
            case 409, "session-ended":
                return SessionEndedError(said.ending or "LAPSED", _epoch_of(path))
            case 404, "not-found" if _epoch_of(path):
                # the tracker was restored from a backup that is older than the session, or than the job
                return SessionEndedError("LAPSED", _epoch_of(path))
            case 413, _:
                return TooLargeError(text)
            # what is no answer of ours comes from something in between
            case ((400 | 401 | 403 | 404 | 405 | 409 | 415 | 422), _) if code:
                return RefusedError(text, code)
        return ServerLostError(text, _retry_after(response))


def _epoch_of(path: str) -> int:
    number = path.removeprefix("/v1/session/").partition("/")[0]
    return int(number) if number.isdigit() else 0


def _retry_after(response: httpx.Response) -> float:
    try:
        return max(0.0, float(response.headers.get("Retry-After", "0")))
    except ValueError:
        return 0.0


class Retries:
    """Asks again what fails for now, for as long as it takes; `failed` gets each failure."""

    def __init__(
        self, failed: Callable[[ServerLostError], None] = lambda _error: None, longest_s: float = _LONGEST_WAIT_S
    ) -> None:
        self._failed, self._longest_s = failed, min(longest_s, _LONGEST_WAIT_S)

    async def until_answered(self, ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """The answer to a request that may be made any number of times. Raises what is more than a failure for now."""
        wait = min(_FIRST_WAIT_S, self._longest_s)
        while True:
            try:
                return await ask()
            except ServerLostError as error:
                self._failed(error)
                # many pipelines that lost one server must not all come back at the same moment
                asked = min(error.retry_s, self._longest_s / 2)
                await asyncio.sleep(asked + random.uniform(wait / 2, wait))
                wait = min(wait * 2, self._longest_s - asked)
