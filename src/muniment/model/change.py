"""Changes of a crawl's settings and patterns: as asked for, and as carried out. They travel as lines of JSON."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["AddIgnore", "Answer", "Change", "Changed", "RemoveIgnore", "SetValues"]


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


Change = SetValues | AddIgnore | RemoveIgnore


class Changed(Struct, frozen=True):
    """One thing that changed."""

    what: str
    """The setting's name, or `ignores`."""
    before: str
    after: str


class Answer(Struct, frozen=True):
    """What became of a change; `error` is one line for a person when nothing did."""

    changes: tuple[Changed, ...] = ()
    error: str = ""
