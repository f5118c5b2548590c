"""Changes of a job as a command line writes them: `NAME=VALUE`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muniment.errors import UsageError
from muniment.model.network.jobs import JobPatch

__all__ = ["patch_of"]

_NONE = "none"
_NUMBERS = ("nice", "max_slots", "drip")
_TERMS = (*_NUMBERS, "tags", "explanation")


def patch_of(values: Sequence[tuple[str, str]]) -> JobPatch:
    """The patch of names and values: terms by their names, all others are settings. Raises UsageError."""
    terms: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for written, value in values:
        name = written.replace("-", "_")
        if name not in _TERMS:
            settings[written] = value
        elif name in _NUMBERS:
            terms[name] = _number(written, value)
        elif name == "tags":
            terms[name] = [] if value == _NONE else [tag.strip() for tag in value.split(",") if tag.strip()]
        else:
            terms[name] = value
    return JobPatch(settings=settings, **terms)


def _number(name: str, text: str) -> int | None:
    if name.replace("-", "_") == "max_slots" and text == _NONE:
        return None
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{name}: {text[:60]!r} is not a whole number") from None
