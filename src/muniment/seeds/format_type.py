"""A format of seed lists: what its files are called, what counts in them, and how they are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Struct

from muniment.errors import UsageError
from muniment.extract.seed_lines import Parsed
from muniment.model.seed import SeedPlace

__all__ = ["Numbered", "SeedFormat", "text_names_accounts"]

Numbered = tuple[SeedPlace, Parsed]
"""The place after a line, and what the line says."""

_PIECE = 1 << 20
_LONGEST = 1 << 11
_ACCOUNT = re.compile(rb"[Hh][Tt][Tt][Pp][Ss]?:[\\/]*[^\\/?#\n<>]{0,1000}@")


def text_names_accounts(path: Path) -> bool:
    """Whether a URL of a text may have an account in it. Raises UsageError when it cannot be read."""
    held = b""
    try:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                if _ACCOUNT.search(held + piece):
                    return True
                held = piece[-_LONGEST:]
    except OSError as error:
        raise UsageError(f"the list {path} cannot be read: {error.strerror}") from None
    return False


class SeedFormat(Struct, frozen=True):
    """One format; each has a module with its `FORMAT`, and a line in `formats`."""

    name: str
    """What `--from` calls it."""
    about: str
    """What counts in a list of it, for the documentation (Markdown)."""
    read: Callable[[Path, SeedPlace], Iterable[Numbered]]
    """The lines after a place, in order. Raises UsageError for a file that is not of this format."""
    suffixes: tuple[str, ...] = ()
    """How the names of its files end, in lower case and without `.gz`."""
    also: str = ""
    """What else is read as this format, for the documentation."""
    is_text: bool = False
    """Whether a list of it may be packed or in UTF-16; it is then kept as UTF-8 first."""
    names_accounts: Callable[[Path], bool] = text_names_accounts
    """Whether a URL of a list may have an account in it. Raises UsageError when it cannot be read."""
