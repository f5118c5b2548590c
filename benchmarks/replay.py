"""How long `muniment replay` takes until it answers, the memory it has then, and how fast it finds captures.

Run `python benchmarks/replay.py`; `--captures N` for another index, whose generated rows share the records of small
WARC files. Each round begins as a new process. `--pywb DIR` compares the payloads that `/raw` sends over four
connections with those of pywb (`id_`) for the same records; pywb gets an environment of its own in DIR, with its pins.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import random
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
import venv
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from muniment.archive.index.parquet import index_rows, join
from muniment.model.capture import Capture

FILES = 20
RECORDS = 500
"""In each file."""
CONNECTIONS = 4
SECONDS = 5.0
PYWB = ("pywb==2.10.0", "setuptools<81")


Places = list[tuple[int, int]]


def write_index(out: Path, captures: int) -> None:
    """An index of pages of 5,000 hosts, a third of them with a query."""
    out.mkdir()
    for file in range(FILES):
        name = f"muniment-{file:05d}.warc.gz"
        places = write_records(out / name, file)
        index_rows(out / "parts", name, [row(name, number, places) for number in range(file, captures, FILES)])
    join(out, out / "parts")


def write_records(path: Path, file: int) -> Places:
    """Pages of a few kilobytes; where they begin and how long they are."""
    places = []
    with path.open("wb") as warc:
        for number in range(RECORDS):
            page = f"<title>{file} {number}</title>" + f"<p>some words of page {number}</p>" * 100
            block = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(page)}\r\n\r\n{page}"
            header = (
                f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:0-{file}-{number}>\r\n"
                f"WARC-Date: 2026-11-18T10:26:40Z\r\nWARC-Target-URI: {url_of(number * FILES + file)}\r\n"
                f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
            )
            member = gzip.compress(f"{header}{block}\r\n\r\n".encode(), mtime=0)
            places.append((warc.tell(), len(member)))
            warc.write(member)
    return places


def url_of(number: int) -> str:
    return f"http://site{number % 5000}.example/{number // 100}/{number}.html{'?b=2&a=1' if number % 3 else ''}"


def row(name: str, number: int, places: Places) -> Capture:
    url, (offset, length) = url_of(number), places[number // FILES % RECORDS]
    at = 1_795_000_000_000 + number
    return Capture(url, url.split("/")[2], 200, at, "text/html", 3_300, f"{number:040x}", False, name, offset, length,
                   "", "", "", "response", "192.0.2.1", at * 1000, 9, 5, "", "", 1, 1, "a", "", "", "")  # fmt: skip


def measured(out: Path) -> tuple[float, float, float]:
    """Seconds until it answers, seconds of a search, and the MB of memory that it had at most."""
    begun = time.monotonic()
    command = [sys.executable, "-m", "muniment", "replay", str(out), "--no-open", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    front = json.loads(process.stdout.readline())["url"]
    ready = time.monotonic() - begun
    begun = time.monotonic()
    with urllib.request.urlopen(f"{front}search?q=42") as answer:
        assert b"search-result" in answer.read()
    search = time.monotonic() - begun
    status = Path(f"/proc/{process.pid}/status").read_text()
    most = next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]
    process.terminate()
    process.communicate()
    return ready, search, int(most) / 1024


@contextmanager
def ours(out: Path) -> Iterator[Callable[[int], str]]:
    """A replay, and the address of a payload."""
    command = [sys.executable, "-m", "muniment", "replay", str(out), "--no-open", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        front = json.loads(process.stdout.readline())["url"]
        try:
            yield lambda number: f"{front}raw/2999/{url_of(number)}"
        finally:
            process.terminate()


@contextmanager
def pywb(out: Path, environment: Path) -> Iterator[Callable[[int], str]]:
    """pywb with a sorted index of the same records, and the address of a payload."""
    python = environment / "bin" / "python"
    if not python.exists():
        venv.create(environment, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PYWB], check=True)
    with TemporaryDirectory(prefix="muniment-pywb-") as name, closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
        free.close()
        index = Path(name) / "index.cdxj"
        subprocess.run([sys.executable, "-m", "muniment", "export", out, "--cdxj", index, "--quiet"], check=True)
        told = {"collections": {"all": {"index": str(index), "archive_paths": f"{out}/"}}}
        (Path(name) / "config.yaml").write_text(json.dumps(told))
        command = [environment / "bin" / "wayback", "-p", str(port), "-b", "127.0.0.1"]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(command, cwd=name, stdout=quiet, stderr=quiet) as process:
            try:
                wait_for(port)
                yield lambda number: f"http://127.0.0.1:{port}/all/2999id_/{url_of(number)}"
            finally:
                process.terminate()


def wait_for(port: int) -> None:
    with closing(socket.socket()) as tried:
        while tried.connect_ex(("127.0.0.1", port)):
            time.sleep(0.1)


def rate(address: Callable[[int], str], captures: int) -> float:
    """Payloads a second."""
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        counts = pool.map(lambda seed: asked(address, captures, seed), range(CONNECTIONS))
        return sum(counts) / SECONDS


def asked(address: Callable[[int], str], captures: int, seed: int) -> int:
    numbers, count, place = random.Random(seed + time.monotonic_ns()), 0, urlsplit(address(0)).netloc
    end = time.monotonic() + SECONDS
    with closing(http.client.HTTPConnection(place, timeout=60)) as connection:
        while time.monotonic() < end:
            connection.request("GET", address(numbers.randrange(captures)).partition(place)[2])
            answer = connection.getresponse()
            assert (answer.status, len(answer.read()) > 2_000) == (200, True)
            count += 1
    return count


def compare(out: Path, captures: int, rounds: int, environment: Path) -> None:
    """Both in turn, so that what else the machine does hits both."""
    print("| payloads a second | Muniment | pywb | times |\n|---|---|---|---|")
    with ours(out) as own, pywb(out, environment) as theirs:
        pairs = [(rate(own, captures), rate(theirs, captures)) for _ in range(rounds)]
    for mine, other in pairs:
        print(f"| | {mine:.0f} | {other:.0f} | {mine / other:.1f} |")
    print(f"| median | | | {statistics.median(mine / other for mine, other in pairs):.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--captures", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pywb", type=Path, metavar="DIR", help="an environment for pywb, made if there is none")
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="muniment-bench-") as name:
        out = Path(name) / "out"
        write_index(out, arguments.captures)
        print("| captures | ready, s | search, s | memory, MB |\n|---|---|---|---|")
        for _ in range(arguments.rounds):
            ready, search, memory = measured(out)
            print(f"| {arguments.captures:,} | {ready:.1f} | {search:.2f} | {memory:.0f} |", flush=True)
        if arguments.pywb:
            compare(out, arguments.captures, arguments.rounds, arguments.pywb.absolute())


if __name__ == "__main__":
    main()
