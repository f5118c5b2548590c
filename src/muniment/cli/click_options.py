"""Click options made from the settings table, so that a setting is spelled once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin

import click
from msgspec import structs

from muniment.cli.streams import start_log
from muniment.errors import UsageError
from muniment.http.added_headers import parse_agent, parse_contact, parse_header
from muniment.rules.rendering.needs_browser import with_engine
from muniment.settings.environment import array_task, contact_given
from muniment.settings.hooks import HookOptions
from muniment.settings.option_table import Command, DelayRange, Option, Settings, defaults, options
from muniment.settings.rendering import RenderSettings
from muniment.settings.values import (
    RENDER_TEXTS,
    is_number,
    parse_name,
    parse_number,
    parse_place,
    parse_proxy,
)

__all__ = [
    "PLACE",
    "SettingsCommand",
    "click_option",
    "hook_options",
    "log_option",
    "machine_options",
    "out_option",
    "read_hook_options",
    "read_settings",
    "retry_option",
    "setting_options",
    "state_option",
    "with_array_task",
]

_F = TypeVar("_F", bound=Callable[..., Any])
_TEXTS: dict[str, Callable[[str], Any]] = {
    "--contact": parse_contact,
    "--header": parse_header,
    "--input": parse_place,
    "--out": parse_place,
    "--prefix": parse_name,
    "--proxy": parse_proxy,
    "--run-id": parse_name,
    "--state": parse_place,
    "--user-agent": parse_agent,
    "--browser-path": parse_place,
    "--custom-js": parse_place,
    "--storage-state": parse_place,
    **RENDER_TEXTS,
}
"""Options whose text has a grammar."""
_HOUR_S = 3600
_AUTO = -1
"""A shard that the environment names."""
_OTHER = "Other"
"""The heading of options that are not settings."""


class _Parsed(click.ParamType[Any, Any]):
    """A value that one of our own parsers reads; its complaint becomes Click's."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name, self._parse = name, parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except UsageError as error:
            self.fail(str(error), param, ctx)


PLACE = _Parsed("path", parse_place)
"""The type of an argument that names a file or a directory."""


def _start_log(_context: click.Context, _parameter: click.Parameter, level: str) -> None:
    start_log(level)


log_option = click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    expose_value=False,
    callback=_start_log,
    help="Log messages of this level and above to standard error. [default: warning]",
)


_directory = click.Path(path_type=Path, exists=True, file_okay=False)
out_option = click.option("-o", "--out", required=True, type=_directory, help="Output directory.")
state_option = click.option(
    "--state", type=_directory, help="Directory of the tracker (default: the output directory)."
)

retry_option = click.option("--retry-failed", is_flag=True, help="Try failed pages again, also of a finished job.")


class SettingsCommand(click.Command):
    """A command whose help has the headings of the settings table."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, each below its heading."""
        tables = options(), options(None, HookOptions)
        groups = {name: option.group for table in tables for name, _, _, option in table}
        groups["retry_failed"] = groups["tries"]
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record and isinstance(param, click.Option):
                sections.setdefault(groups.get(str(param.name), _OTHER), []).append(record)
        sections[_OTHER] = sections.pop(_OTHER)  # last
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def setting_options(command: Command) -> Callable[[_F], _F]:
    """Give a command its options of the settings table."""

    def give(function: _F) -> _F:
        for name, kind, default, option in reversed(list(options(command))):
            function = click_option(name, kind, default, option)(function)
        return function

    return give


def hook_options(function: _F) -> _F:
    """Give a command the options of hooks."""
    for name, kind, default, option in reversed(list(options(None, HookOptions))):
        function = click_option(name, kind, default, option)(function)
    return function


def read_hook_options(given: dict[str, Any]) -> HookOptions:
    """What a command line says of hooks; takes it out of what was given."""
    values = {name: given.pop(name, None) for name in HookOptions.__struct_fields__}
    return HookOptions(**{name: value for name, value in values.items() if value not in (None, ())})


_OF_A_MACHINE = frozenset({
    "workers", "inflight", "warc_size", "min_free", "prefix", "proxy", "auth_file", "header", "insecure",
    "allow_private", "browser_path", "tabs", "browser_memory",
})  # fmt: skip
"""Settings that a pipeline has, whatever its jobs say."""


def machine_options(function: _F) -> _F:
    """Give a command the options of a machine that works at jobs of others."""
    for name, kind, default, option in reversed(list(options("crawl"))):
        if name in _OF_A_MACHINE:
            function = click_option(name, kind, default, option)(function)
    return function


def click_option(name: str, kind: Any, default: Any, option: Option, *, hidden: bool = False) -> Callable[[_F], _F]:
    """A setting as an option; its value stays empty when it is not on the command line."""
    flags = list(option.flags)
    kinds = [k for k in get_args(kind) if k is not NoneType] if get_origin(kind) not in {tuple, Literal} else [kind]
    plain = kinds[0] if kinds else kind
    text = option.help
    if plain is bool:
        if option.off:
            flags[0] = f"{flags[0]}/{option.off}"
            text += f" [default: {'on' if default else 'off'}]"
        return click.option(name, *flags, is_flag=True, default=None, help=text, hidden=hidden)
    if words := _words(option):
        text += f" One of {', '.join(words)}."
    common: dict[str, Any] = {
        "default": None,
        "help": text + _shown(default, option),
        "metavar": option.metavar or None,
        "hidden": hidden,
    }
    if get_origin(plain) is tuple:
        return click.option(name, *flags, multiple=True, type=_type(str, option), **{**common, "default": ()})
    return click.option(name, *flags, type=_type(plain, option), **common)


def _words(option: Option) -> list[str]:
    """What an option takes, where another table has its words."""
    if option.flags[0] != "--from":
        return []
    from muniment.seeds.formats import FORMATS  # noqa: PLC0415  (a crawl needs none of it)

    return list(FORMATS)


def _parse_shard(kind: Any, option: Option, text: str) -> Any:
    return _AUTO if text.strip() == "auto" else parse_number(kind, option, text)


def _type(kind: Any, option: Option) -> Any:
    if option.flags[0] == "--shard":
        return _Parsed("number", partial(_parse_shard, kind, option))
    if is_number(option):
        return _Parsed("number", partial(parse_number, kind, option))
    if words := _words(option):
        return click.Choice(words)
    if get_origin(kind) is Literal:
        return click.Choice(list(get_args(kind)))
    return _Parsed("text", _TEXTS[option.flags[0]]) if option.flags[0] in _TEXTS else str


def _shown(default: Any, option: Option) -> str:
    if default in (None, "", ()):
        return ""
    return f" [default: {_written(default, option)}]"


def _written(default: Any, option: Option) -> str:
    """A default as people write it: `1 GiB`, `43200 (12 h)`."""
    if isinstance(default, DelayRange):
        return str(default.low)
    if option.metavar == "BYTES":
        return f"{default / (1 << 30):g} GiB" if default >= 1 << 30 else f"{default / (1 << 20):g} MiB"
    if isinstance(default, float):
        hours = f" ({default / _HOUR_S:g} h)" if default >= _HOUR_S else ""
        return f"{default:g}{hours}"
    return str(default)


def read_settings(command: Command, given: dict[str, Any]) -> Settings:
    """The settings of a command line."""
    values = {}
    given = with_array_task(given)
    for name, _, _, _ in options(command):
        value = given.get(name)
        if value is None or value == ():
            continue
        values[name] = value
    if "contact" not in values:
        values["contact"] = _contact_of_environment()
    settings = structs.replace(defaults(command), **values)
    settings = with_engine(settings, values)
    _check_engine(settings, values)
    return settings


_OF_ENGINES = frozenset({"engine", "browser", "browser_path"})


def _check_engine(settings: Settings, given: dict[str, Any]) -> None:
    """Raise UsageError for what only goes with a browser, and there is none."""
    if settings.engine != "http":
        return
    for name, _, _, option in options():
        if name in given and name in RenderSettings.__struct_fields__ and name not in _OF_ENGINES:
            raise UsageError(f"{option.flags[0]} is for pages in a browser: add --browser or --engine auto")


def with_array_task(given: dict[str, Any]) -> dict[str, Any]:
    """What was given, with the numbers of the environment for `--shard auto`; raises UsageError."""
    if given.get("shard") != _AUTO:
        return given
    task = array_task()
    if task is None:
        raise UsageError(
            "--shard auto: neither JOB_COMPLETION_INDEX nor SLURM_ARRAY_TASK_ID is set: run it in an Indexed Job or an "
            "array, or write the number"
        )
    shards = given.get("shards") or task.count
    if shards is None:
        raise UsageError("--shard auto: the environment does not say how many tasks there are: give --shards N")
    return {**given, "shard": task.index, "shards": shards}


def _contact_of_environment() -> str:
    given = contact_given()
    try:
        return parse_contact(given) if given else ""
    except UsageError as error:
        raise UsageError(f"MUNIMENT_CONTACT: {error}") from None
