"""What others ask of a job: the difference between what was written to Redis and what is there now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from muniment.live.layout import IN_FORCE
from muniment.model.network.live import Outside

__all__ = [
    "AGE",
    "MOST_NOTE",
    "MOST_PATTERN",
    "MOST_PATTERNS",
    "READ",
    "Reading",
    "asked",
    "own_changes",
    "whole_number",
]

AGE = "settings_age"
READ = (*IN_FORCE, AGE, "abort_requested", "failed", "url")
"""The fields that are read."""
_MOST_DIGITS = 9
MOST_NOTE, MOST_PATTERN = 1000, 2000
"""Characters of a note, and of an ignore pattern."""
MOST_PATTERNS = 10_000
"""Ignore patterns of a job."""
_LONGEST_QUOTED = 60


class Reading(Struct, frozen=True):
    """The steered part of a job's record as it is in Redis."""

    fields: Mapping[str, bytes | None]
    patterns: frozenset[bytes]

    def text(self, name: str) -> str:
        """A field; empty when it is absent."""
        return (self.fields[name] or b"").decode("utf-8", "replace")

    @property
    def age(self) -> int:
        """The age of the settings; 0 when it is not a number."""
        return whole_number(self.text(AGE)) or 0

    def changed(self, written: Mapping[str, str]) -> set[str]:
        """The settings that are not as they were written."""
        return {name for name in IN_FORCE if self._normal(name) != written[name]}

    def _normal(self, name: str) -> str:
        # any text is true
        text = self.text(name)
        return "true" if text and name == "suppress_ignore_reports" else text


def whole_number(text: str) -> int | None:
    """A whole number as it may be written, or None."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS * 2 else None


def own_changes(wanted: Mapping[str, str], written: Mapping[str, str]) -> set[str]:
    """The settings that changed in the tracker since they were written."""
    return {name for name in IN_FORCE if wanted[name] != written[name]}


def asked(
    reading: Reading, changed: set[str], written: Mapping[str, str], patterns: frozenset[str]
) -> tuple[Outside, list[str]]:
    """What others want, as far as it can be read, and a line for each thing that cannot."""
    refused: list[str] = []
    delay = _delay(reading, written, refused) if changed & {"delay_min", "delay_max"} else None
    per_host = _number(reading, "concurrency", refused) if "concurrency" in changed else None
    note = _note(reading, refused) if "note" in changed else None
    if reading.fields[AGE] is not None and whole_number(reading.text(AGE)) is None:
        refused.append(f"{AGE}: {_quoted(reading.text(AGE))} is not a whole number in its bounds")
    added, removed = _patterns(reading.patterns, patterns, refused)
    return (
        Outside(
            delay=delay,
            per_host=per_host,
            ignore_reports=not reading.text("suppress_ignore_reports")
            if "suppress_ignore_reports" in changed
            else None,
            explanation=note,
            added=added,
            removed=removed,
            abort=reading.fields["abort_requested"] is not None,
            failed=reading.fields["failed"] is not None,
        ),
        refused,
    )


def _note(reading: Reading, refused: list[str]) -> str | None:
    try:
        note = (reading.fields["note"] or b"").decode()
    except UnicodeDecodeError:
        refused.append(f"note: {_quoted(reading.text('note'))} is not UTF-8")
        return None
    if len(note) > MOST_NOTE:
        refused.append(f"note: it has more than {MOST_NOTE} characters")
        return None
    return note


def _delay(reading: Reading, written: Mapping[str, str], refused: list[str]) -> tuple[int, int] | None:
    low, high = _number(reading, "delay_min", refused), _number(reading, "delay_max", refused)
    if low is None or high is None:
        return None
    if low > high:
        refused.append(f"delay_min: {low} is above delay_max, which is {high}")
        return None
    return low, high


def _number(reading: Reading, name: str, refused: list[str]) -> int | None:
    text = reading.text(name)
    number = whole_number(text)
    if number is None or len(text) > _MOST_DIGITS:
        refused.append(f"{name}: {_quoted(text)} is not a whole number in its bounds")
        return None
    return number


def _patterns(
    there: frozenset[bytes], written: frozenset[str], refused: list[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    known = {pattern.encode("utf-8", "replace") for pattern in written}
    added = []
    for pattern in sorted(there - known):
        try:
            text = pattern.decode()
        except UnicodeDecodeError:
            refused.append(f"ignore pattern {_quoted(pattern.decode('utf-8', 'replace'))}: it is not UTF-8")
            continue
        if not text or len(text) > MOST_PATTERN:
            refused.append(f"ignore pattern {_quoted(text)}: it has no character, or more than {MOST_PATTERN}")
            continue
        added.append(text)
    return tuple(added), tuple(_text(sorted(known - there)))


def _text(patterns: Iterable[bytes]) -> Iterable[str]:
    return (pattern.decode("utf-8", "replace") for pattern in patterns)


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_QUOTED else text[:_LONGEST_QUOTED] + "…")
