"""The command line: parse, call the composition root or a control, render. Each command is imported when it is used.

A module for each command, or a folder; `click_options` makes options of the table of settings, `display` what a crawl
shows.

Others import: nothing.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import NoReturn

import click
from click.exceptions import NoArgsIsHelpError

from muniment import __version__
from muniment.cli.invocation import Group, Invocation
from muniment.cli.streams import OURS, Complaints, end_streams, open_streams, reader_has_gone, wants_json
from muniment.errors import MunimentError
from muniment.model.failure import NO_MEMORY, advice
from muniment.model.mask import mask_of, redact
from muniment.model.names import is_text, no_text, told_name

__all__ = ["entry", "main"]

_COMMANDS = {
    "crawl": ("muniment.cli.crawl", "crawl"),
    "fetch": ("muniment.cli.crawl", "fetch"),
    "inspect": ("muniment.cli.inspect", "inspect"),
    "check": ("muniment.cli.check", "check"),
    "export": ("muniment.cli.export", "export"),
    "replay": ("muniment.cli.pages.replay", "replay"),
    "dashboard": ("muniment.cli.pages.dashboard", "dashboard"),
    "why": ("muniment.cli.why", "why"),
    "results": ("muniment.cli.results", "results"),
    "live": ("muniment.cli.live.plane", "live"),
    "firehose": ("muniment.cli.live.firehose", "firehose"),
    "set": ("muniment.cli.set", "set_"),
    "job": ("muniment.cli.fleet.changes", "job"),
    "pipelines": ("muniment.cli.fleet.pipelines", "pipelines"),
    "tokens": ("muniment.cli.fleet.tokens", "tokens"),
    "ignores": ("muniment.cli.ignores", "ignores"),
    "hooks": ("muniment.cli.hooks", "hooks"),
    "pipeline": ("muniment.cli.pipeline", "pipeline"),
    "process": ("muniment.cli.process", "process"),
    "serve": ("muniment.cli.serve", "serve"),
    "worker": ("muniment.cli.worker", "worker"),
    "dry-run": ("muniment.cli.worker", "dry_run"),
    "hook-worker": ("muniment.cli.hooks", "hook_worker"),
    "index": ("muniment.cli.index", "index"),
    "sweep": ("muniment.cli.sweep", "sweep"),
}


_MOST_TOLD = 200
"""Characters of a text that cannot be taken."""


class _Commands(Group):
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
    """Run the command line; exits with a documented code, an error being one line on standard error."""
    given = sys.argv[1:] if arguments is None else arguments
    if not hasattr(os, "pidfd_open"):
        _complain("Muniment runs on Linux, by a Python that has pidfd_open", as_json=wants_json(given))
        sys.exit(2)
    for option, one in zip(["", *given], given, strict=False):
        if not is_text(one):
            _complain(_no_text(option, one), as_json=wants_json(given))
            sys.exit(2)
    invocation, code = Invocation(), 1
    try:
        code = _run(given, invocation)
    finally:
        invocation.leave(code)
    sys.exit(code)


def _no_text(option: str, argument: str) -> str:
    argument = (mask_of(option) or redact)(argument)
    if sys.getfilesystemencoding() == "utf-8":
        return no_text(argument)
    return f"'{told_name(argument)}' cannot be read in this locale; set LC_ALL=C.UTF-8"


def _run(arguments: list[str], invocation: Invocation) -> int:
    """The exit code of a command line, and the complaint that goes with it."""
    as_json = wants_json(arguments)
    try:
        code = _muniment.main(arguments, prog_name="muniment", standalone_mode=False, obj=invocation)
    except NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0
    except click.Abort:
        _complain("interrupted; give the same command again", as_json=as_json)
        return 3
    except Exception as error:
        text, code = _told(error)
        if text is None and not as_json:
            raise
        _complain(text or f"internal error: {type(error).__name__}: {error}", as_json=as_json)
    except SystemExit:
        # Click's word for help that nobody reads
        if not reader_has_gone():
            raise
        return 0
    return code if isinstance(code, int) else 0


def _told(error: Exception) -> tuple[str | None, int]:
    """What is said of an error, and the exit code; nothing of one that is a fault of this program."""
    match error:
        case click.ClickException():
            return error.format_message(), 2
        case MunimentError():
            return str(error), error.exit_code
        case UnicodeError():
            return _of_a_name(error), 2
        case MemoryError():
            return NO_MEMORY, 1
        case OSError():
            place = error.filename or "standard output or a file"
            return f"{place} cannot be used: {error.strerror or error}{advice(error.errno)}", 1
    return None, 1


def _of_a_name(error: UnicodeError) -> str:
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
        return no_text(error.object[:_MOST_TOLD])
    return f"invalid name: {error}"


def entry() -> NoReturn:
    """Run the command line and leave at once: to free each object of a large crawl first would take a while."""
    # What a batch of pages brings is more than the 700 objects after which Python looks for circles by default.
    gc.set_threshold(50_000, 20, 100)
    if sys.argv[1:2] in (["index"], ["hooks"]):
        # Where numpy is installed pyarrow loads it, which takes longer than pyarrow itself; these need none of it.
        sys.modules["numpy"] = None  # type: ignore[assignment]
    _prepare_streams(as_json=wants_json(sys.argv[1:]))
    code: object = 1
    try:
        main()
    except SystemExit as end:
        code = end.code
    except KeyboardInterrupt:
        code = 3  # once more, while the row was being left
    end_streams()
    os._exit(code if isinstance(code, int) else 0)


def _prepare_streams(*, as_json: bool) -> None:
    open_streams()
    if as_json:
        from muniment.cli.json_lines import JsonComplaints  # noqa: PLC0415  (what needs no JSON begins sooner)

        JsonComplaints.take_over()
    else:
        Complaints.take_over()


def _complain(text: str, *, as_json: bool) -> None:
    """Say on standard error, in one line, why the command ends."""
    if as_json:
        from muniment.cli.json_lines import json_line  # noqa: PLC0415  (as above)

        print(json_line("error", text), file=sys.stderr)
    else:
        print(f"{OURS}{' '.join(told_name(text).split())}", file=sys.stderr)
