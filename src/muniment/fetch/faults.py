"""Faults of the network: the one place that turns exceptions of libraries into failures (`model.failure.Failure`)."""

from __future__ import annotations

import errno
import os
import re
import ssl

from muniment.fetch.routes import any_route
from muniment.model.failure import NO_ROOM, NO_ROUTE, Failure, FailureCode

__all__ = ["connect_failure", "disk_failure"]

_ERRNO_CODES: dict[int, FailureCode] = {
    errno.ECONNREFUSED: "refused",
    errno.ECONNRESET: "reset",
    errno.ECONNABORTED: "reset",
    errno.EPIPE: "reset",
    errno.ETIMEDOUT: "timeout-connect",
    # Ours, not the host's: the worker must not hold it against the host.
    errno.EMFILE: "limit",
    errno.ENFILE: "limit",
    errno.ENOBUFS: "limit",
    errno.ENOMEM: "limit",
}

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def connect_failure(error: Exception) -> Failure:
    """The failure that stopped a connection from being opened."""
    if isinstance(error, ssl.CertificateError):
        return Failure("tls", f"certificate: {error.verify_message or error.reason}")
    if isinstance(error, ssl.SSLError):
        return Failure("tls", error.reason or str(error))
    if isinstance(error, TimeoutError) and not getattr(error, "errno", None):
        return Failure("timeout-connect", "no connection in time")
    if isinstance(error, UnicodeError):
        return Failure("tls", "the host name cannot be put into a certificate check")
    if isinstance(error, OSError):
        number = error.errno or _most_telling(str(error))
        code = _ERRNO_CODES.get(number, "reset" if isinstance(error, ConnectionError) else "unreachable")
        text = error.strerror or (os.strerror(number) if number else str(error)) or code
        return Failure(code, f"{_where(code, number)}{text}")
    return Failure("unreachable", str(error) or type(error).__name__)


def _where(code: FailureCode, number: int) -> str:
    """The prefix of a failure that this machine caused, not the host."""
    if code == "limit":
        return "this machine: "
    return NO_ROUTE if number == errno.ENETUNREACH and not any_route() else ""


def _most_telling(text: str) -> int:
    """The error number that says most, when several addresses failed in different ways; 0 when there is none.

    aiohappyeyeballs then gives the numbers only within its text. An address that answered, if only to refuse, shows
    more than one that this machine cannot reach at all, as IPv6 ones often.
    """
    numbers = [int(number) for number in re.findall(r"\[Errno (\d+)\]", text)]
    known = [number for number in _ERRNO_CODES if number in numbers]
    return known[0] if known else numbers[0] if numbers else 0


def disk_failure(error: OSError) -> Failure:
    """A body could not be kept: its temporary file could not be opened, or written."""
    if error.errno in _FULL:
        return NO_ROOM
    if _ERRNO_CODES.get(error.errno or 0) == "limit":
        return connect_failure(error)
    return Failure("disk", error.strerror or str(error))
