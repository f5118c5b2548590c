"""Domains: what a host name belongs to, by the public suffix list. They group reports; politeness is per host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache, lru_cache

from publicsuffixlist import PublicSuffixList

from muniment.model.failure import Trouble

__all__ = ["is_public_suffix", "registered_domain", "troubles_of"]

_DEAD = frozenset({"dns", "refused", "unreachable", "timeout-connect", "dead-host"})
_NO_HOST = "scheme"
"""The code of a URL that no host is asked for."""
_NAMES = 3
"""Hosts of a domain that are named."""


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


def troubles_of(failed: Iterable[tuple[str, str, int]]) -> tuple[Trouble, ...]:
    """Hosts that never answered, as (host, code, rows), by domain; those with most hosts first."""
    by_domain: dict[str, dict[str, Counter[str]]] = {}
    for host, code, rows in failed:
        if code == _NO_HOST:
            continue
        hosts = by_domain.setdefault(registered_domain(host), {})
        hosts.setdefault(host, Counter())[code] += rows
    troubles = [_trouble(domain, hosts) for domain, hosts in by_domain.items()]
    return tuple(sorted(troubles, key=lambda one: (-one.hosts, -one.rows, one.domain)))


def _trouble(domain: str, hosts: dict[str, Counter[str]]) -> Trouble:
    errors: Counter[str] = Counter()
    for counts in hosts.values():
        errors += counts
    return Trouble(
        domain=domain,
        hosts=len(hosts),
        given_up=sum(counts.keys() <= _DEAD for counts in hosts.values()),
        rows=errors.total(),
        errors=tuple(errors.most_common()),
        names=tuple(sorted(hosts)[:_NAMES]),
    )
