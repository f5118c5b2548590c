"""Which pages hooks run for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from muniment.errors import UsageError
from muniment.model.capture import Capture
from muniment.model.link import FoundAs
from muniment.model.page import Claim

__all__ = ["has_hooks", "included", "is_hook_row"]

_NO_PAGES = frozenset({FoundAs.ROBOTS.label, FoundAs.SITEMAP.label})


def has_hooks(claim: Claim, capture: Capture) -> bool:
    """Whether a capture is of a page: complete, 2xx, a start page or a link."""
    return is_hook_row(capture.status, capture.error, claim.depth, capture.found_as)


def is_hook_row(status: int, error: str, depth: int, found_as: str) -> bool:
    """The same of a row of the index."""
    return 200 <= status < 300 and not error and depth >= 0 and found_as not in _NO_PAGES


def included(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Whether a URL is one that hooks run for; without patterns every one is. Raises UsageError."""
    try:
        compiled = [re.compile(pattern) for pattern in patterns]
    except re.error as error:
        raise UsageError(f"--hook-include: {error.pattern!r} is not a pattern: {error}") from None
    return lambda url: not compiled or any(pattern.search(url) for pattern in compiled)
