"""The three streams of a command line: all of them open, and no message ends what it is about.

A full disk or a reader that has gone never ends a crawl because something was to be said of it.
"""

from __future__ import annotations

import io
import os
import select
import sys
from collections.abc import Sequence
from contextlib import suppress

__all__ = [
    "OURS",
    "Complaints",
    "end_streams",
    "open_streams",
    "reader_has_gone",
    "start_log",
    "wants_json",
]

OURS = "muniment: "
"""The prefix of errors that are written as text."""


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for JSON, also one that cannot be understood."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def open_streams() -> None:
    """Open the standard streams that are closed: a file with one of their numbers would get their output.

    Names of files are written as they are; where letters are missing, what has none of them is replaced.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123  (for as long as it runs)
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    if isinstance(sys.stdout, io.TextIOWrapper):
        whole = sys.stdout.encoding.lower().replace("-", "") == "utf8"
        sys.stdout.reconfigure(errors="surrogateescape" if whole else "replace")


def end_streams() -> None:
    """Write what is left."""
    if isinstance(sys.stderr, Complaints):
        sys.stderr.end_line()
    with suppress(OSError, ValueError):
        sys.stdout.flush()  # or nobody reads it any more


def reader_has_gone() -> bool:
    """Whether nobody reads standard output any more."""
    asked = select.poll()
    asked.register(1, 0)
    return any(event & select.POLLERR for _, event in asked.poll(0))


def start_log(level: str) -> None:
    """Log what has a level, or more, to standard error."""
    import logging  # noqa: PLC0415  (help and complaints need none of it)

    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger().setLevel(level.upper())
    # a Ctrl-C in the middle of a statement, which is told in one line, would be a traceback there
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)


class Complaints(io.TextIOWrapper):
    """Standard error: what cannot be written there is lost, and nothing else."""

    @classmethod
    def take_over(cls) -> None:
        """Replace standard error by this."""
        if isinstance(sys.stderr, io.TextIOWrapper):
            # made anew: what the old one found out about its file may be that of another one
            raw = open(2, "wb", closefd=False)  # noqa: SIM115
            sys.stderr = cls(raw, sys.stderr.encoding, "backslashreplace", line_buffering=True)

    def end_line(self) -> None:
        """Write what is left, as the last thing."""
        self.flush()

    def write(self, text: str, /) -> int:
        """Write, if that can be done."""
        with suppress(OSError, ValueError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, if that can be done."""
        with suppress(OSError, ValueError):
            super().flush()
