"""Names of files and directories that a command line gives."""

from __future__ import annotations

from muniment.errors import UsageError

__all__ = ["parse_name", "parse_place"]

_MOST_NAME = 100


def parse_place(text: str) -> str:
    """A path; the empty text would be the current directory, or nothing at all."""
    if not text:
        raise UsageError("the name is empty (an unset variable in the command?)")
    return text


def parse_name(text: str) -> str:
    """What is one name within a directory, or the beginning of one."""
    if not text or text[0] == "." or "/" in text or not text.isprintable() or len(text.encode()) > _MOST_NAME:
        raise UsageError(
            f"{text!r} is not a file name: give 1 to {_MOST_NAME} bytes without /, not beginning with a dot"
        )
    return text
