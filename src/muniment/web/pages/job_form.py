"""The form of a new job: the options of the command line that a job may have, as fields."""

from __future__ import annotations

from functools import cache
from typing import Literal, get_args, get_origin

from msgspec import Struct

from muniment.rules.changes import written_value
from muniment.settings.option_table import options
from muniment.settings.settings_json import option_name

__all__ = ["JobField", "job_fields"]

_FIRST = ("level", "per-host", "delay", "max-pages", "ignore", "ignore-sets", "page-only", "robots")
"""What is asked for most; the rest is below them."""


class JobField(Struct, frozen=True):
    """An option of a new job."""

    name: str
    choices: tuple[str, ...]
    """Empty: any text."""
    default: str
    help: str


@cache
def job_fields(also: frozenset[str] = frozenset()) -> tuple[tuple[JobField, ...], tuple[JobField, ...]]:
    """The options that are asked for most, and the others; `also`: options of a machine by name."""
    found = {
        option_name(option): JobField(option_name(option), _choices(kind), _told(default), option.help)
        for _, kind, default, option in options("crawl")
        if option.kind == "job" or option_name(option) in also
    }
    return tuple(found.pop(name) for name in _FIRST), tuple(found.values())


def _choices(kind: object) -> tuple[str, ...]:
    if kind is bool:
        return "on", "off"
    return get_args(kind) if get_origin(kind) is Literal else ()


def _told(default: object) -> str:
    if isinstance(default, bool):
        return "on" if default else "off"
    return "" if default in (None, ()) else written_value(default)
