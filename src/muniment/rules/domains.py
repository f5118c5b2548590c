"""Domains: what a host name belongs to, by the public suffix list. They group reports; politeness is per host."""

from __future__ import annotations

from functools import cache, lru_cache

from publicsuffixlist import PublicSuffixList

__all__ = ["is_public_suffix", "registered_domain"]


@cache
def _suffixes() -> PublicSuffixList:
    # read when it is asked for first: most crawls never need the list
    return PublicSuffixList()


def is_public_suffix(domain: str) -> bool:
    """Whether strangers register names below a domain (`co.uk`, `github.io`): a cookie for it would go to them all."""
    return bool(_suffixes().is_public(domain))


@lru_cache(maxsize=10_000)
def registered_domain(host: str) -> str:
    """The public suffix and one label more; an address, a name without dots and a public suffix are their own."""
    if host.startswith("[") or host.replace(".", "").isdigit():
        return host
    return _suffixes().privatesuffix(host) or host
