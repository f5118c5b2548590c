"""Changes of a running crawl's settings: which may be changed, how they are written, and how they outlast a resume."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args, get_origin

from msgspec import structs

from muniment.errors import UsageError
from muniment.model.change import ChangeMade
from muniment.settings.option_table import DelayRange, Option, Settings, options
from muniment.settings.values import RENDER_TEXTS, parse_number

__all__ = [
    "as_assignment",
    "change_settings",
    "changeable",
    "kept_settings",
    "parse_assignments",
    "parse_nice",
    "written_value",
    "written_values",
]

NONE = "none"
"""How the absence of a limit is written."""
_EXAMPLE = "delay=250"


def changeable() -> list[str]:
    """The names that `muniment set` takes."""
    return [name.replace("_", "-") for name, _, _, option in options() if option.live]


def parse_assignments(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Name and value of each `NAME=VALUE`; raises UsageError for anything else."""
    made = []
    for number, text in enumerate(texts, 1):
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{text!r} is not NAME=VALUE, as in {_meant(text, texts[number:])}")
        made.append((name.strip(), value.strip()))
    return tuple(made)


def as_assignment(option: str, rest: Sequence[str]) -> str | None:
    """How an option, with what follows it, is written as `NAME=VALUE`; None for what no change sets."""
    name, equals, value = option.lstrip("-").partition("=")
    return _meant(name, [value] if equals else rest) if name in changeable() else None


def _meant(name: str, rest: Sequence[str]) -> str:
    if name not in changeable():
        return _EXAMPLE
    return f"{name}={rest[0]}" if rest and "=" not in rest[0] and rest[0][:1] != "-" else f"{name}=VALUE"


def parse_nice(text: str) -> int | None:
    """A nice value as written, or None for `none`; raises UsageError."""
    if text == NONE:
        return None
    try:
        return int(text)
    except ValueError:
        raise UsageError(
            f"nice: {text!r} is not a whole number; write nice=-5, or nice=none to remove a value"
        ) from None


def change_settings(before: Settings, values: Sequence[tuple[str, str]]) -> tuple[Settings, tuple[ChangeMade, ...]]:
    """The settings with new values, and what changed; raises UsageError for an invalid name or value."""
    given = _given(values)
    after = structs.replace(before, **given)
    changed = tuple(
        ChangeMade(field.replace("_", "-"), written_value(getattr(before, field)), written_value(getattr(after, field)))
        for field in given
        if getattr(before, field) != getattr(after, field)
    )
    return after, changed


def written_values(values: Sequence[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """Name and value of each as the audit has them; raises UsageError for an invalid one."""
    return frozenset((field.replace("_", "-"), written_value(value)) for field, value in _given(values).items())


def _given(values: Sequence[tuple[str, str]]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name, text in values:
        field, kind, default, option = _find(name)
        given[field] = default if text == NONE and default is None else _parse(name, kind, option, text)
    return given


def _find(name: str) -> tuple[str, Any, Any, Option]:
    flag = "--" + name.removeprefix("--").replace("_", "-")
    for field, kind, default, option in options():
        if flag in option.flags:
            if option.live:
                return field, kind, default, option
            raise UsageError(f"{name} cannot be changed while a crawl runs; {', '.join(changeable())} can")
    raise UsageError(f"there is no setting {name!r}; {', '.join(changeable())} can be changed")


def _parse(name: str, kind: Any, option: Option, text: str) -> Any:
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            raise UsageError(f"{name}: {text!r} is not one of {', '.join(get_args(kind))}")
        return text
    try:
        if option.flags[0] in RENDER_TEXTS:
            return RENDER_TEXTS[option.flags[0]](text)
        return parse_number(kind, option, text)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None


def written_value(value: Any) -> str:
    """A value as a command line writes it."""
    if isinstance(value, DelayRange):
        return str(value.low) if value.low == value.high else f"{value.low}-{value.high}"
    return NONE if value is None else str(value)


def kept_settings(in_force: Settings, given_before: Settings, given_now: Settings) -> Settings:
    """The settings of a resumed run: a changed value stays while the command line says of it what it said before."""
    kept = {
        name: getattr(in_force, name)
        for name, _, _, option in options()
        if option.live and getattr(given_now, name) == getattr(given_before, name)
    }
    return structs.replace(given_now, **kept)
