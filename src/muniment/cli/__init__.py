"""The command line: parse, call the composition root or a control, render. Each command is imported when it is used."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import NoReturn

import click

from muniment import __version__
from muniment.errors import MunimentError
from muniment.model.advice import NO_MEMORY

__all__ = ["entry", "main"]

_COMMANDS = {
    "crawl": ("muniment.cli.crawl", "crawl"),
    "fetch": ("muniment.cli.crawl", "fetch"),
    "inspect": ("muniment.cli.inspect", "inspect"),
    "check": ("muniment.cli.check", "check"),
    "why": ("muniment.cli.why", "why"),
    "set": ("muniment.cli.set", "set_"),
    "ignores": ("muniment.cli.ignores", "ignores"),
    "process": ("muniment.cli.process", "process"),
    "worker": ("muniment.cli.worker", "worker"),
    "index": ("muniment.cli.index", "index"),
    "sweep": ("muniment.cli.sweep", "sweep"),
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name]
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="muniment", message="%(prog)s %(version)s")
def _muniment() -> None:
    """Archive web pages exactly as servers send them: WARC files with a columnar index."""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line; exits with the contract's codes, an error being one line on standard error."""
    if not hasattr(os, "fork"):
        _complain("Muniment runs on Linux and macOS: this system has no fork and no locks of Unix")
        sys.exit(2)
    try:
        code = _muniment.main(arguments, prog_name="muniment", standalone_mode=False)
    except click.ClickException as error:
        _complain(error.format_message())
        sys.exit(2)
    except click.Abort:
        _complain("interrupted; give the same command again")
        sys.exit(3)
    except MunimentError as error:
        _complain(str(error))
        sys.exit(error.exit_code)
    except MemoryError:
        _complain(NO_MEMORY)
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    sys.exit(code if isinstance(code, int) else 0)


def entry() -> NoReturn:
    """Run the command line and leave at once: to free each object of a large crawl first would take a while."""
    # What a batch of pages brings is more than the 700 objects after which Python looks for circles by default.
    gc.set_threshold(50_000, 20, 100)
    if sys.argv[1:2] == ["index"]:
        # Where numpy is installed pyarrow loads it, which takes longer than pyarrow itself; an index needs none of it.
        sys.modules["numpy"] = None  # type: ignore[assignment]
    code: object = 1
    try:
        main()
    except SystemExit as end:
        code = end.code
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        pass  # nobody reads it any more
    os._exit(code if isinstance(code, int) else 0)


def _complain(text: str) -> None:
    print(f"muniment: {' '.join(text.split())}", file=sys.stderr)
