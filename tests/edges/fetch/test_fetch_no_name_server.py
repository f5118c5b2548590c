"""A name server that is down is told from a name that does not exist, once a name was found."""

from __future__ import annotations

import asyncio
import socket
import struct

from muniment.fetch.dns import Resolver
from muniment.model.failure import NO_NAME_SERVER, Failure, of_this_machine


class Names(asyncio.DatagramProtocol):
    """Gives every name below `good.test` the address 127.0.0.1; knows no other."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: object) -> None:
        question = data[12 : data.index(b"\0", 12) + 5]
        known = b"\x04good\x04test\x00" in question
        head = data[:2] + struct.pack(">HHHHH", 0x8180 if known else 0x8183, 1, int(known), 0, 0)
        answer = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + socket.inet_aton("127.0.0.1") if known else b""
        self.transport.sendto(head + question + answer, addr)  # type: ignore[attr-defined]


async def _ask() -> list[tuple[str, ...] | Failure]:
    loop = asyncio.get_running_loop()
    server, _ = await loop.create_datagram_endpoint(Names, local_addr=("127.0.0.1", 0))
    port = server.get_extra_info("sockname")[1]
    resolver = Resolver(frozenset({"loopback"}), (f"127.0.0.1:{port}",), timeout=1.0)
    found = [await resolver.resolve(name) for name in ("a.good.test", "none.test")]
    server.close()
    await asyncio.sleep(0.05)
    found.append(await resolver.resolve("b.good.test"))
    await resolver.close()
    return found


def test_a_name_server_that_goes_down_is_no_fault_of_the_name() -> None:
    known, unknown, later = asyncio.run(_ask())
    assert known == ("127.0.0.1",)
    assert isinstance(unknown, Failure)
    assert unknown != NO_NAME_SERVER
    assert later == NO_NAME_SERVER
    assert of_this_machine(str(later))
    assert not of_this_machine(str(unknown))


async def _never_up() -> tuple[str, ...] | Failure:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    resolver = Resolver(frozenset({"loopback"}), (f"127.0.0.1:{port}",), timeout=1.0)
    found = await resolver.resolve("a.good.test")
    await resolver.close()
    return found


def test_without_any_name_that_was_found_nobody_can_tell() -> None:
    found = asyncio.run(_never_up())
    assert isinstance(found, Failure)
    assert found != NO_NAME_SERVER
