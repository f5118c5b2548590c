"""Changes of a crawl's settings and patterns: as asked for, and as carried out. They travel as lines of JSON."""

from __future__ import annotations

from msgspec import Struct

from muniment.model.rule import Rule

__all__ = [
    "AddIgnore",
    "AddSet",
    "Change",
    "ChangeMade",
    "ChangeReply",
    "Removal",
    "RemoveIgnore",
    "RemoveSet",
    "SetNice",
    "SetRules",
    "SetValues",
]  # fmt: skip


class SetValues(Struct, frozen=True, tag=True):
    """New values for settings."""

    who: str
    values: tuple[tuple[str, str], ...]
    """Name and value, as written."""


class AddIgnore(Struct, frozen=True, tag=True):
    """One more ignore pattern."""

    who: str
    pattern: str


class RemoveIgnore(Struct, frozen=True, tag=True):
    """An ignore pattern is to go."""

    who: str
    pattern: str


class AddSet(Struct, frozen=True, tag=True):
    """All patterns of a built-in ignore set."""

    who: str
    name: str


class RemoveSet(Struct, frozen=True, tag=True):
    """A whole ignore set is to go."""

    who: str
    name: str


class SetRules(Struct, frozen=True, tag=True):
    """Other rules in place of those in force; the patterns stay."""

    who: str
    rules: tuple[Rule, ...]


class SetNice(Struct, frozen=True, tag=True):
    """Another nice value for pages of a host, or whose URLs begin so, or both."""

    who: str
    host: str
    prefix: str
    nice: int | None
    """None: what was said of just these before holds no more."""


Removal = RemoveIgnore | RemoveSet
"""What may bring pages back, and keeps none out."""
Change = SetValues | AddIgnore | AddSet | SetRules | SetNice | Removal


class ChangeMade(Struct, frozen=True):
    """One thing that changed."""

    what: str
    """The setting's name, or `ignores`."""
    before: str
    after: str


class ChangeReply(Struct, frozen=True):
    """The answer to a change; `error` is one line for people if nothing changed."""

    changes: tuple[ChangeMade, ...] = ()
    error: str = ""
