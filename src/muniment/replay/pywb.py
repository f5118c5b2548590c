"""pywb, the rewriter: a program of its own in an environment of its own, which rewrites pages so that they run here.

It asks our index, on an address that nobody knows, for one capture at a time and for its record.
"""

from __future__ import annotations

import random
import shutil
import socket
import sys
from contextlib import closing, suppress
from pathlib import Path

from muniment.clock import monotonic
from muniment.errors import ProcessError, UsageError
from muniment.procs.children.run import ChildRun, launch
from muniment.procs.registry import ProcessRegistry

__all__ = ["COLLECTION", "Pywb", "free_socket", "hidden_address"]

COLLECTION = "at"
_ENVIRONMENT = ".venv-pywb"
_PATIENCE_S = 300.0
_CONFIG = """\
collections_root: nothing
framed_replay: true
enable_auto_colls: false
enable_auto_fetch: false
redirect_to_exact: false
enable_memento: true
client_side_replay: false
csp-header: "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:"
inject_scripts:
  - muniment-guard.js
collections:
  {collection}:
    index:
      type: cdx
      api_url: "{index}?url={{url}}&closest={{closest}}"
      replay_url: ""
    archive_paths: "{records}"
"""
_NO_NAMES = """\
import _socket, socket


def nameless(address):
    raise socket.herror(1, "names are not looked up here")


_socket.gethostbyaddr = socket.gethostbyaddr = nameless
"""
"""What its Python begins with: the server in it would ask the name server for the name of its own address."""


class Pywb:
    """A running pywb. It ends with this process at the latest."""

    def __init__(self, run: ChildRun, host: str, port: int) -> None:
        self._run, self.host, self.port = run, host, port

    @classmethod
    def start(cls, registry: ProcessRegistry, scratch: Path, index: str, records: str) -> Pywb:
        """Start it and wait until it answers. Raises UsageError when it is missing, ProcessError when it ends."""
        command = _command()
        home = scratch / "pywb"
        home.mkdir()
        config = _CONFIG.format(collection=COLLECTION, index=index, records=records)
        (home / "config.yaml").write_text(config)
        (home / "sitecustomize.py").write_text(_NO_NAMES)
        host = hidden_address()
        with closing(free_socket(host)) as taken:
            port = int(taken.getsockname()[1])
        arguments = [*command, "-b", host, "-p", str(port), "-d", str(home)]
        environment = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore", "PYTHONPATH": str(home)}
        environment["HOME"] = str(home)
        run = launch(registry, arguments, label="pywb", pwd=str(home), environment=environment, background=True)
        rewriter = cls(run, host, port)
        try:
            rewriter._wait()
        except BaseException:
            rewriter.end()
            raise
        return rewriter

    def is_running(self) -> bool:
        """Whether it runs."""
        return self._run.poll() is None

    def end(self) -> None:
        """End it and all that it began."""
        self._run.terminate()

    def _wait(self) -> None:
        end = monotonic() + _PATIENCE_S
        while self.is_running() and monotonic() < end:
            with suppress(OSError):
                socket.create_connection((self.host, self.port), 1).close()
                return
            with suppress(TimeoutError):
                self._run.wait(0.1)
        raise ProcessError("pywb, which rewrites pages, has not started; muniment process list shows what it said")


def _command() -> list[str]:
    """How pywb is run: from the environment beside ours, which scripts/run makes, or as a program on the path."""
    beside = Path(sys.prefix).parent / _ENVIRONMENT / "bin"
    if (beside / "wayback").exists():
        # through its interpreter: the program's first line has the path where it was installed
        return [str(beside / "python"), str(beside / "wayback")]
    program = shutil.which("wayback")
    if program is None:
        raise UsageError(
            "pywb, which rewrites pages, is missing; install it with: pipx install pywb --preinstall 'setuptools<81'"
        )
    return [program]


def hidden_address() -> str:
    """An address of this machine alone that no web page can guess."""
    chosen = random.SystemRandom()
    return f"127.{chosen.randrange(1, 255)}.{chosen.randrange(256)}.{chosen.randrange(1, 255)}"


def free_socket(host: str, port: int = 0) -> socket.socket:
    """A socket that listens. Raises OSError when the port is taken."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(128)
    except OSError:
        listening.close()
        raise
    return listening
