"""The log of a server: lines of JSON, all that is said about a request with one id."""

from __future__ import annotations

import logging
import re
import secrets
from contextvars import ContextVar

import msgspec

from muniment.clock import iso_ms, now_ms

__all__ = ["REQUEST_ID", "id_of_request", "log_request", "write_as_json"]

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that is under way."""
_log = logging.getLogger(__name__)
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def id_of_request(given: str | None) -> str:
    """The id that a balancer gave a request, or a new one."""
    return given if given is not None and _ID.fullmatch(given) else secrets.token_hex(8)


def log_request(route: str, path: str, who: str, address: str, status: int, seconds: float) -> None:
    """Log an answered request, without its query, headers and body."""
    if _log.isEnabledFor(logging.INFO):
        told = {"route": route, "path": path, "who": who, "address": address, "status": status}
        _log.info("answered", extra={"told": {**told, "ms": round(seconds * 1000, 1)}})


def write_as_json() -> None:
    """Have the handlers of this process write lines of JSON."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_JsonLines())


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        told = {"ts": iso_ms(now_ms()), "level": record.levelname.lower(), "logger": record.name}
        if request := REQUEST_ID.get():
            told["request"] = request
        told["text"] = record.getMessage()
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode({**told, **getattr(record, "told", {})}).decode()
