"""Handing a request on to the rewriter, and its answer back without what is not for a browser."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator

from starlette.responses import PlainTextResponse, Response, StreamingResponse

from muniment.replay.security_headers import kept_headers

__all__ = ["forwarded"]

_PASSED = (
    "accept", "accept-language", "accept-encoding", "host", "range", "user-agent", "x-requested-with", "sec-fetch-mode",
    "sec-fetch-dest",
)  # fmt: skip
_PATIENCE_S = 60
_PIECE = 64 << 10


def forwarded(
    rewriter: tuple[str, int],
    method: str,
    target: str,
    given: dict[str, str],
    policy: dict[str, str],
    about: dict[str, str],
    mend: Callable[[Iterator[bytes]], Iterator[bytes]] | None = None,
) -> Response:
    """The rewriter's answer to a request, with our policy and what is known of the capture; pages go through `mend`."""
    connection = http.client.HTTPConnection(*rewriter, timeout=_PATIENCE_S)
    passed = {name: given[name] for name in _PASSED if name in given}
    try:
        connection.request(method if method in {"GET", "HEAD"} else "GET", _ascii(target), headers=passed)
        answer = connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        return PlainTextResponse(f"The rewriter does not answer: {error}\n", 502, policy)
    pieces, own = _pieces(connection, answer), _own(answer, about)
    if mend is not None and answer.getheader("Content-Type", "").startswith("text/html"):
        pieces, own = mend(pieces), [(name, value) for name, value in own if name.lower() != "content-length"]
    response = StreamingResponse(pieces, answer.status)
    response.raw_headers = [
        (name.lower().encode("latin-1"), value.encode("latin-1", "replace"))
        for name, value in (*own, *policy.items(), *about.items())
    ]
    return response


def _own(answer: http.client.HTTPResponse, about: dict[str, str]) -> list[tuple[str, str]]:
    replaced = {name.lower() for name in about}
    return [(name, value) for name, value in kept_headers(answer.getheaders()) if name.lower() not in replaced]


def _pieces(connection: http.client.HTTPConnection, answer: http.client.HTTPResponse) -> Iterator[bytes]:
    try:
        while piece := answer.read1(_PIECE):
            yield piece
    except (OSError, http.client.HTTPException):
        return
    finally:
        connection.close()


def _ascii(target: str) -> str:
    """The target of a request line: no spaces, no controls, nothing outside ASCII."""
    return "".join(one if "!" <= one <= "~" else "".join(f"%{byte:02X}" for byte in one.encode()) for one in target)
