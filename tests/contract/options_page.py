"""The lists of `docs/options.md`, made from the command line: what `--help` says, below the same headings."""

from __future__ import annotations

import re
from importlib import import_module

import click

from muniment.cli import _COMMANDS
from muniment.rules.changes import changeable
from muniment.settings.hooks import HookOptions
from muniment.settings.option_table import options

__all__ = ["filled", "visible_commands"]

_EVERYWHERE = ("--json", "--quiet", "--log-level [debug|info|warning|error]")
"""Told once for all commands."""
_PLACES = ("--server URL", "--token-file FILE", "--plain-http", "--ca-file FILE", "--database URL", "--state DIR")
"""Told once for all groups of a fleet's operators, with `job`."""
_AS_JOB = ("pipelines", "tokens")
_OF_SERVER = ("--token-file FILE", "--plain-http", "--ca-file FILE")
"""How a server is asked, which `job` shows for every command."""
_RANGE = re.compile(r"; [\d.<=]*\bx\b[<>=\d.]*(?=\])| ?\[[\d.<=]*\bx\b[<>=\d.]*\]")
_MADE = re.compile(r"(?ms)(^## muniment (\w+)\n(?:(?!^##? ).)*?^<!-- options -->\n).*?(?=^## )")
"""A section of a command up to its mark, the name, and what is made: all below the mark."""


def visible_commands() -> dict[str, click.Command]:
    """Each command that `muniment --help` lists, by its name."""
    found = {name: getattr(import_module(module), attribute) for name, (module, attribute) in _COMMANDS.items()}
    return {name: command for name, command in found.items() if not command.hidden}


def filled(text: str) -> str:
    """The page with its lists made anew; a command that has none yet gets a section at the end of the commands."""
    commands = visible_commands()
    for name in sorted(set(commands) - {found[2] for found in _MADE.finditer(text)}):
        text = text.replace("## JSON\n", f"## muniment {name}\n\n<!-- options -->\n## JSON\n")

    def made(found: re.Match[str]) -> str:
        return f"{found[1]}{_about(found[2], commands[found[2]])}\n"

    return _MADE.sub(made, text)


def _about(name: str, command: click.Command) -> str:
    if isinstance(command, click.Group):
        return _of_group(name, command)
    if name == "crawl":
        return _of_crawl(command)
    if name == "fetch":
        return _of_fetch(command)
    mine, crawls = _records(command), _records(visible_commands()["crawl"])
    same = [flag for flag, (_, text) in mine.items() if crawls.get(flag, ("", ""))[1] == text and name == "pipeline"]
    shared = f"Of `crawl`: {', '.join(f'`{flag.split()[0].rstrip(chr(44))}`' for flag in same)}.\n\n" if same else ""
    names = (
        f"Names: {', '.join(f'`{one}`' for one in (*changeable(), 'explanation', 'nice'))}.\n\n"
        if name == "set"
        else ""
    )
    return names + shared + _list([(flag, text) for flag, (_, text) in mine.items() if flag not in same])


def _of_crawl(command: click.Command) -> str:
    """A list for each heading of the settings."""
    groups = {name: option.group for name, _, _, option in (*options("crawl"), *options(None, HookOptions))}
    groups["retry_failed"] = groups["tries"]
    below: dict[str, list[tuple[str, str]]] = {}
    for flag, (name, text) in _records(command).items():
        below.setdefault(groups[name], []).append((flag, text + _marks(name)))
    return "\n".join(f"### {heading}\n\n{_list(rows)}" for heading, rows in below.items())


def _of_fetch(command: click.Command) -> str:
    crawls = {name: default for name, _, default, _ in options("crawl")}
    other = {name for name, _, default, _ in options("fetch") if crawls.get(name, default) != default}
    rows = [
        (flag, text + _marks(name))
        for flag, (name, text) in _records(command).items()
        if name in other or name not in {*crawls, *HookOptions.__struct_fields__, "retry_failed"}
    ]
    lacks = [f"`{option.flags[0]}`" for _, _, _, option in options("crawl") if option.only == "crawl"]
    return f"It takes the options of `crawl` but {', '.join(lacks)}, with these additions and other defaults:\n\n" + (
        _list(rows)
    )


def _of_group(name: str, group: click.Group) -> str:
    settings = {name for name, _, _, _ in options()} - {"state", "database", "out"}
    rows: dict[tuple[str, str], list[str]] = {}
    for command in group.commands.values():
        for flag, (parameter, text) in _records(command).items():
            if command.name == "add" and parameter in settings and name == "job":
                continue
            if (name, command.name) == ("hooks", "run") and parameter in HookOptions.__struct_fields__:
                continue
            if name == "process" and flag in _OF_SERVER:
                continue
            if flag not in _PLACES or name not in _AS_JOB:
                rows.setdefault((flag, text), []).append(str(command.name))
    every = len(group.commands)
    options_of = [
        (flag, text if len(names) == every or (name == "job" and flag in _PLACES) else f"{_commas(names)}: {text}")
        for (flag, text), names in rows.items()
    ]
    does = [f"- `{name} {_usage(command)}`: {_prose(_about_line(command))}\n" for command in group.commands.values()]
    return "".join(does) + (f"\nOptions:\n\n{_list(options_of)}" if options_of else "")


def _about_line(command: click.Command) -> str:
    return " ".join((command.help or "").split("\n\n", maxsplit=1)[0].split()).split("\f", maxsplit=1)[0].strip()


def _usage(command: click.Command) -> str:
    pieces = [piece for piece in command.collect_usage_pieces(click.Context(command)) if piece != "[OPTIONS]"]
    return " ".join([str(command.name), *pieces])


def _records(command: click.Command) -> dict[str, tuple[str, str]]:
    """Each option as `--help` spells it, with the name of its parameter and its help on one line."""
    context = click.Context(command, info_name=command.name)
    found: dict[str, tuple[str, str]] = {}
    for param in command.params:
        record = param.get_help_record(context) if isinstance(param, click.Option) else None
        if record and not record[0].startswith(_EVERYWHERE):
            found[record[0]] = (str(param.name), " ".join(record[1].split()))
    return found


def _marks(name: str) -> str:
    option = {one: option for one, _, _, option in options()}.get(name)
    if option is None:
        return ""
    return " *Fixed.*" if option.on_resume == "fixed" else " *Live.*" if option.live else ""


def _list(rows: list[tuple[str, str]]) -> str:
    return "".join(_line(flag, text) for flag, text in rows)


def _line(flag: str, text: str) -> str:
    """A line of a list, without the range of a number; the default is what the help has in brackets or parentheses."""
    default, text = "", _RANGE.sub("", text)
    for found in re.finditer(r" ?\[(default: )?([^\]]*)\]| \(default: ([^)]*)\)", text):
        inner = found[2] if found[1] else found[3]
        if inner:
            plain = re.sub(r"^\((.*)\)$", r"\1", inner.split(";")[0])
            default, text = f" Default: {plain}.", text.replace(found[0], "", 1)
        elif found[2] == "required":
            default, text = " Required.", text.replace(found[0], "", 1)
    about, mark = re.fullmatch(r"(.*?)( \*\w+\.\*)?", text).groups(default="")
    return f"- `{flag}`: {_prose(about.rstrip('.') + '.' + default)}{mark}\n"


def _prose(text: str) -> str:
    """The text with its asterisks as such, which could be read as emphasis."""
    return re.sub(r"\*(?=[=.][A-Za-z])", r"\\*", text)


def _commas(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
