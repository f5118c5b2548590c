"""Survey of a seed list before its first request: the origins and accounts in it, where something secret was given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from muniment.errors import UsageError
from muniment.model.seed import SeedLine, SeedPlace
from muniment.model.url import is_web
from muniment.seeds.read import batches
from muniment.seeds.source import SeedSource

__all__ = ["names_accounts", "web_lines"]

_PIECE = 1 << 20
_LONGEST = 1 << 11
_ACCOUNT = re.compile(rb"[Hh][Tt][Tt][Pp][Ss]?:[\\/]*[^\\/?#\n<>]{0,1000}@")


def names_accounts(source: SeedSource) -> bool:
    """Whether a URL of the list may have an account in it. Raises UsageError when it cannot be read."""
    if source.path is None:
        return False
    if source.kind == "parquet":
        from muniment.seeds.table import names_accounts as in_table  # noqa: PLC0415  (pyarrow: for this format alone)

        return in_table(source.path)
    return _in_text(source.path)


def _in_text(path: Path) -> bool:
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


def web_lines(source: SeedSource) -> Iterator[SeedLine]:
    """The lines of a list that are http or https URLs. Raises UsageError when it cannot be read."""
    for batch in batches(source, SeedPlace()):
        yield from (line for line in batch.lines if is_web(line.url))
