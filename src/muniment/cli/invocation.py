"""One invocation of the command line: its groups of commands, and the row that each command has while it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from muniment.cli.streams import reader_has_gone
from muniment.errors import MunimentError

if TYPE_CHECKING:
    from muniment.app.processes import CommandRow

__all__ = ["KEEP_THEIR_OWN", "Group", "Invocation"]

KEEP_THEIR_OWN = frozenset({"crawl", "fetch", "serve"})
"""Commands that choose the store of their rows themselves; the rows of the others are in the user's own store."""
_WHOLE = 10_000
"""Characters of a sentence in a list of commands."""


class Invocation:
    """A command line from when its arguments were understood: all commands get it, and none can do without its row."""

    def __init__(self) -> None:
        self._row: CommandRow | None = None

    @property
    def row(self) -> CommandRow:
        """The row of this command line."""
        assert self._row is not None, "the row is begun before any command"
        return self._row

    def begin(self, command: str) -> None:
        """Begin the row, and let what ends the command end it in good order."""
        from muniment.app.processes import CommandRow  # noqa: PLC0415  (help and complaints need none of it)
        from muniment.app.signals import heard_from_the_start  # noqa: PLC0415  (as above)

        heard_from_the_start()
        self._row = CommandRow(command)
        if command not in KEEP_THEIR_OWN:
            self._row.begin()

    def leave(self, exit_code: int) -> None:
        """Note how it ends; nothing for what never began."""
        if self._row is not None:
            self._row.leave(exit_code)


class Group(click.Group):
    """Commands, each of which is a row while it runs; the list of them shows whole sentences."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the arguments; a group of commands without one of them is wrong use, `muniment` alone asks for help."""
        if not args and ctx.parent is not None:
            raise click.UsageError(f"no command given; `{ctx.command_path} --help` lists them", ctx)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of a name, with its row; a complaint names what is near."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            raise click.UsageError(_unknown(args[0], self._shown(ctx), ctx.command_path), ctx)
        name, command, rest = super().resolve_command(ctx, args)
        if command is None or command.hidden or command.callback is None or isinstance(command, click.Group):
            return name, command, rest
        recorded = copy(command)
        path = " ".join([*ctx.command_path.split()[1:], str(name)])
        recorded.callback = partial(_recorded, command.callback, path)
        return name, recorded, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        commands = [(name, command) for name in self._shown(ctx) if (command := self.get_command(ctx, name))]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(_WHOLE)) for name, command in commands])

    def _shown(self, ctx: click.Context) -> Sequence[str]:
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        return [name for name, command in found if command is not None and not command.hidden]


def _recorded(callback: Callable[..., Any], path: str, /, *arguments: Any, **given: Any) -> Any:
    invocation = click.get_current_context().find_object(Invocation)
    assert invocation is not None
    invocation.begin(path)
    try:
        return callback(*arguments, **given)
    except BrokenPipeError as error:
        if not reader_has_gone():
            raise MunimentError(f"a process of this command has ended: {error.strerror}") from error
        return 0  # who reads no further has what it wanted
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        return 0  # Rich has found the same


def _unknown(name: str, known: Sequence[str], path: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415  (for this complaint alone)

    near = " or ".join(get_close_matches(name, known, n=2))
    remedy = f"did you mean {near}?" if near else f"`{path} --help` lists them"
    return f"there is no command {name!r}; {remedy}"
