"""A name server that is down, or fails, is told from a name that does not exist or has silent servers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from msgspec import structs
from tests.support.name_server import NameServer

from muniment.fetch.dns import Resolver
from muniment.model.failure import NO_NAME_SERVER, Failure, of_this_machine
from muniment.rules.hosts.failures import is_nameless


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


async def _ask_twice(server: NameServer, name: str) -> list[tuple[str, ...] | Failure]:
    """The second time when the first answer is not kept any more."""
    resolver = Resolver(frozenset({"loopback"}), (f"{server.address}:{server.port}",), timeout=0.5)
    found = [await resolver.resolve(name), await resolver.resolve(name)]
    answer = resolver._answers[name]
    resolver._answers[name] = structs.replace(answer, expires=0.0)
    found.append(await resolver.resolve(name))
    await resolver.close()
    return found


@pytest.mark.parametrize(
    ("name", "text"), [("a.none.test", "no such name"), ("a.empty.test", "no such name with an address")]
)
def test_a_name_that_was_not_found_is_asked_for_again_though_its_servers_say_how_long_that_holds(
    name: str, text: str
) -> None:
    with NameServer() as server:
        found = asyncio.run(_ask_twice(server, name))
    assert found == [Failure("dns", text)] * 3
    assert len(server.asked[name]) == 2


def test_what_is_no_host_name_does_not_exist() -> None:
    with NameServer() as server:
        [found, later] = asyncio.run(_ask(server, "x" * 70 + ".test", then=lambda: None, later="a..test"))
    assert [str(one).partition(":")[0] for one in (found, later)] == ["dns", "dns"]
    assert is_nameless(str(found))
    assert is_nameless(str(later))
    assert server.asked == {}


def test_a_server_that_fails_says_nothing_of_a_name() -> None:
    with NameServer() as server:
        _, later = asyncio.run(_ask(server, "a.good.test", then=lambda: None, later="a.sick.test"))
    assert isinstance(later, Failure)
    assert not is_nameless(str(later))
