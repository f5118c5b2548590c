"""Errors of PostgreSQL: the one place that turns them into errors of Muniment (codes: appendix of its manual)."""

from __future__ import annotations

from psycopg import Error, InterfaceError, OperationalError
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from muniment.errors import MunimentError, TrackerError, TrackerLostError, UsageError
from muniment.tracker.db.sqlite_errors import first_line

__all__ = ["ServerError", "is_gone", "is_held_up", "is_undone", "opening_fault", "server_fault"]

ServerError = (SQLAlchemyError, Error)
"""What the driver raises, by itself or through SQLAlchemy."""

_UNDONE = frozenset({"40001", "40P01"})
"""A serialisation failure, a deadlock."""
_GOING = frozenset({"57P01", "57P02", "57P03", "57P05", "25P03", "53300"})
"""The server shuts down, crashed, starts; the session was ended, for it was idle; there are too many connections."""
_HELD_UP = "55P03"
"""A lock was waited for too long."""
_NO_ROOM = frozenset({"53100", "53200"})
_NO_RIGHTS = frozenset({"28000", "28P01", "3D000", "42501", "3F000"})
"""A wrong name or password, no such database, not allowed to use it."""


def is_gone(error: BaseException) -> bool:
    """Whether the server or the way to it is away: the same may succeed over another connection."""
    code, cause = _code(error), _cause(error)
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    return code in _GOING or code[:2] == "08" or (isinstance(cause, OperationalError | InterfaceError) and not code)


def is_undone(error: BaseException) -> bool:
    """Whether the server rolled back a transaction for the sake of another one."""
    return _code(error) in _UNDONE


def is_held_up(error: BaseException) -> bool:
    """Whether another connection held for too long what a statement needs."""
    return _code(error) == _HELD_UP


def server_fault(error: BaseException, name: str) -> MunimentError:
    """The error that stopped a tracker in use."""
    if is_gone(error):
        return TrackerLostError(
            f"the tracker {name} cannot be reached ({first_line(error)}): when it is back, give the same command again"
        )
    if _code(error) in _NO_ROOM:
        return TrackerLostError(
            f"the server of the tracker {name} has no room left ({first_line(error)}): make some, then give the same "
            "command again"
        )
    return TrackerError(f"the tracker {name} failed: {first_line(error)}")


def opening_fault(error: BaseException, name: str) -> MunimentError:
    """The error of opening a tracker; UsageError if it can never be opened."""
    text = first_line(error)
    # what a server says of who may not connect has no code here: it comes while there is no connection yet
    if _code(error) in _NO_RIGHTS or any(word in text for word in _REFUSALS):
        return UsageError(f"the tracker {name} cannot be used: {text}")
    if is_gone(error):
        return TrackerLostError(f"the tracker {name} cannot be reached: {text}")
    return TrackerError(f"the tracker {name} cannot be used: {text}")


_REFUSALS = ("FATAL:  password", "does not exist", "no password supplied", "no pg_hba.conf entry", "permission denied")


def _cause(error: BaseException) -> BaseException:
    return getattr(error, "orig", None) or error


def _code(error: BaseException) -> str:
    return getattr(_cause(error), "sqlstate", None) or ""
