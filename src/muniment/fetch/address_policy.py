"""The address policy: the class of an address, and whether it may be reached; pages cannot reach private ones."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from typing import Literal

from muniment.model.failure import Failure

__all__ = ["AddressClass", "address_class", "permitted"]


AddressClass = Literal["public", "loopback", "link-local", "private", "reserved"]

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# The only part of the IPv6 space from which public addresses are given out (RFC 4291 §2.4, IANA's registry).
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_SITE_LOCAL = ipaddress.IPv6Network("fec0::/10")
_UNIQUE_LOCAL = ipaddress.IPv6Network("fc00::/7")
_PRIVATE_V4 = tuple(ipaddress.IPv4Network(net) for net in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))


def address_class(ip: str) -> AddressClass:
    """The class of an IPv4 or IPv6 address; raises ValueError for anything else.

    IPv6 forms that carry an IPv4 address (mapped, 6to4, NAT64) have that address's class, unique-local ones are
    `private`; unspecified, multicast, shared (CGNAT) and all other special addresses are `reserved`, never public.
    """
    address = ipaddress.ip_address(ip.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        inner = _embedded(address)
        if inner is None:
            return _class_v6(address)
        address = inner
    if address.is_loopback:
        return "loopback"
    if address.is_link_local:
        return "link-local"
    if any(address in net for net in _PRIVATE_V4):
        return "private"
    return "public" if address.is_global and not address.is_multicast else "reserved"


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


def _class_v6(address: ipaddress.IPv6Address) -> AddressClass:
    if address.is_loopback:
        return "loopback"
    if address.is_link_local:
        return "link-local"
    if address in _UNIQUE_LOCAL or address in _SITE_LOCAL:
        return "private"
    return "public" if address in _GLOBAL_UNICAST and address.is_global else "reserved"
