"""Plugins and their hooks, found in folders. Nothing of them is run."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from muniment.errors import UsageError
from muniment.model.hooks.plugins import HookFile, Plugin, PluginConfig
from muniment.rules.hooks.file_names import hook_file
from muniment.rules.hooks.plugin_config import read_config

__all__ = ["find_plugins", "interpreter_line"]

_MOST_CONFIG = 1 << 20
_MOST_LINE = 4096


def find_plugins(folders: Iterable[Path]) -> list[Plugin]:
    """The plugins of folders, by name; of two with one name the later folder's counts. Raises UsageError."""
    found: dict[str, Plugin] = {}
    for folder in folders:
        try:
            names = sorted(os.listdir(folder))  # noqa: PTH208
        except OSError as error:
            raise UsageError(f"--hooks {folder} cannot be read: {error.strerror}") from None
        for name in names:
            directory = folder.absolute() / name
            if name[0] not in "._" and directory.is_dir() and (plugin := _plugin(name, directory)):
                found[name] = plugin
    return [found[name] for name in sorted(found)]


def _plugin(name: str, directory: Path) -> Plugin | None:
    try:
        paths = sorted(directory.iterdir())
    except OSError as error:
        return Plugin(name, directory, PluginConfig(fault=f"its folder cannot be read: {error.strerror}"), ())
    hooks = tuple(hook for path in paths if (hook := _hook(name, path)) is not None)
    config = _config(directory / "config.json")
    return Plugin(name, directory, config or PluginConfig(), hooks) if hooks or config else None


def _hook(plugin: str, path: Path) -> HookFile | None:
    """An executable regular file, or a link to one, with the name of a hook."""
    hook = hook_file(plugin, path)
    if hook is None:
        return None
    with suppress(OSError):
        mode = path.stat().st_mode
        if stat.S_ISREG(mode) and mode & 0o111:
            return hook
    return None


def _config(path: Path) -> PluginConfig | None:
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            text = file.read(_MOST_CONFIG + 1)
    except OSError as error:
        return PluginConfig(fault=f"its config.json cannot be read: {error.strerror}")
    return PluginConfig(fault="its config.json is over 1 MiB") if len(text) > _MOST_CONFIG else read_config(text)


def interpreter_line(path: Path) -> list[str]:
    """The words of a file's first line after `#!`; empty for a file without one."""
    try:
        with path.open("rb") as file:
            line = file.readline(_MOST_LINE)
    except OSError:
        return []
    return line[2:].decode("utf-8", "surrogateescape").split() if line.startswith(b"#!") else []
