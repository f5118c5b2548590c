"""Names of files as text: what of them is no UTF-8, and how it is told."""

from __future__ import annotations

__all__ = ["is_text", "no_text", "told_name"]


def is_text(name: str) -> bool:
    """Whether a name of the system is UTF-8 throughout, so that every file and every database takes it."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def told_name(text: str) -> str:
    r"""Text with names of the system, for people: a byte that is no UTF-8 is told as `\xff`."""
    return text if is_text(text) else text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def no_text(name: str) -> str:
    """Why a name of the system cannot be taken, and what to do."""
    return f"'{told_name(name)}' has bytes that are not UTF-8; give another name, or a link with another name"
