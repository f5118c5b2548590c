"""What a try of a hook counts as: by its last record, its exit code, and how it ended."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from muniment.model.hooks.runs import HookStatus
from muniment.rules.hooks.records import ResultRecord

__all__ = ["RECORDER_ENDED", "Cut", "TryEnd", "judge", "stopped", "was_stopped"]

Cut = Literal["", "timeout", "output-limit", "memory", "stopped", "cannot-run"]
"""Why a try was ended; empty when it ended by itself, or by the end of its page."""
RECORDER_ENDED = "the worker that recorded its requests ended"
"""Why a hook is stopped that has lost its port."""
_SKIPPED = 10
_STOPPED = "stopped"
_BY_OUR_SIGTERM = frozenset({-15, -2, 143, 130})


def stopped(why: str) -> str:
    """The error of a try that says nothing of its hook, which runs again."""
    return f"{_STOPPED}: {why}"


def was_stopped(error: str) -> bool:
    """Whether an error is such a one."""
    return error.startswith(_STOPPED)


class TryEnd(Struct, frozen=True):
    """How a try ended."""

    exit_code: int | None
    cut: Cut
    asked: bool
    """A background hook that was asked to end with its page."""
    changed: bool
    """The plugin's folder has files that are new or changed."""
    text: str = ""
    """More about a cut."""


def judge(record: ResultRecord | None, end: TryEnd) -> tuple[HookStatus, str]:
    """Status and error, which is empty unless it failed."""
    if end.cut not in ("stopped", "cannot-run") and record is not None and record.status != "succeeded":
        if record.status == "failed":
            return "failed", f"record: {record.error or record.output_str or 'it says that it failed'}"
        return record.status, ""
    if not end.cut and (end.exit_code == 0 or (end.asked and end.exit_code in _BY_OUR_SIGTERM)):
        return ("succeeded" if record is not None or end.changed else "noresults"), ""
    if not end.cut and record is None and end.exit_code == _SKIPPED:
        return "skipped", ""
    return "failed", _error(end)


def _error(end: TryEnd) -> str:
    if end.cut:
        return f"{end.cut}: {end.text}"
    code = end.exit_code
    if code is None:
        return "signal: it was killed together with what kept it"
    if code < 0:
        return f"signal: killed by signal {-code}"
    return f"exit: {code}{f': {end.text}' if end.text else ''}"
