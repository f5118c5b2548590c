"""Settings of a job as a network sends them, read into the table's types; what belongs to a machine is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from msgspec import structs

from muniment.errors import UsageError
from muniment.http.added_headers import given_header, parse_agent, parse_contact
from muniment.model.mask import redact
from muniment.rules.rendering.needs_browser import with_engine
from muniment.settings.option_table import Command, Option, Settings, defaults, options
from muniment.settings.values import RENDER_TEXTS, is_number, parse_number

__all__ = ["changed_values", "option_value", "refusal_of", "settings_of_values", "written_values"]

_MOST_TEXT = 10_000
"""Characters of a value."""
_SWITCHES = {"on": True, "true": True, "off": False, "false": False}
_NONE = "none"
_REMEDIES = {
    "machine": "belongs to the machine that fetches: give it to `muniment pipeline`",
    "run": "is for one run of a crawl: a job of a fleet has several; limit it with max-pages or max-bytes",
    "file": "names a file: the command reads it and sends what is in it",
}


def settings_of_values(values: Mapping[str, Any], command: Command) -> Settings:
    """The settings of a job; raises UsageError for a name or a value that makes no sense."""
    given = {}
    for name, value in values.items():
        field, kind, default, option = _found(name, command)
        if refusal := refusal_of(name, option):
            raise UsageError(refusal)
        try:
            given[field] = option_value(kind, default, option, value)
        except UsageError as error:
            raise UsageError(f"{name}: {error}") from None
        if name.replace("_", "-") == option.off.removeprefix("--"):
            given[field] = not given[field]
    return with_engine(structs.replace(defaults(command), **given), given)


def changed_values(values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Names and values of settings to change, as a command line writes them; raises UsageError.

    Whether the values make sense `rules.changes` says.
    """
    for name in values:
        option = _named(name)[3]
        if refusal := refusal_of(name, option):
            raise UsageError(refusal)
        if not option.live:
            raise UsageError(f"{name} cannot be changed once a job is made; {', '.join(_changeable())} can")
    return written_values(values)


def _changeable() -> list[str]:
    return [name.replace("_", "-") for name, _, _, one in options() if one.live and one.kind not in _REMEDIES]


def written_values(values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Names and values of settings as a command line writes them; raises UsageError for a list or a switch."""
    made = []
    for name, value in values.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float | str)):
            raise UsageError(f"{name}: it must be a number, text or null")
        made.append((name, _NONE if value is None else str(value)))
    return tuple(made)


def refusal_of(name: str, option: Option) -> str:
    """Why an option cannot be given for a job of a fleet, and what to do; empty when it can."""
    return f"{name} {_REMEDIES[option.kind]}" if option.kind in _REMEDIES else ""


def _found(name: str, command: Command) -> tuple[str, Any, Any, Option]:
    field, kind, default, option = _named(name)
    if option.only not in (None, command):
        raise UsageError(f"{name} is for jobs that {option.only}, and this one does not")
    return field, kind, getattr(defaults(command), field, default), option


def _named(name: str) -> tuple[str, Any, Any, Option]:
    flag = "--" + name.replace("_", "-")
    for found in options():
        if flag in (*found[3].flags, found[3].off):
            return found
    raise UsageError(f"there is no setting {redact(name[:60])!r}")


def option_value(kind: Any, default: Any, option: Option, value: Any) -> Any:
    """The value of an option in the table's type; raises UsageError."""
    kinds = [one for one in get_args(kind) if one is not NoneType]
    plain = kinds[0] if NoneType in get_args(kind) else kind
    if value is None or (value == _NONE and option.flags[0] not in RENDER_TEXTS):
        if default is not None:
            raise UsageError("it cannot be left empty")
        return None
    if plain is bool:
        return _switch(value)
    if get_origin(plain) is tuple:
        return tuple(_text(option, one) for one in (value if isinstance(value, list) else [value]))
    if is_number(option):
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise UsageError("it must be a number")
        return parse_number(kind, option, str(value)[:_MOST_TEXT])
    text = _text(option, value)
    if get_origin(plain) is Literal and text not in get_args(plain):
        raise UsageError(f"it must be one of {', '.join(get_args(plain))}")
    return text


def _switch(value: Any) -> bool:
    found = value if isinstance(value, bool) else _SWITCHES.get(value) if isinstance(value, str) else None
    if found is None:
        raise UsageError("it must be true or false")
    return found


def _text(option: Option, value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError("it must be text")
    if len(value) > _MOST_TEXT or "\0" in value:
        raise UsageError(f"it is longer than {_MOST_TEXT:,} characters, or contains a NUL")
    return _TEXTS.get(option.flags[0], str)(value)


def _open_header(text: str) -> str:
    """A header that every reader of the tracker may see."""
    if text.startswith("@"):
        raise UsageError("a header file is for the machine that fetches: give it to `muniment pipeline --header`")
    header = given_header(text)
    everywhere = header.place == "*" and redact(f"{header.name}: x") == f"{header.name}: x"
    if not header.harmless and not everywhere:
        raise UsageError(
            f"the header {header.name} may be a secret, which every reader of the tracker would see: give it to "
            f"`muniment pipeline --header`, or write '*={header.name}: ...' if every host may see it"
        )
    return text


_TEXTS: dict[str, Callable[[str], str]] = {
    "--contact": parse_contact,
    "--header": _open_header,
    "--user-agent": parse_agent,
    **RENDER_TEXTS,
}
