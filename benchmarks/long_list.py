"""A list of five million URLs: how much memory all processes take together, and how soon the first request comes.

The list is fetched for a while and interrupted, since memory must be flat long before its end: the list is read ahead
of the requests as far as it ever is. Stops when no request came, or when the run did
not end as an interrupted one does.

Usage: python benchmarks/long_list.py [--urls 5000000] [--seconds 120]
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import Watch
from tests.support.nginx import Nginx

_RETURN = 'location /x/ { default_type text/html; return 200 "<p>a page"; }'
_LONGEST_WAIT_S = 60.0


def write_list(path: Path, origin: str, urls: int) -> None:
    """As many different URLs, one a line."""
    with path.open("w") as lines:
        for start in range(0, urls, 10_000):
            lines.writelines(f"{origin}x/{number}.html\n" for number in range(start, min(urls, start + 10_000)))


def first_request(server: Nginx, began: float) -> float:
    """Seconds until the server has seen a request."""
    while not server.requests():
        if time.monotonic() - began > _LONGEST_WAIT_S:
            sys.exit(f"no request within {_LONGEST_WAIT_S:.0f} s")
        time.sleep(0.02)
    return time.monotonic() - began


def fetch(urls: Path, out: Path, server: Nginx, seconds: float) -> tuple[float, Watch]:
    """Fetch the list for so long; seconds until the first request, and what memory the processes took."""
    began = time.monotonic()
    command = [sys.executable, "-m", "muniment", "fetch", str(urls), "-o", str(out), "--quiet", "--per-host", "64"]
    process = subprocess.Popen(command)
    watch = Watch(process.pid)
    with watch:
        waited = first_request(server, began)
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        if process.wait(120) != 3:
            sys.exit(f"the run ended with exit {process.returncode}, and was to be interrupted")
    return waited, watch


def main() -> None:
    parser = argparse.ArgumentParser(description="a list of millions of URLs")
    parser.add_argument("--urls", type=int, default=5_000_000)
    parser.add_argument("--seconds", type=float, default=120)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-list-") as home:
        root = Path(home) / "root"
        root.mkdir()
        with Nginx(root, server=_RETURN) as server:
            urls = Path(home) / "list.txt"
            write_list(urls, server.url, arguments.urls)
            waited, watch = fetch(urls, Path(home) / "out", server, arguments.seconds)
            asked = len(server.requests())
    print(f"{arguments.urls} URLs, of which {asked} were asked for in {arguments.seconds:.0f} s")
    most = watch.peaks.values()
    print(f"first request after {waited:.1f} s")
    print(f"all processes together at most {sum(most) / 1e6:.0f} MB, the largest {max(most) / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
