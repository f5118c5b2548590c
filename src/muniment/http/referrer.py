"""What `Referer` says: the page that led to another, as browsers name it by their default policy.

That policy is strict-origin-when-cross-origin (Referrer Policy §3.8 and §8.3): the whole URL to its own origin, the
origin alone to others, nothing from https to http.
"""

from __future__ import annotations

from muniment.model.link import FoundAs
from muniment.model.url import is_web, origin_of, without_account

__all__ = ["comes_from_nowhere", "referer"]

_MOST = 4096
_FROM_NOWHERE = frozenset({FoundAs.START, FoundAs.ROBOTS, FoundAs.SITEMAP, FoundAs.SITEMAP_URL})


def comes_from_nowhere(found_as: int) -> bool:
    """Whether nobody who browses would be led to a URL that was found so: it was typed, or a list for robots has it."""
    return found_as in _FROM_NOWHERE


def referer(url: str, referrer: str) -> str:
    """The value for a request of `url` that a document at `referrer` led to, both in normal form; empty for none."""
    if not is_web(referrer):
        return ""
    page = without_account(referrer.partition("#")[0])
    origin = origin_of(page)
    # their paths begin with a slash, so that no longer name or port begins with an origin's
    if url.startswith(f"{origin}/") and len(page) <= _MOST:
        return page
    if origin.startswith("https:") and not url.startswith("https:"):
        return ""
    return f"{origin}/"
