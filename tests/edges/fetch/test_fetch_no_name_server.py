"""A name server that is down is told from a name that does not exist or has silent servers, once a name was found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from tests.support.name_server import NameServer

from muniment.fetch.dns import Resolver
from muniment.model.failure import NO_NAME_SERVER, Failure, of_this_machine


async def _ask(
    server: NameServer, *names: str, then: Callable[[], None], later: str
) -> list[tuple[str, ...] | Failure]:
    resolver = Resolver(frozenset({"loopback"}), (f"{server.address}:{server.port}",), timeout=0.5)
    found = [await resolver.resolve(name) for name in names]
    then()
    found.append(await resolver.resolve(later))
    await resolver.close()
    return found


def test_a_name_server_that_goes_down_is_no_fault_of_the_name() -> None:
    with NameServer() as server:
        asked = _ask(server, "a.good.test", "a.none.test", then=server.down, later="b.good.test")
        known, unknown, later = asyncio.run(asked)
    assert known == ("127.0.0.1",)
    assert isinstance(unknown, Failure)
    assert unknown != NO_NAME_SERVER
    assert later == NO_NAME_SERVER
    assert of_this_machine(str(later))
    assert not of_this_machine(str(unknown))


def test_neither_is_one_that_falls_silent() -> None:
    with NameServer() as server:
        known, later = asyncio.run(
            _ask(server, "a.good.test", then=lambda: setattr(server, "mute", True), later="b.good.test")
        )
    assert known == ("127.0.0.1",)
    assert later == NO_NAME_SERVER


def test_a_name_whose_own_servers_are_silent_fails_in_time_where_every_name_below_a_good_one_exists() -> None:
    with NameServer() as server:
        _, later = asyncio.run(_ask(server, "a.good.test", then=lambda: None, later="a.mute.test"))
    # by our own time-out: c-ares says it in other words
    assert later == Failure("dns", "no answer in time")


@pytest.mark.parametrize("found", [(), ("localhost",), ("a.localhost",)])
def test_without_any_name_that_a_server_found_nobody_can_tell(found: tuple[str, ...]) -> None:
    with NameServer() as server:
        *_, later = asyncio.run(_ask(server, *found, then=server.down, later="a.good.test"))
    assert isinstance(later, Failure)
    assert later != NO_NAME_SERVER
