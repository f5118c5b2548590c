"""What a page of the fetch benchmark costs at the least: its transfer, its two digests and its compression, each alone.

CPU microseconds per page in one process, of the machine that runs it; nothing else is done with the bytes. Beside them
belongs what `benchmarks/fetch.py` says of a whole fetch. Prints a Markdown table.

Usage: python benchmarks/budget.py [--corpus DIR] [--files N] [--rounds N]
"""

from __future__ import annotations

import argparse
import hashlib
import socket
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from crawl import SERVER
from make_corpus import make_corpus

from muniment.archive.members import deflate_member
from muniment.testing.nginx import Nginx

_PIECE = 1 << 18


def transfer(server: Nginx, paths: list[str]) -> None:
    """Ask for every page on one connection and read its answer, as plainly as sockets allow."""
    with socket.create_connection((server.addresses[0], server.ports[0])) as connection:
        piece = bytearray(_PIECE)
        for path in paths:
            connection.sendall(f"GET /{path} HTTP/1.1\r\nHost: {server.addresses[0]}\r\n\r\n".encode())
            head, got = b"", 0
            while (end := head.find(b"\r\n\r\n")) < 0:
                head += connection.recv(_PIECE)
            length = int(head[:end].lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            got = len(head) - end - 4
            while got < length:
                got += connection.recv_into(piece, min(_PIECE, length - got))


def digest(bodies: list[bytes]) -> None:
    """The payload's digest and the block's, which has the same bytes and a few more."""
    for body in bodies:
        hashlib.sha1(body, usedforsecurity=False).digest()
        hashlib.sha1(body, usedforsecurity=False).digest()


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
                "two digests (SHA-1)": lambda: digest(bodies),
                "compression": lambda: compress(bodies),
            }
            costs = {name: cost(work, len(paths), arguments.rounds) for name, work in parts.items()}
    print(f"{len(bodies)} pages, {sum(map(len, bodies)) / len(bodies) / 1000:.1f} kB on average\n")
    print("| at the least | CPU µs a page |\n|---|---|")
    for name, value in (*costs.items(), ("all three", sum(costs.values()))):
        print(f"| {name} | {value:.0f} |")


if __name__ == "__main__":
    main()
