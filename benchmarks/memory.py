"""How much memory all processes hold while a body of many gigabytes, or a million pages, go through them.

Prints a Markdown table, a curve in a dozen rows: the proportional set size (PSS: shared pages count once) of all
processes of Muniment, at most in each stretch. Then the archive is checked: by `muniment check` for the pages, by the
length and the digest of the one large record for the body, which does not compress.

Usage: python benchmarks/memory.py pages [--pages 1000000] [--work DIR]
       python benchmarks/memory.py body [--gigabytes 20] [--work DIR]         (needs twice the room on disk)
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import hashlib
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from fastwarc.warc import ArchiveIterator, WarcRecordType
from tests.support.nginx import Nginx

EVERY_S = 1.0
ROWS = 12
GIGABYTE = 1_000_000_000
BLOCK = 1 << 20
TEXT = "<p>" + "A page of a large site, as long as small pages are. " * 20


@dataclass(frozen=True)
class Look:
    """What there was at one moment."""

    seconds: float
    pss: int
    processes: int
    archive_bytes: int


def looks(command: list[str], out: Path) -> list[Look]:
    """Run a command until its end, looking at it every second; stops with its words when it fails."""
    began, seen = time.monotonic(), []
    with tempfile.TemporaryFile() as said:
        process = psutil.Popen(command, stderr=said)
        while process.poll() is None:
            with contextlib.suppress(psutil.Error, OSError):
                seen.append(look(process, out, began))
            time.sleep(EVERY_S)
        if process.returncode:
            said.seek(0)
            sys.exit(f"exit {process.returncode}: {said.read().decode()[-2000:]}")
    return seen


def look(process: psutil.Process, out: Path, began: float) -> Look:
    sizes = []
    for one in [process, *process.children(recursive=True)]:
        with contextlib.suppress(psutil.Error, OSError):
            sizes.append(one.memory_full_info().pss)
    written = sum(path.stat().st_size for path in out.glob("*.warc.gz*"))
    return Look(time.monotonic() - began, sum(sizes), len(sizes), written)


def tell(seen: list[Look]) -> None:
    """The curve as a table."""
    print("| until, s | archive, MB | processes | PSS of all at most, MB |\n|---|---|---|---|")
    step = -(-len(seen) // ROWS)
    for start in range(0, len(seen), step):
        stretch = seen[start : start + step]
        most = max(stretch, key=lambda one: one.pss)
        last = stretch[-1]
        print(f"| {last.seconds:.0f} | {last.archive_bytes / 1e6:.0f} | {most.processes} | {most.pss / 1e6:.0f} |")


def crawl(url: str, out: Path, *options: str) -> list[str]:
    program = [sys.executable, "-m", "muniment", "crawl", url, "-o", str(out), "--quiet"]
    return [*program, "--per-host", "64", "--workers", "2", *options]


def pages(work: Path, count: int) -> None:
    """A tree of pages that nginx makes: page `n` leads to `n0` to `n9`, as far as numbers of some digits go."""
    digits = len(str(count)) - 1
    links = "".join(f"<a href=/p${{number}}{digit}.html>{digit}</a>" for digit in range(10))
    server = f"""
        default_type text/html;
        location ~ "^/p(?<number>[0-9]{{0,{digits - 1}}})\\.html$" {{ return 200 '{links}{TEXT}'; }}
        location ~ "^/p[0-9]{{{digits}}}\\.html$" {{ return 200 '$uri {TEXT}'; }}
        location = /robots.txt {{ return 404; }}
    """
    (work / "root").mkdir()
    with Nginx(work / "root", server=server, access_log=False) as nginx:
        tell(looks(crawl(f"{nginx.url}p.html", work / "out"), work / "out"))
    subprocess.run([sys.executable, "-m", "muniment", "inspect", str(work / "out")], check=True)
    subprocess.run([sys.executable, "-m", "muniment", "check", str(work / "out")], check=True)


def body(work: Path, gigabytes: float) -> None:
    """One answer of that length from a server of one thread."""
    block = random.Random(20).randbytes(BLOCK)
    blocks = int(gigabytes * GIGABYTE / BLOCK)
    digest = hashlib.sha1()
    for _ in range(blocks):
        digest.update(block)
    with serving(block, blocks) as url:
        tell(looks(crawl(url, work / "out", "--page-only", "--min-free", "0"), work / "out"))
    [length, sha1] = record(work / "out")
    wanted = "sha1:" + base64.b32encode(digest.digest()).decode()
    print(f"{length} bytes, {sha1}: {'as sent' if (length, sha1) == (blocks * BLOCK, wanted) else 'NOT WHAT WAS SENT'}")


@contextlib.contextmanager
def serving(block: bytes, blocks: int) -> Iterator[str]:
    """A server that answers robots.txt with 404 and all else with the blocks."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer_all, args=(listener, block, blocks), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/large.bin"


def answer_all(listener: socket.socket, block: bytes, blocks: int) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            with connection:
                asked = connection.recv(65536)
                if asked.startswith(b"GET /robots.txt"):
                    connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    continue
                head = f"Content-Type: application/octet-stream\r\nContent-Length: {blocks * len(block)}\r\n"
                connection.sendall(f"HTTP/1.1 200 OK\r\n{head}Connection: close\r\n\r\n".encode())
                for _ in range(blocks):
                    connection.sendall(block)


def record(out: Path) -> tuple[int, str]:
    """The payload of the one large response as another reader finds it: its length and its digest, computed anew."""
    for path in sorted(out.glob("*.warc.gz")):
        with path.open("rb") as stream:
            for one in ArchiveIterator(stream, record_types=WarcRecordType.response, parse_http=True):
                if "large.bin" not in (one.headers.get("WARC-Target-URI") or ""):
                    continue
                digest, length = hashlib.sha1(), 0
                while data := one.reader.read(BLOCK):
                    digest.update(data)
                    length += len(data)
                return length, "sha1:" + base64.b32encode(digest.digest()).decode()
    sys.exit("the large response is not in the archive")


def main() -> None:
    parser = argparse.ArgumentParser(description="memory over a long crawl")
    parser.add_argument("what", choices=["pages", "body"])
    parser.add_argument("--pages", type=int, default=1_000_000, help="a power of ten; its tenths are crawled as well")
    parser.add_argument("--gigabytes", type=float, default=20)
    parser.add_argument("--work", type=Path, help="where the archive is made (default: the system's temporary place)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-memory-", dir=given.work) as home:
        if given.what == "pages":
            pages(Path(home), given.pages)
        else:
            body(Path(home), given.gigabytes)


if __name__ == "__main__":
    main()
