"""Names of hook files, and the order in which they run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from muniment.model.hooks.plugins import HookFile

__all__ = ["hook_file", "in_order"]

_NAME = re.compile(r"on_([A-Za-z][A-Za-z0-9]*)__(?:([0-9]{1,9})_)?(.+)\.[^.]+", re.DOTALL)
_BACKGROUND = re.compile(r"\.bg(?:\.|$)")


def hook_file(plugin: str, path: Path) -> HookFile | None:
    """The hook that a file is by its name; None for other files."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        return None
    event, number, rest = match.groups()
    return HookFile(event, int(number or 0), plugin, path.name, _BACKGROUND.search(rest) is not None, path)


def in_order(hooks: Iterable[HookFile]) -> list[HookFile]:
    """Hooks of an event, over all plugins: by number, then by file name as bytes, then by plugin."""
    return sorted(hooks, key=lambda hook: (hook.number, os.fsencode(hook.name), hook.plugin))
