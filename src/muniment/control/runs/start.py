"""Beginning a crawl beside this process: its command line, and the directory that it gets."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from muniment.clock import monotonic
from muniment.control.fleet.directory_backend import DirectoryBackend
from muniment.control.fleet.values import settings_of_values
from muniment.control.runs.folder import is_run, is_running
from muniment.control.runs.known_runs import RunCommand, command_of_run
from muniment.control.runs.log import log_size
from muniment.errors import MunimentError, UsageError
from muniment.model.url import host_of, normalise
from muniment.procs.children.detached import start_detached
from muniment.settings.option_table import options

__all__ = ["OWN_OPTIONS", "go_on", "start_crawl"]

_BEGIN_S = 20.0
_END_S = 60.0
"""A run that was asked to end has ended by then."""
_LOOK_S = 0.1
_log = logging.getLogger(__name__)
_MOST_URLS = 1_000
OWN_OPTIONS = frozenset({"workers", "inflight", "min-free", "warc-size", "max-time", "prefix"})
"""Of this machine or this run: a pipeline has its own, a crawl that begins here takes them from its form."""
_SWITCHES = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}


def start_crawl(home: Path, urls: Sequence[str], note: str, given: Sequence[tuple[str, str]]) -> Path:
    """Begin a crawl of URLs in a new directory, with a note and options by their names; raises UsageError."""
    if not urls:
        raise UsageError("no URL given: write one, as in https://example.com/")
    if len(urls) > _MOST_URLS:
        raise UsageError(f"more than {_MOST_URLS} URLs: give them to `muniment crawl -i FILE`")
    for url in urls:
        if url.startswith("-"):
            raise UsageError(f"{url[:200]!r} is not a URL")
    out = _directory(home, urls[0])
    said = [f"--explanation={note}"] if note else []
    arguments = ["crawl", *urls, "-o", str(out), "--quiet", *said, *_written(given)]
    start_detached(arguments, begun=lambda: is_run(out), patience_s=_BEGIN_S)
    return out


def go_on(out: Path, door: DirectoryBackend, home: Path) -> None:
    """Have a paused or aborted run go on; one that is still ending does so as soon as it has ended.

    One that has ended begins again by its own command, as far as that is kept. Raises UsageError.
    """

    def resume() -> None:
        door.resume(0)
        if not is_running(out) and (command := command_of_run(home, out)) is not None:
            _start_again(out, command)

    if is_running(out) and door.view(0).state == "ABORTED":
        threading.Thread(target=_when_ended, args=(out, resume), name="go on", daemon=True).start()
    else:
        resume()


def _when_ended(out: Path, resume: Callable[[], None]) -> None:
    give_up = monotonic() + _END_S
    while is_running(out) and monotonic() < give_up:
        time.sleep(_LOOK_S)
    try:
        resume()
    except (MunimentError, OSError) as error:
        _log.warning("the run in %s does not go on: %s", out, error)


def _start_again(out: Path, command: RunCommand) -> None:
    if command.lack:
        return
    verb, *rest = command.arguments
    size = log_size(out)
    start_detached(
        [verb, "--quiet", *rest], begun=lambda: log_size(out) > size, patience_s=_BEGIN_S, directory=command.directory
    )


def _directory(home: Path, url: str) -> Path:
    normal = normalise(url)  # what is not a URL is refused by the crawl, in its own words
    name = re.sub("[^a-z0-9.-]+", "-", (host_of(normal) if normal else "crawl").lower()).strip("-.") or "crawl"
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    for number in range(1, 1000):
        out = home / (f"{name}-{stamp}" if number == 1 else f"{name}-{stamp}-{number}")
        if not out.exists():
            return out
    raise UsageError(f"too many crawls begin in {home} at once")


def _written(given: Sequence[tuple[str, str]]) -> list[str]:
    """Options as a command line has them."""
    known = {flag.removeprefix("--"): option for _, _, _, option in options("crawl") for flag in option.flags}
    known |= {option.off.removeprefix("--"): option for option in known.values() if option.off}
    made: list[str] = []
    for name, value in given:
        if not value.strip():
            continue
        option = known.get(name)
        if option is not None and name in OWN_OPTIONS:
            made.append(f"--{name}={value}")  # the crawl says what is wrong with it
            continue
        # what names a file, a place or a secret is for the command line
        switch = _SWITCHES.get(value.lower()) if option is not None and not option.metavar else None
        settings_of_values({name: value if switch is None else switch}, "crawl")
        if switch is None:
            made.append(f"--{name}={value}")
        elif switch:
            made.append(f"--{name}")
        elif option is not None and option.off:
            made.append(option.off if name == option.flags[0].removeprefix("--") else option.flags[0])
    return made
