"""The JavaScript of `--custom-js`."""

from __future__ import annotations

from pathlib import Path

from muniment.errors import UsageError

__all__ = ["read_script"]

_MOST_SCRIPT = 1 << 20


def read_script(file: str) -> str:
    """The text of a file; raises UsageError."""
    try:
        with Path(file).open("rb") as stream:
            raw = stream.read(_MOST_SCRIPT + 1)
        text = raw.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(f"the file {file} of --custom-js cannot be read: {why}") from None
    if len(raw) > _MOST_SCRIPT:
        raise UsageError(f"the file {file} of --custom-js is larger than {_MOST_SCRIPT} bytes")
    return text
