"""A name server that is down is told from a name that does not exist, once a name was found."""

from __future__ import annotations

import asyncio

from muniment.fetch.dns import Resolver
from muniment.model.failure import NO_NAME_SERVER, Failure, of_this_machine
from muniment.testing.name_server import NameServer


async def _ask(server: NameServer, *names: str, down: str) -> list[tuple[str, ...] | Failure]:
    resolver = Resolver(frozenset({"loopback"}), (f"{server.address}:{server.port}",), timeout=1.0)
    found = [await resolver.resolve(name) for name in names]
    server.down()
    found.append(await resolver.resolve(down))
    await resolver.close()
    return found


def test_a_name_server_that_goes_down_is_no_fault_of_the_name() -> None:
    with NameServer() as server:
        known, unknown, later = asyncio.run(_ask(server, "a.good.test", "a.none.test", down="b.good.test"))
    assert known == ("127.0.0.1",)
    assert isinstance(unknown, Failure)
    assert unknown != NO_NAME_SERVER
    assert later == NO_NAME_SERVER
    assert of_this_machine(str(later))
    assert not of_this_machine(str(unknown))


def test_without_any_name_that_was_found_nobody_can_tell() -> None:
    with NameServer() as server:
        [found] = asyncio.run(_ask(server, down="a.good.test"))
    assert isinstance(found, Failure)
    assert found != NO_NAME_SERVER
