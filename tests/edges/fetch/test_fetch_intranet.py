"""Names of an intranet: those without a dot are looked for in the search domains of the machine, others never."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.support.name_server import NameServer

from muniment.fetch.dns import Resolver
from muniment.model.failure import Failure


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    # it stands for the first name after `search` in resolv.conf
    monkeypatch.setenv("LOCALDOMAIN", "corp.test")
    with NameServer() as running:
        yield running


def resolved(server: NameServer, *names: str) -> list[tuple[str, ...] | Failure]:
    async def ask() -> list[tuple[str, ...] | Failure]:
        resolver = Resolver(frozenset({"loopback"}), (f"{server.address}:{server.port}",), timeout=5)
        try:
            return [await resolver.resolve(name) for name in names]
        finally:
            await resolver.close()

    return asyncio.run(ask())


def test_a_name_without_a_dot_is_looked_for_in_the_search_domains(server):
    assert resolved(server, "wiki", "www.example.test") == [("127.0.0.1",), ("127.0.0.1",)]
    assert "wiki.corp.test" in server.names


def test_a_name_with_a_dot_is_not(server):
    (found,) = resolved(server, "www.none.test")
    assert isinstance(found, Failure)
    assert found.code == "dns"
    assert "search" not in found.text
    assert server.names == {"www.none.test"}


def test_what_is_in_no_search_domain_is_told_with_the_way_out(server, monkeypatch):
    monkeypatch.setenv("LOCALDOMAIN", "none.test")
    (found,) = resolved(server, "wiki")
    assert isinstance(found, Failure)
    assert found.code == "dns"
    assert "write the whole name, as in wiki.example.com" in found.text
