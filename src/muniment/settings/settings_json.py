"""Settings by the names of their options, as JSON values: how a network shows them and takes them."""

from __future__ import annotations

from typing import Any

from muniment.settings.option_table import Command, DelayRange, Option, Settings, defaults, options

__all__ = ["command_of", "option_name", "written_settings"]


def command_of(settings: Settings) -> Command:
    """The command whose options and defaults a job has: `fetch` for one with a list."""
    return "fetch" if settings.seed else "crawl"


def option_name(option: Option) -> str:
    """The name of an option without dashes in front."""
    return option.flags[0].removeprefix("--")


def written_settings(settings: Settings) -> dict[str, Any]:
    """The settings of a job that differ from the defaults; those that belong to a machine or a run are left out."""
    command = command_of(settings)
    before = defaults(command)
    return {
        option_name(option): _value(getattr(settings, name))
        for name, _, _, option in options(command)
        if option.kind == "job" and getattr(settings, name) != getattr(before, name)
    }


def _value(value: Any) -> Any:
    if isinstance(value, DelayRange):
        return value.low if value.low == value.high else f"{value.low}-{value.high}"
    return list(value) if isinstance(value, tuple) else value
