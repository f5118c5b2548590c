"""The output directories of this user's crawls, and the command of each, as the rows of their processes name them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from muniment.errors import MunimentError
from muniment.model.mask import MASK
from muniment.model.process import Process
from muniment.settings.option_table import Settings
from muniment.tracker.processes.sqlite import processes_of

__all__ = ["RunCommand", "command_of_run", "known_runs"]

_MOST = 2_000
_CRAWLS = ("crawl", "fetch")
_LAST_VERB = 3
_STREAMS = ("-", "-i-", "--input=-")


class RunCommand(Struct, frozen=True):
    """The command line of a run, as far as it is kept."""

    arguments: tuple[str, ...]
    """From `crawl` or `fetch` on, secrets masked."""
    directory: str
    """Where it was given."""

    @property
    def text(self) -> str:
        """As a shell takes it."""
        return shlex.join(["muniment", *self.arguments])

    @property
    def lack(self) -> str:
        """What it cannot be given again without; empty when it can be."""
        if secret := _secret_of(self.arguments):
            return f"{secret} is secret, and nothing keeps it"
        if any(one in _STREAMS for one in self.arguments):
            return "its list came from standard input, and nothing keeps it"
        return "" if Path(self.directory).is_dir() else f"{self.directory} is gone, where it was given"


def known_runs(home: Path) -> Iterator[Path]:
    """The directories that commands with rows in a store were given; some may be gone."""
    for command in _commands(home):
        yield _output_of(command)


def command_of_run(home: Path, out: Path) -> RunCommand | None:
    """The last command that was given for a directory; None when the store has no row of it."""
    return next((command for command in _commands(home) if _output_of(command).resolve() == out.resolve()), None)


def _commands(home: Path) -> Iterator[RunCommand]:
    """The commands of crawls, the newest first."""
    try:
        store = processes_of(home, "", must_be_there=True)
        rows = store.newest(_MOST, roots_only=True, looks_too=False)
    except MunimentError:
        return
    store.close()
    for row in rows:
        if (begin := _place_of_verb(row)) is not None:
            yield RunCommand(row.cmd[begin:], row.pwd)


def _place_of_verb(row: Process) -> int | None:
    """Where `crawl` or `fetch` is in a command: after `muniment`, its Python, or `python -m muniment`."""
    if row.process_type != "cli":
        return None
    return next((at for at, word in enumerate(row.cmd[: _LAST_VERB + 1]) if at and word in _CRAWLS), None)


def _output_of(command: RunCommand) -> Path:
    return Path(command.directory) / _directory(command.arguments)


def _directory(command: Sequence[str]) -> str:
    out, run_id = Settings().out, ""
    for word, following in zip(command, [*command[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name in ("-o", "--out"):
            out = value if equals else following
        elif name == "--run-id":
            run_id = value if equals else following
        elif word.startswith("-o") and not word.startswith("--"):
            out = word[2:]
    return f"{out}/{run_id}" if run_id else out


def _secret_of(arguments: Sequence[str]) -> str:
    """What of a command is masked."""
    for word, before in zip(arguments, ["", *arguments], strict=False):
        if MASK in word:
            option = word.partition("=")[0] if word.startswith("--") else before
            return option if option.startswith("-") else "the account of a URL"
    return ""
