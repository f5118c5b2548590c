"""What became of hooks, for those who look at a directory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

from muniment.archive.check.fault_list import Fault
from muniment.archive.hooks.read import changed_files, hook_rows
from muniment.model.hooks.runs import HookOutcome

__all__ = ["HookTotal", "hook_faults", "hook_totals", "hooks_of_page", "hooks_that_fit"]


class HookTotal(Struct, frozen=True):
    """The tries of a plugin with one status."""

    plugin: str
    status: str
    tries: int
    files: int
    """New or changed ones."""
    bytes: int


def hook_totals(paths: Iterable[Path]) -> tuple[HookTotal, ...]:
    """The sums of directories, by plugin and status."""
    tries: Counter[tuple[str, str]] = Counter()
    files, size = tries.copy(), tries.copy()
    for path in paths:
        for row in hook_rows(path) if path.is_dir() else ():
            key = row["plugin"], row["status"]
            tries[key] += 1
            files[key] += row["files"]
            size[key] += row["bytes"]
    return tuple(HookTotal(*key, tries[key], files[key], size[key]) for key in sorted(tries))


def hooks_of_page(out: Path, url: str) -> tuple[HookOutcome, ...]:
    """The tries of the hooks of a page, in their order."""
    names = HookOutcome.__struct_fields__
    return tuple(HookOutcome(*(row[name] for name in names)) for row in hook_rows(out, url))


def hooks_that_fit(
    out: Path, *, url: str = "", plugin: str = "", status: str = "", begin: int = 0, most: int = 100
) -> tuple[list[dict[str, Any]], int]:
    """Tries of hooks of a page, a plugin and a status, from a place of the table on; where to go on, 0 at the end."""
    asked = {name: text for name, text in (("url", url), ("plugin", plugin), ("status", status)) if text}
    found: list[dict[str, Any]] = []
    for place, row in enumerate(hook_rows(out)):
        if place < begin or any(row[name] != text for name, text in asked.items()):
            continue
        if len(found) == most:
            return found, place
        found.append(row)
    return found, 0


def hook_faults(out: Path) -> list[Fault]:
    """Files of hooks that are missing or unlike their digests."""
    return [Fault(path, -1, "hook-file", f"a file that a hook left {wrong}") for path, wrong in changed_files(out)]
