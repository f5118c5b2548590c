"""The error tree: what Muniment raises, and nothing else.

    MunimentError
    ├── UsageError            the command line or the directory asks for something impossible (exit 2)
    │   ├── BusyError         another run holds the directory
    │   └── NotYetError       an option that a later version brings
    ├── ArchiveError          a file of the archive is damaged or cannot be written
    │   └── DiskFullError     no room left; the run is resumable (exit 3)
    ├── TrackerError          the tracker's database cannot be used
    ├── StoppedError          Ctrl-C ended a command that can be given again (exit 3)
    └── ProtocolError         a worker and the orchestrator disagree

The network's failures are not exceptions: they are values (`model.failure.Failure`).
"""

from __future__ import annotations

import errno

__all__ = [
    "NO_MEMORY",
    "ArchiveError",
    "BusyError",
    "DiskFullError",
    "MunimentError",
    "NotYetError",
    "ProtocolError",
    "StoppedError",
    "TrackerError",
    "UsageError",
    "advice",
]

_LOOK = "; look after the disk, then give the same command again"
_RAISE = "; raise the limit (ulimit -n), then give the same command again"
_ADVICE = {errno.EIO: _LOOK, errno.EROFS: _LOOK, errno.EMFILE: _RAISE, errno.ENFILE: _RAISE}


NO_MEMORY = "no more memory; give the same command again, with a smaller --workers or --inflight"
"""What a MemoryError means for a person."""


def advice(number: int | None) -> str:
    """What to do about an error of the operating system, by its number: the end of a line, or nothing."""
    return _ADVICE.get(number or 0, "")


class MunimentError(Exception):
    """The base of every error that Muniment raises on purpose; its text is one line for a person."""

    exit_code = 1


class UsageError(MunimentError):
    """The command line or the output directory asks for something impossible."""

    exit_code = 2


class BusyError(UsageError):
    """Another run holds the output directory."""


class NotYetError(UsageError):
    """An option of the contract that this version does not carry out yet."""


class ArchiveError(MunimentError):
    """A file of the archive is damaged or cannot be written."""


class DiskFullError(ArchiveError):
    """There is no room left on the disk; what was captured is safe and the run can be resumed."""

    exit_code = 3


class TrackerError(MunimentError):
    """The tracker's database cannot be used."""


class ProtocolError(MunimentError):
    """A worker and the orchestrator disagree about what was said between them."""


class StoppedError(MunimentError):
    """Ctrl-C ended a command that can be given again."""

    exit_code = 3
