"""Exchanges from what a connection, a reader and a body have."""

from __future__ import annotations

from muniment.clock import monotonic
from muniment.fetch.body_spool import EMPTY_BODY, BodyBuilder
from muniment.fetch.connection import Connection
from muniment.fetch.faults import disk_failure
from muniment.fetch.wire import ResponseReader
from muniment.http.head import Head
from muniment.model.exchange import Body, Exchange
from muniment.model.failure import Failure

__all__ = ["answered", "failed", "finished"]

Asked = tuple[str, bytes, int]
"""What went out: the URL, the request without a large body, and when (Unix µs)."""


def finished(
    connection: Connection,
    builder: BodyBuilder,
    reader: ResponseReader,
    asked: Asked,
    method: str = "GET",
    request_body: Body | None = None,
) -> Exchange:
    """The exchange that a reader has read to its end."""
    failure = reader.failure
    head = reader.head
    body: Body = EMPTY_BODY
    if head is not None or connection.disk_error is not None:
        kept = _keep(connection, builder)
        if isinstance(kept, Failure):
            head, failure = None, kept
        else:
            body = kept
    return answered(connection, head, body, (reader.truncated if head else "", failure), asked, method, request_body)


def answered(
    connection: Connection,
    head: Head | None,
    body: Body,
    end: tuple[str, Failure | None],
    asked: Asked,
    method: str = "GET",
    request_body: Body | None = None,
) -> Exchange:
    """The exchange of a header block, or of none, and what ended it."""
    url, request, sent = asked
    sent_at, answered_at = connection.sent_at, connection.answered_at
    return Exchange(
        url,
        request,
        head.raw if head else b"",
        body,
        head.status if head else 0,
        head.headers if head else (),
        connection.ip,
        connection.tls,
        connection.cipher,
        sent,
        int((answered_at - sent_at) * 1000 + 0.5) if answered_at else 0,
        int((connection.active_at - sent_at) * 1000 + 0.5),
        end[0],
        end[1],
        method,
        request_body,
    )


def _keep(connection: Connection, builder: BodyBuilder) -> Body | Failure:
    error = connection.disk_error
    if error is None:
        try:
            return builder.finish()
        except OSError as late:
            error = late
    builder.discard()
    return disk_failure(error)


def failed(url: str, failure: Failure, started: tuple[int, float], method: str = "GET") -> Exchange:
    """The exchange of a URL for which no request went out, since `started` (Unix µs, monotonic)."""
    return Exchange(
        url=url,
        request=b"",
        head=b"",
        body=EMPTY_BODY,
        status=0,
        headers=(),
        ip="",
        tls="",
        cipher="",
        started_at=started[0],
        ttfb_ms=0,
        duration_ms=int((monotonic() - started[1]) * 1000 + 0.5),
        truncated="",
        failure=failure,
        method=method,
    )
