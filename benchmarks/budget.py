"""What a page of the fetch benchmark costs at the least: its transfer, its compression and its two digests, each alone.

CPU microseconds per page in one process, of the machine that runs it; nothing else is done with the bytes. Beside them
belongs what `benchmarks/fetch.py` says of a whole fetch. Prints a Markdown table.

Usage: python benchmarks/budget.py [--corpus DIR] [--files N] [--rounds N]
"""

from __future__ import annotations

import argparse
import hashlib
import selectors
import socket
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from crawl import SERVER
from make_corpus import make_corpus
from tests.support.nginx import Nginx

from muniment.archive.warc.members import deflate_member
from muniment.archive.warc.multibuffer import Multibuffer, load

_PIECE = 1 << 18
_AT_ONCE = 64
_BATCH = 96


def transfer(server: Nginx, paths: list[str]) -> None:
    """Ask for every page and read its answer, on many connections at once and as plainly as sockets allow.

    On one connection alone each answer would be waited for, which costs two and a half times as much.
    """
    waiting = iter(paths)
    piece = bytearray(_PIECE)
    left: dict[socket.socket, int] = {}
    with selectors.DefaultSelector() as selector:
        for path in islice(waiting, _AT_ONCE):
            connection = socket.create_connection((server.addresses[0], server.ports[0]))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(connection, selectors.EVENT_READ)
            ask(connection, server, path)
        while selector.get_map():
            for key, _ in selector.select():
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                got = connection.recv_into(piece)
                assert got, "nginx closed the connection"
                if connection not in left:
                    end = piece.index(b"\r\n\r\n", 0, got) + 4
                    left[connection] = int(piece[:end].lower().split(b"content-length: ")[1].split(b"\r\n")[0]) + end
                left[connection] -= got
                if left[connection]:
                    continue
                del left[connection]
                if (following := next(waiting, None)) is not None:
                    ask(connection, server, following)
                else:
                    selector.unregister(connection)
                    connection.close()


def ask(connection: socket.socket, server: Nginx, path: str) -> None:
    connection.sendall(f"GET /{path} HTTP/1.1\r\nHost: {server.addresses[0]}\r\n\r\n".encode())


def digest(bodies: list[bytes]) -> None:
    """The payload's digest and the block's, which has the same bytes and a few more."""
    for body in bodies:
        hashlib.sha1(body, usedforsecurity=False).digest()
        hashlib.sha1(body, usedforsecurity=False).digest()


def digest_side_by_side(multibuffer: Multibuffer, bodies: list[bytes]) -> None:
    """The same by the multi-buffer library, as many bodies at a time as a batch has."""
    for at in range(0, len(bodies), _BATCH):
        multibuffer.digests([(body, 0) for body in bodies[at : at + _BATCH] for _ in range(2)])


def compress(bodies: list[bytes]) -> None:
    """A gzip member of each page that compresses, as the archive makes it; images are stored."""
    for body in bodies:
        if body[:1] == b"<":
            deflate_member(body)


def cost(work: Callable[[], None], pages: int, rounds: int) -> float:
    """The median CPU time of a page, in microseconds."""
    spent = []
    for _ in range(rounds):
        before = time.process_time()
        work()
        spent.append((time.process_time() - before) / pages * 1e6)
    return statistics.median(spent)


def main() -> None:
    parser = argparse.ArgumentParser(description="the physical limit of a page")
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-budget-") as home:
        corpus = arguments.corpus or Path(home)
        paths = make_corpus(corpus, arguments.files)
        bodies = [(corpus / path).read_bytes() for path in paths]
        with Nginx(corpus, access_log=False, http=SERVER) as server:
            parts = {
                "transfer": lambda: transfer(server, paths),
                "compression": lambda: compress(bodies),
                "two digests (SHA-1)": lambda: digest(bodies),
            }
            if (multibuffer := load()) is not None:
                parts["two digests, side by side"] = lambda: digest_side_by_side(multibuffer, bodies)
            costs = {name: cost(work, len(paths), arguments.rounds) for name, work in parts.items()}
    print(f"{len(bodies)} pages, {sum(map(len, bodies)) / len(bodies) / 1000:.1f} kB on average\n")
    print("| at the least | CPU µs a page |\n|---|---|")
    for name, value in costs.items():
        print(f"| {name} | {value:.0f} |")
    transferred, compressed, *digested = costs.values()
    for value in digested:
        print(f"| all three, with digests of {value:.0f} | {transferred + compressed + value:.0f} |")


if __name__ == "__main__":
    main()
