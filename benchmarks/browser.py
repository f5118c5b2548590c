"""Renders pages with `muniment crawl --browser`, and with a bare script that loads the same ones and keeps nothing.

Both use the same browser and as many tabs, by turns; the server is nginx over TLS on the same cores. Prints CPU seconds
a page of all processes of each, the browser included, and pages a second; progress goes to standard error.

Usage: python benchmarks/browser.py [--pages N] [--tabs N] [--rounds N] [--screenshots LIST] [--work DIR]
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.support.nginx import Nginx

from muniment.browser.devtools import DevTools
from muniment.browser.program import BrowserProgram, command_of, find_program

_SUBREAPER = 36
REQUISITES, PAGE_BYTES = 43, 900_000


def make_pages(root: Path, pages: int) -> None:
    """Pages with requisites of their own, so that no cache has a part in it."""
    noise = random.Random(1)
    for number in range(pages):
        folder = root / f"p{number}"
        folder.mkdir(parents=True)
        names = [f"{at}.{'css' if at < 3 else 'js' if at < 8 else 'png'}" for at in range(REQUISITES)]
        for name in names:
            size = PAGE_BYTES // REQUISITES
            text = b"/*" + noise.randbytes(size).hex().encode()[:size] + b"*/"
            (folder / name).write_bytes(noise.randbytes(size) if name.endswith("png") else text)
        tags = {"css": "<link rel=stylesheet href={}>", "js": "<script src={}></script>", "png": "<img src={}>"}
        (folder / "index.html").write_text("".join(tags[name.rpartition(".")[2]].format(name) for name in names))


# -- the bare script


async def bare(urls: list[str], tabs: int) -> None:
    """Load pages in tabs with contexts of their own, as fast as they come."""
    reading, theirs_out = os.pipe()
    theirs_in, writing = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        started = _start(Path(profile), theirs_in, theirs_out)
        tools = DevTools(lambda: None)
        await tools.open(reading, writing)
        left = iter(urls)
        await asyncio.gather(*(_load_all(tools, left) for _ in range(tabs)))
        tools.tell("Browser.close")
        started.wait()
        tools.close()


def _start(profile: Path, reading: int, writing: int) -> subprocess.Popen[bytes]:
    """The browser of a crawl, without its proxy."""
    command = command_of(find_program(None), profile, [], sandbox=os.geteuid() != 0)
    command = [word for word in command if "proxy-server" not in word and "resolver-rules" not in word]
    pipes = f'exec 3<&{reading} 4>&{writing} "$0" "$@"'
    return subprocess.Popen(
        ["sh", "-c", pipes, *command, "--ignore-certificate-errors"],
        pass_fds=(reading, writing),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


async def _load_all(tools: DevTools, urls: Any) -> None:
    for url in urls:
        context = (await tools.call("Target.createBrowserContext"))["browserContextId"]
        blank = {"url": "about:blank", "browserContextId": context}
        target = (await tools.call("Target.createTarget", blank))["targetId"]
        session = (await tools.call("Target.attachToTarget", {"targetId": target, "flatten": True}))["sessionId"]
        loaded = asyncio.Event()

        def take(method: str, _said: dict[str, Any], loaded: asyncio.Event = loaded) -> None:
            if method == "Page.loadEventFired":
                loaded.set()

        tools.listen(session, take, {"Page.loadEventFired"})
        await tools.call("Page.enable", session=session)
        await tools.call("Page.navigate", {"url": url}, session)
        await asyncio.wait_for(loaded.wait(), 60)
        await asyncio.sleep(0.5)
        tools.ignore(session)
        await tools.call("Target.disposeBrowserContext", {"browserContextId": context})


# -- measuring


def cost(command: list[str]) -> tuple[float, float]:
    """CPU and wall seconds of a command with all that it started."""
    reading, writing = os.pipe()
    if not (pid := os.fork()):
        # a process of its own, whose children are those of the command alone
        os.write(writing, repr(_cost(command)).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    with os.fdopen(reading) as told:
        cpu, wall = told.read().strip("()").split(",")
    return float(cpu), float(wall)


def _cost(command: list[str]) -> tuple[float, float]:
    """The same; what loses its parent is waited for here."""
    begun = time.perf_counter()
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    cpu, wall = 0.0, 0.0
    while True:
        try:
            pid, status, usage = os.wait4(-1, 0)
        except ChildProcessError:
            return cpu, wall
        cpu += usage.ru_utime + usage.ru_stime
        if pid == started.pid:
            wall = time.perf_counter() - begun
            if code := os.waitstatus_to_exitcode(status):
                print(f"{command[:4]} ended with {code}", file=sys.stderr)


def crawl(urls: list[str], tabs: int, screenshots: str, work: Path) -> tuple[float, float]:
    """The cost of a crawl of the pages."""
    out, given = work / "out", work / "urls.txt"
    shutil.rmtree(out, ignore_errors=True)
    given.write_text("\n".join(urls))
    command = [sys.executable, "-m", "muniment", "crawl", "--input", given, "-o", out, "--browser", "--level", "0"]
    command += ["--behaviors", "none", "--screenshots", screenshots, "--tabs", tabs, "--insecure", "--allow-private"]
    command += ["--no-robots", "--no-sitemaps", "--quiet", "--delay", "0"]
    return cost(list(map(str, command)))


def main() -> None:
    """Run both by turns, and print what they cost."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--tabs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--screenshots", default="none")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--bare", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.bare:
        asyncio.run(bare(given.bare.read_text().split(), given.tabs))
        return
    with tempfile.TemporaryDirectory(dir=given.work, ignore_cleanup_errors=True) as name:
        work = Path(name)
        make_pages(work / "site", given.pages)
        with Nginx(work / "site", tls=True, access_log=False) as server:
            report(given, work, server.url.rstrip("/"))


def report(given: argparse.Namespace, work: Path, base: str) -> None:
    """Print the table."""
    program: BrowserProgram = find_program(None)
    urls = [f"{base}/p{number}/index.html" for number in range(given.pages)]
    (work / "bare.txt").write_text("\n".join(urls))
    own = [sys.executable, __file__, "--bare", str(work / "bare.txt"), "--tabs", str(given.tabs)]
    costs: dict[str, list[tuple[float, float]]] = {"bare": [], "muniment": []}
    for turn in range(given.rounds):
        costs["bare"].append(cost(own))
        costs["muniment"].append(crawl(urls, given.tabs, given.screenshots, work))
        print(f"round {turn + 1}: {costs}", file=sys.stderr)
    print(f"Chromium {program.version}, {given.pages} pages, {given.tabs} tabs, screenshots {given.screenshots}\n")
    print("| | CPU s a page | pages/s |\n|---|---|---|")
    middle = {name: statistics.median(cpu for cpu, _ in found) for name, found in costs.items()}
    for name, found in costs.items():
        wall = statistics.median(wall for _, wall in found)
        print(f"| {name} | {middle[name] / given.pages:.3f} | {given.pages / wall:.2f} |")
    print(f"\nmuniment takes {middle['muniment'] / middle['bare']:.2f} times the CPU of the bare script")


if __name__ == "__main__":
    main()
