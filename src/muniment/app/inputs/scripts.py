"""The JavaScript of `--custom-js`."""

from __future__ import annotations

from muniment.app.inputs.bounded_file import bounded_text

__all__ = ["read_script"]

_MOST_SCRIPT = 1 << 20


def read_script(file: str) -> str:
    """The text of a file; raises UsageError."""
    return bounded_text(file, f"the file {file} of --custom-js", _MOST_SCRIPT)
