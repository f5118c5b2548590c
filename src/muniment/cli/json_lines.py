"""Lines of JSON on standard error: what a command with `--json` says beside its answer, whoever says it."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress

import msgspec

from muniment.cli.streams import OURS, Complaints
from muniment.model.names import told_name

__all__ = ["JsonComplaints", "json_line"]

_TRACEBACK = "Traceback (most recent call last):"


class JsonComplaints(Complaints):
    """Standard error of a command with `--json`: each line is an object; of a traceback, only the last line."""

    _rest = ""
    _traced = False

    @classmethod
    def take_over(cls) -> None:
        """Take over standard error, the log and the errors of threads, and write them as lines of JSON."""
        super().take_over()
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_Formatter())
        logging.basicConfig(handlers=[handler])
        logging.captureWarnings(capture=True)
        threading.excepthook = lambda of: _tell_unexpected(of.exc_value)
        sys.unraisablehook = lambda of: _tell_unexpected(of.exc_value)

    def write(self, text: str, /) -> int:
        """Write the lines that are whole."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in self._told(lines):
            super().write(f"{line}\n")
        return len(text)

    def end_line(self) -> None:
        """Write what is left, as the last thing."""
        if self._rest:
            self.write("\n")
        self.flush()

    def _told(self, lines: Iterable[str]) -> Iterable[str]:
        for line in lines:
            if line == _TRACEBACK:
                self._traced = True
            elif line.strip() and not (self._traced and line.startswith(" ")):
                yield self._as_json(line)
                self._traced = False

    def _as_json(self, line: str) -> str:
        if line.startswith("{"):
            with suppress(msgspec.DecodeError):
                msgspec.json.decode(line)
                return line
        if line.startswith(OURS):
            return json_line("error", line.removeprefix(OURS))
        return json_line("error" if self._traced else "warning", line)


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += f" ({type(record.exc_info[1]).__name__}: {record.exc_info[1]})"
        if record.levelno >= logging.WARNING:
            return json_line("error" if record.levelno >= logging.ERROR else "warning", text)
        return json_line(record.levelname.lower(), f"{record.name}: {text}")


def _tell_unexpected(error: BaseException | None) -> None:
    print(json_line("error", f"internal error: {type(error).__name__}: {error}"), file=sys.stderr)


def json_line(kind: str, text: str) -> str:
    """An object with one text: what kind it is, and what is said."""
    return msgspec.json.encode({kind: " ".join(told_name(text).split())}).decode()
