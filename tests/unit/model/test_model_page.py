"""What a worker says of a page."""

from __future__ import annotations

import os

import pytest

from muniment.model.page import LINK_ENTRY, link_keys


@pytest.mark.parametrize("count", [0, 1, 77, 512, 513, 2000])
def test_keys_of_outlinks(count: int) -> None:
    keys = [os.urandom(16) for _ in range(count)]
    entries = b"".join(key + bytes([number % 7]) for number, key in enumerate(keys))
    assert len(entries) == count * LINK_ENTRY
    assert list(link_keys(entries)) == keys
