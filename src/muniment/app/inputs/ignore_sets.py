"""The ignore sets that a command line asks for, built-in and imported."""

from __future__ import annotations

from pathlib import Path

from muniment.errors import UsageError
from muniment.rules.ignore_sets import chosen, parse_import
from muniment.rules.job_rules import IgnoreSet
from muniment.rules.patterns import Patterns
from muniment.seeds.plain import plain_text
from muniment.settings.option_table import Settings

__all__ = ["chosen_sets", "imported_set"]


def chosen_sets(settings: Settings) -> tuple[IgnoreSet, ...]:
    """The sets that a command line asks for; raises UsageError for a set, file or pattern that cannot be used."""
    built = chosen(settings.ignore_sets, with_global=not settings.no_global_ignores)
    return (*built, *(imported_set(file) for file in dict.fromkeys(settings.import_ignores)))


def imported_set(file: str) -> IgnoreSet:
    """The patterns of a file; raises UsageError when it cannot be used."""
    try:
        text = plain_text(Path(file), f"the file of patterns {file}")
    except OSError as error:
        raise UsageError(f"the pattern file {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"the pattern file {file} is not UTF-8 text") from None
    read = parse_import(text, file)
    try:
        Patterns(read.patterns)
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from None
    return read
