"""Addresses that pages cannot reach are those of IANA's special-purpose registries, whatever Python says of them."""

from __future__ import annotations

import csv
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path

import pytest

from muniment.fetch.address_policy import address_class

REGISTRY = Path(__file__).with_name("special_purpose_addresses.csv")
"""Blocks and columns of IANA's two registries of 2025-10-09; forms that carry an IPv4 address stand apart."""
ROWS = [
    (ip_network(row["Address Block"]), row["Globally Reachable"])
    for row in csv.DictReader(REGISTRY.read_text().splitlines())
]
LARGEST = ("8.8.8.8", "192.31.196.1", "2606:4700::1")


def reachable(address: str) -> bool:
    """Whether the narrowest block says so."""
    found = [row for row in ROWS if ip_address(address) in row[0]]
    return max(found, key=lambda row: row[0].prefixlen)[1] == "True"


@pytest.mark.parametrize("block", [row[0] for row in ROWS], ids=str)
def test_a_block_is_as_the_registry_says(block: IPv4Network | IPv6Network) -> None:
    for number in {0, block.num_addresses // 2, block.num_addresses - 1}:
        address = str(block[number])
        assert (address_class(address) == "public") is reachable(address), address


@pytest.mark.parametrize("address", [str(row[0][0]) for row in ROWS if row[0].version == 4] + list(LARGEST[:2]))
def test_a_form_that_carries_an_address_has_its_class(address: str) -> None:
    inner = IPv4Address(address)
    high, low = int(inner) >> 16, int(inner) & 0xFFFF
    for form in (f"::ffff:{address}", f"64:ff9b::{address}", f"2002:{high:x}:{low:x}::1"):
        assert address_class(form) == address_class(address), form
    for form in (f"::{address}", f"::ffff:0:{address}", f"64:ff9b:1::{address}"):
        assert address_class(form) != "public", form


@pytest.mark.parametrize("address", LARGEST)
def test_other_addresses_are_public(address: str) -> None:
    assert address_class(address) == "public"
