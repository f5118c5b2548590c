"""Hooks as an operator sees them: which there are, which run, and what is missing."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from muniment.errors import UsageError
from muniment.model.hooks.plugins import CRAWL_EVENTS, EVENTS, PAGE_EVENTS, HookFile, HookLine, Plugin, Requirement
from muniment.procs.hooks.discovery import find_plugins
from muniment.procs.hooks.requirements import Interpreters, RequirementCheck
from muniment.rules.hooks.file_names import in_order
from muniment.rules.hooks.plugin_settings import PluginSettings
from muniment.settings.environment import node_folders

__all__ = ["FoundBinaries", "HookChoice", "HookSet", "choose_hooks"]

_RUNTIME = "muniment"
_GIVEN_BY_US = frozenset({"dom", "responses"})
"""Plugins whose output others read. The recorded page stands in for it."""
_EVENT_ORDER = ("CrawlSetup", "Crawl", *PAGE_EVENTS, "CrawlEnd", "CrawlCleanup")


class HookChoice(Struct, frozen=True, kw_only=True):
    """What an operator says of hooks."""

    folders: Sequence[Path]
    plugins: Sequence[str] = ()
    """These and what they require; empty for all that can run."""
    given: Mapping[str, str] = {}
    """Settings by name."""
    run: Mapping[str, str] = {}
    """What of the environment of hooks the names in defaults stand for, too."""
    python: str = ""
    abxpkg: bool = False


class FoundBinaries(Struct, frozen=True):
    """Programs that a plugin needs, where they are."""

    variables: dict[str, str]
    folders: tuple[str, ...]
    """First in PATH."""


class HookSet:
    """The plugins of some folders, and what of them runs."""

    def __init__(self, choice: HookChoice) -> None:
        """Raises UsageError for folders, names and values that make no sense."""
        self.plugins = find_plugins(choice.folders)
        self.settings = PluginSettings(self.plugins, choice.given, choice.run)
        self.interpreters = Interpreters(choice.python, abxpkg=choice.abxpkg)
        self._by_name = {plugin.name: plugin for plugin in self.plugins}
        if unknown := [name for name in choice.plugins if name not in self._by_name]:
            raise UsageError(f"--plugins {unknown[0]}: there is no such plugin in {_told(choice.folders)}")
        if choice.python and not self.interpreters.has_python():
            raise UsageError(f"--hook-python {choice.python}: {_not_a_python(choice.python)}")
        self.settings.check()
        self._named = set(choice.plugins)
        chosen = [one for name in choice.plugins for one in self.settings.with_required(name)]
        self._chosen = set(chosen) if choice.plugins else set(self._by_name)
        self._check = RequirementCheck(self.plugins, self.settings, self.interpreters)
        self._off: dict[str, str] = {}
        self._missing: dict[str, str] = {}

    @property
    def chosen(self) -> list[Plugin]:
        """The plugins that were asked for, and those that they require."""
        return [plugin for plugin in self.plugins if plugin.name in self._chosen]

    def lines(self) -> list[HookLine]:
        """Every hook file, in the order in which it would run."""
        hooks = [hook for plugin in self.plugins for hook in plugin.hooks]
        events = [*_EVENT_ORDER, *sorted({hook.event for hook in hooks} - EVENTS)]
        return [self._line(hook) for event in events for hook in in_order(h for h in hooks if h.event == event)]

    def _line(self, hook: HookFile) -> HookLine:
        enabled, why = not self.why_off(hook.plugin), self.why_not(hook)
        return HookLine(
            hook.event, hook.number, hook.plugin, hook.name, hook.background, enabled, runs=not why, why=why
        )

    def why_not(self, hook: HookFile) -> str:
        """Why a hook does not run; empty when it does."""
        if hook.event not in EVENTS:
            known = ", ".join((*CRAWL_EVENTS, *PAGE_EVENTS))
            return f"there is no event {hook.event} (there are {known})"
        return self.why_off(hook.plugin) or self.why_missing(hook.plugin) or self._why_alone(hook)

    def _why_alone(self, hook: HookFile) -> str:
        """What a hook lacks that others of its plugin may do without; empty for nothing."""
        return next(filter(None, map(_lack, self._check.of_hook(hook))), "")

    def _why_not_whole(self, name: str) -> str:
        """Why some hook of a plugin that is on cannot run; empty when all can."""
        alone = map(self._why_alone, self._by_name[name].live)
        return self.why_missing(name) or next(filter(None, alone), "")

    def why_off(self, name: str) -> str:
        """Why a plugin is off; empty when it is on."""
        if name not in self._off:
            self._off[name] = ""  # of plugins that require each other, the first one is on
            self._off[name] = self._why_off(self._by_name[name])
        return self._off[name]

    def _why_off(self, plugin: Plugin) -> str:
        config = plugin.config
        why = ""
        if plugin.name not in self._chosen:
            why = "--plugins does not name it"
        elif config.fault:
            why = config.fault
        elif not self.settings.enabled(plugin):
            why = f"{plugin.name.upper()}_ENABLED is false"
        elif config.runtimes is not None and _RUNTIME not in config.runtimes:
            why = f"it is for {', '.join(config.runtimes) or 'nothing'} alone (x-runtimes)"
        elif not config.auto_run and plugin.name not in self._named:
            why = "it runs only when --plugins names it"
        return why or next(filter(None, map(self._why_without, config.required_plugins)), "")

    def _why_without(self, required: str) -> str:
        if required not in self._by_name:
            return f"it requires the plugin {required}, which is missing"
        why = self.why_off(required)
        return f"it requires the plugin {required}, which is off: {why}" if why else ""

    def why_missing(self, name: str) -> str:
        """What all hooks of a plugin that is on lack, in one sentence; empty for nothing."""
        if name not in self._missing:
            self._missing[name] = ""
            self._missing[name] = self._why_missing(self._by_name[name])
        return self._missing[name]

    def _why_missing(self, plugin: Plugin) -> str:
        if why := next(filter(None, map(_lack, self._check.of_all(plugin, versions=False))), ""):
            return why
        for name in set(plugin.config.required_plugins) - _GIVEN_BY_US:
            if why := self._why_not_whole(name):
                return f"it requires the plugin {name}: {why}"
        return ""

    def requirements(self) -> list[Requirement]:
        """What each plugin needs that is on."""
        return [need for plugin in self.chosen if not self.why_off(plugin.name) for need in self._check.of(plugin)]

    def running(self) -> list[HookFile]:
        """All hooks that run. Raises UsageError when one that was asked for by name cannot."""
        bad = [
            f"{name}: {why}" for name in sorted(self._named) if (why := self.why_off(name) or self._why_not_whole(name))
        ]
        if bad:
            raise UsageError(f"--plugins: {'; '.join(bad)}")
        return [hook for plugin in self.plugins for hook in plugin.hooks if not self.why_not(hook)]

    def in_order(self, hooks: Sequence[HookFile]) -> list[HookFile]:
        """Hooks event by event, each in its order."""
        return [hook for event in _EVENT_ORDER for hook in in_order(one for one in hooks if one.event == event)]

    def plugin(self, name: str) -> Plugin:
        """The plugin of a name."""
        return self._by_name[name]

    def binaries(self, plugin: Plugin) -> FoundBinaries:
        """What a plugin and those that it requires need and have, as variables."""
        variables: dict[str, str] = {}
        folders: list[str] = []
        for name in self.settings.with_required(plugin.name):
            for one in self._by_name[name].config.required_binaries:
                found = self._check.binary(one)
                if found.startswith("/") and ":" not in found:
                    if one.name.startswith("{"):
                        variables.setdefault(one.name.strip("{}"), found)
                    if Path(found).is_dir():
                        variables["NODE_PATH"] = os.pathsep.join(map(str, node_folders()))
                    else:
                        folders.append(str(Path(found).parent))
        return FoundBinaries(variables, tuple(dict.fromkeys(folders)))

    def left_out(self) -> dict[str, str]:
        """The plugins and hooks that are on and cannot run, with the reason."""
        on = [plugin for plugin in self.chosen if plugin.hooks and not self.why_off(plugin.name)]
        plugins = {f"the plugin {one.name}": self.why_missing(one.name) for one in on}
        rest = (hook for one in on if not self.why_missing(one.name) for hook in one.live)
        hooks = {f"the hook {hook.plugin}/{hook.name}": self._why_alone(hook) for hook in rest}
        return {name: why for name, why in (plugins | hooks).items() if why}


def _lack(need: Requirement) -> str:
    """What is wrong with a requirement; empty for nothing."""
    if need.ok:
        return ""
    old = f", which is {need.version} and must be {need.min_version} or newer" if need.version else ""
    return f"the {need.kind} {need.name} is {'too old' if need.found else 'missing'}{old}: {need.how}"


def _not_a_python(file: str) -> str:
    if not Path(file).is_file():
        return "there is no such file"
    return "it is not a Python" if os.access(file, os.X_OK) else "it cannot be executed"


def choose_hooks(choice: HookChoice) -> HookSet:
    """The hooks of some folders. Raises UsageError."""
    return HookSet(choice)


def _told(folders: Sequence[Path]) -> str:
    return " or ".join(map(str, folders))
