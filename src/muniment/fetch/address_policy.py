"""The address policy: the class of an address, and whether it may be reached; pages cannot reach private ones."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Literal

from muniment.model.failure import Failure

__all__ = ["AddressClass", "address_class", "permitted"]


AddressClass = Literal["public", "loopback", "link-local", "private", "reserved"]

_V4: dict[str, AddressClass] = {
    "0.0.0.0/8": "reserved",
    "10.0.0.0/8": "private",
    "100.64.0.0/10": "reserved",
    "127.0.0.0/8": "loopback",
    "169.254.0.0/16": "link-local",
    "172.16.0.0/12": "private",
    "192.0.0.0/24": "reserved",
    "192.0.0.9/32": "public",
    "192.0.0.10/32": "public",
    "192.0.2.0/24": "reserved",
    "192.88.99.0/24": "reserved",
    "192.168.0.0/16": "private",
    "198.18.0.0/15": "reserved",
    "198.51.100.0/24": "reserved",
    "203.0.113.0/24": "reserved",
    "224.0.0.0/4": "reserved",
    "240.0.0.0/4": "reserved",
    "0.0.0.0/0": "public",
}
"""IANA's IPv4 special-purpose registry of 2025-10-09 (RFC 6890), and multicast; other addresses are public."""
_V6: dict[str, AddressClass] = {
    "::/0": "reserved",
    "::1/128": "loopback",
    "2000::/3": "public",
    "2001::/23": "reserved",
    "2001:1::1/128": "public",
    "2001:1::2/128": "public",
    "2001:1::3/128": "public",
    "2001:3::/32": "public",
    "2001:4:112::/48": "public",
    "2001:20::/28": "public",
    "2001:30::/28": "public",
    "2001:db8::/32": "reserved",
    "2002::/16": "reserved",
    "3fff::/20": "reserved",
    "fc00::/7": "private",
    "fe80::/10": "link-local",
    "fec0::/10": "private",
}
"""That of IPv6; public addresses are given out of 2000::/3 alone (RFC 4291 §2.4), fec0::/10 were site-local ones."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_MOST_REMEMBERED = 4096


@lru_cache(_MOST_REMEMBERED)
def address_class(ip: str) -> AddressClass:
    """The class of an IPv4 or IPv6 address; raises ValueError for anything else.

    IPv6 forms that carry an IPv4 address (mapped, 6to4, NAT64) have that address's class, unique-local ones are
    `private`; unspecified, multicast, shared (CGNAT) and all other special addresses are `reserved`, never public.
    """
    address = ipaddress.ip_address(ip.partition("%")[0])
    inner = _embedded(address) if isinstance(address, ipaddress.IPv6Address) else None
    table = _TABLES[4 if inner else address.version]
    number = int(inner or address)
    return next(kind for first, last, kind in table if first <= number <= last)


def _table(classes: Mapping[str, AddressClass]) -> tuple[tuple[int, int, AddressClass], ...]:
    """First and last address of each block with its class, the narrowest blocks first."""
    networks = sorted(map(ipaddress.ip_network, classes), key=lambda one: one.prefixlen, reverse=True)
    return tuple((int(one[0]), int(one[-1]), classes[str(one)]) for one in networks)


_TABLES = {4: _table(_V4), 6: _table(_V6)}


def permitted(addresses: tuple[str, ...], allowed: Collection[str]) -> tuple[str, ...] | Failure:
    """Those of some addresses whose class is allowed, in their order; a failure when there is none."""
    kept = tuple(ip for ip in addresses if address_class(ip) in allowed)
    if kept:
        return kept
    first = addresses[0]
    return Failure("private-address", f"{first} is a {address_class(first)} address")


def _embedded(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.sixtofour
