"""Survey of a seed list before its first request: the origins and accounts in it, where something secret was given."""

from __future__ import annotations

from collections.abc import Iterator

from muniment.model.seed import SeedLine, SeedPlace
from muniment.model.url import is_web
from muniment.seeds.formats import FORMATS
from muniment.seeds.read import batches
from muniment.seeds.source import SeedSource

__all__ = ["names_accounts", "web_lines"]


def names_accounts(source: SeedSource) -> bool:
    """Whether a URL of the list may have an account in it. Raises UsageError when it cannot be read."""
    if source.path is None:
        return False
    return FORMATS[source.kind].names_accounts(source.path)


def web_lines(source: SeedSource) -> Iterator[SeedLine]:
    """The lines of a list that are http or https URLs. Raises UsageError when it cannot be read."""
    for batch in batches(source, SeedPlace()):
        yield from (line for line in batch.lines if is_web(line.url))
