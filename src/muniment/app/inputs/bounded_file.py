"""Files that an option names, and that must not be large."""

from __future__ import annotations

from pathlib import Path

from muniment.errors import UsageError

__all__ = ["bounded_bytes", "bounded_text"]


def bounded_bytes(file: str, what: str, most: int, remedy: str = "") -> bytes:
    """The content of a file of at most so many bytes; raises UsageError, which names the file as `what`."""
    try:
        with Path(file).open("rb") as stream:
            raw = stream.read(most + 1)
    except OSError as error:
        raise UsageError(f"{what} cannot be read: {error.strerror}") from None
    if len(raw) > most:
        raise UsageError(f"{what} is larger than {most} bytes{remedy}")
    return raw


def bounded_text(file: str, what: str, most: int, remedy: str = "") -> str:
    """The same as UTF-8 text."""
    try:
        return bounded_bytes(file, what, most, remedy).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{what} cannot be read: it is not UTF-8 text") from None
