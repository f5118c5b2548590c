"""The error tree: what Muniment raises, and nothing else.

    MunimentError
    ├── UsageError            the command line or the directory asks for something impossible (exit 2)
    │   ├── BusyError         another run holds the directory
    │   ├── ForeignJobError   a job of somebody else
    │   ├── NotFoundError     there is no such job, pipeline or token
    │   ├── PlaceError        lines of a list do not begin where those before them ended
    │   └── PrivateTargetError  a job for addresses that are not public
    ├── ArchiveError          a file of the archive is damaged or cannot be written
    │   └── DiskFullError     no room left; the run is resumable (exit 3)
    ├── TrackerError          the tracker's database cannot be used
    │   └── TrackerLostError  its server is gone; the run is resumable (exit 3)
    ├── ProcessError          a process cannot be launched, or not be stopped
    ├── AbortedError          an operator ended the job, and it may be resumed (exit 3)
    ├── StoppedError          Ctrl-C ended a command that can be given again (exit 3)
    ├── ServerError           a server answers with an error
    │   ├── ServerLostError   no server answers, or none can for now (exit 3)
    │   ├── RefusedError      a server refuses what is asked (exit 2)
    │   ├── TooLargeError     a message is larger than a server takes
    │   ├── LinksLostError    a server lacks links that it had
    │   ├── SessionEndedError a pipeline's session has ended
    │   └── WrongAskError     a pipeline's question comes out of its turn
    └── ProtocolError         a worker and the orchestrator disagree

The network's failures are not exceptions: they are values (`model.failure.Failure`).
"""

from __future__ import annotations

__all__ = [
    "AbortedError",
    "ArchiveError",
    "BusyError",
    "DiskFullError",
    "ForeignJobError",
    "LinksLostError",
    "MunimentError",
    "NotFoundError",
    "PlaceError",
    "PrivateTargetError",
    "ProcessError",
    "ProtocolError",
    "RefusedError",
    "ServerError",
    "ServerLostError",
    "SessionEndedError",
    "StoppedError",
    "TooLargeError",
    "TrackerError",
    "TrackerLostError",
    "UsageError",
    "WrongAskError",
]


class MunimentError(Exception):
    """The base of every error that Muniment raises on purpose; its text is one line for a person."""

    exit_code = 1


class UsageError(MunimentError):
    """The command line or the output directory asks for something impossible."""

    exit_code = 2


class BusyError(UsageError):
    """Another run holds the output directory."""


class ForeignJobError(UsageError):
    """A job was made by somebody else, and is for operators to change."""


class NotFoundError(UsageError):
    """There is no job, pipeline, page or token of that name or number."""


class PlaceError(UsageError):
    """Lines of a list do not begin where those that came before have ended: at `at`."""

    def __init__(self, text: str, at: int) -> None:
        super().__init__(text)
        self.at = at


class PrivateTargetError(UsageError):
    """A job asks for addresses that are not public, which this tracker does not take."""


class ArchiveError(MunimentError):
    """A file of the archive is damaged or cannot be written."""


class DiskFullError(ArchiveError):
    """There is no room left on the disk; what was captured is safe and the run can be resumed."""

    exit_code = 3


class TrackerError(MunimentError):
    """The tracker's database cannot be used."""


class TrackerLostError(TrackerError):
    """The tracker's server cannot be reached; what was captured is safe and the run can be resumed."""

    exit_code = 3


class ProcessError(MunimentError):
    """A process cannot be launched, or does not end."""


class ProtocolError(MunimentError):
    """A worker and the orchestrator sent each other an invalid message."""


class AbortedError(MunimentError):
    """An operator has ended the job of a directory: it goes on when it is resumed."""

    exit_code = 3


class StoppedError(MunimentError):
    """Ctrl-C ended a command that can be given again."""

    exit_code = 3


class ServerError(MunimentError):
    """A server answers with an error."""


class ServerLostError(ServerError):
    """No server answers, or none can for now; what was asked can be asked again."""

    exit_code = 3

    def __init__(self, text: str, retry_s: float = 0.0) -> None:
        super().__init__(text)
        self.retry_s = retry_s
        """Seconds after which it makes sense to ask again, as the server said; 0 for nothing said."""


class RefusedError(ServerError):
    """A server refuses what is asked: a token, a protocol, or a request that makes no sense."""

    exit_code = 2

    def __init__(self, text: str, code: str) -> None:
        super().__init__(text)
        self.code = code
        """For programs, as `token`."""


class TooLargeError(ServerError):
    """A message is larger than a server takes."""


class LinksLostError(ServerError):
    """A server does not take pages in, for it lacks URLs that they lead to: its tracker is older than it was."""


class SessionEndedError(ServerError):
    """A pipeline's session has ended: what it held was given back, and the pipeline is to greet again."""

    exit_code = 2

    def __init__(self, ending: str, epoch: int = 0) -> None:
        which = f"session {epoch}" if epoch else "the session"
        super().__init__(f"{which} has ended ({ending}): what it held was given back; greet again")
        self.ending = ending
        """A `model.pipeline.SessionEnding`."""


class WrongAskError(ServerError):
    """The number of a claim is neither that of the last one, which is `ask`, nor the next."""

    def __init__(self, text: str, ask: int = 0) -> None:
        super().__init__(text)
        self.ask = ask
