"""What plugins need to run, and whether it is on this machine: interpreters, modules, programs."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from muniment.model.hooks.plugins import HookFile, Plugin, RequiredBinary, Requirement
from muniment.procs.hooks.discovery import interpreter_line
from muniment.rules.hooks.plugin_settings import PluginSettings
from muniment.settings.environment import node_folders, program_folders

__all__ = ["Interpreters", "RequirementCheck"]

_ABXPKG = "abxpkg"
_PATIENCE_S = 20.0
_VERSION = re.compile(r"\d+(?:\.\d+)+|\d+")
_ASK_PYTHON = """
import importlib.util, importlib.metadata, json, sys, sysconfig
def distribution(name):
    try: return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError: return None
def module(name):
    try: return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError): return False
modules, names = json.loads(sys.argv[1])
found = {n: distribution(n) for n in names}
print(json.dumps([[n for n in modules if not module(n)], found, sysconfig.get_path('scripts')]))
"""
_INSTALLS = {
    "apt": "apt install {}",
    "brew": "brew install {}",
    "uv": "{python} -m pip install {}",
    "pip": "{python} -m pip install {}",
    "npm": "npm install -g {}, with its folder in NODE_PATH or PATH",
    "pnpm": "npm install -g {}, with its folder in NODE_PATH or PATH",
    "cargo": "cargo install {}",
}
_ORDER = ("apt", "pip", "uv", "npm", "pnpm", "cargo", "brew")
_PYTHON_PROVIDERS, _NODE_PROVIDERS = frozenset({"uv", "pip"}), frozenset({"npm", "pnpm"})


class Interpreters:
    """The programs that run hook files, by their first lines."""

    def __init__(self, python: str = "", *, abxpkg: bool = False, path: str | None = None) -> None:
        """`python` runs hooks that ask abxpkg for a Python; with `abxpkg` that runs them itself."""
        self.path = program_folders() if path is None else path
        self.python = str(Path(python).absolute()) if python else self.find("python3") or ""
        self._abxpkg = abxpkg

    def has_python(self) -> bool:
        """Whether the Python for hooks is one."""
        return _said_version(self.python).startswith("Python ")

    def find(self, program: str) -> str | None:
        """The absolute path of a program, links not resolved."""
        found = shutil.which(program, path=self.path)
        return str(Path(found).absolute()) if found else None

    def named(self, hook: HookFile) -> str:
        """The program that a hook's first line asks for; empty for a file that the system runs by itself."""
        words = interpreter_line(hook.path)
        if not words:
            return ""
        if Path(words[0]).name != "env":
            return words[0]
        rest = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        if _ABXPKG in rest[:1] and not self._abxpkg:
            return words[-1]
        return rest[0] if rest else words[0]

    def command(self, hook: HookFile) -> list[str] | None:
        """The words before the arguments of a hook; None when its program is not there."""
        words = interpreter_line(hook.path)
        if len(words) < 2 or Path(words[0]).name != "env" or _ABXPKG not in words[1:3] or self._abxpkg:
            return [str(hook.path)]
        program = self.program(words[-1])
        return [program, str(hook.path)] if program else None

    def program(self, name: str) -> str | None:
        """Where the program of a first line is."""
        if name == "python3":
            return self.python or None
        return self.find(name)

    def found(self, hook: HookFile) -> str | None:
        """Where the program is that a hook asks for; empty for none, None when it is missing."""
        name = self.named(hook)
        if not name:
            return ""
        if _ABXPKG in interpreter_line(hook.path)[1:3] and not self._abxpkg:
            return self.program(name)
        return self.find(name)


class RequirementCheck:
    """What the plugins of a run need, looked up once."""

    def __init__(self, plugins: Sequence[Plugin], settings: PluginSettings, interpreters: Interpreters) -> None:
        self._plugins, self._settings, self._interpreters = plugins, settings, interpreters
        self._by_name = {plugin.name: plugin for plugin in plugins}
        self._modules = {hook: _modules_of(plugin, hook, interpreters) for plugin in plugins for hook in plugin.live}

    def of(self, plugin: Plugin) -> list[Requirement]:
        """All that a plugin and its hooks need themselves."""
        of_hooks = (need for hook in plugin.live for need in self.of_hook(hook))
        return list(dict.fromkeys((*self.of_all(plugin), *of_hooks)))

    def of_all(self, plugin: Plugin, *, versions: bool = True) -> list[Requirement]:
        """What each hook of a plugin needs; without `versions` only those that are asked for are looked up."""
        needs = [self._plugin(plugin, name) for name in plugin.config.required_plugins]
        return needs + [self._binary(plugin, one, versions=versions) for one in plugin.config.required_binaries]

    def of_hook(self, hook: HookFile) -> list[Requirement]:
        """What one hook needs for itself: its interpreter, and its modules."""
        name = self._interpreters.named(hook)
        needs = [self._interpreter(hook, name)] if name else []
        return needs + [self._module(hook.plugin, module) for module in self._modules[hook]]

    def _plugin(self, plugin: Plugin, name: str) -> Requirement:
        there = self._by_name.get(name)
        how = "" if there else f"give the folder with the plugin {name} to --hooks, too"
        path = str(there.directory) if there else ""
        return Requirement(plugin.name, "plugin", name, bool(there), path, "", "", not how, how)

    def _interpreter(self, hook: HookFile, name: str) -> Requirement:
        found = self._interpreters.found(hook) or ""
        how = "" if found else f"install {Path(name).name}, so that it is in PATH"
        return Requirement(hook.plugin, "interpreter", name, bool(found), found, "", "", bool(found), how)

    def _module(self, plugin: str, name: str) -> Requirement:
        missing, _, _ = self._asked
        ok = name not in missing
        how = "" if ok else f"{self._interpreters.python} -m pip install {_DISTRIBUTIONS.get(name, name)}"
        return Requirement(plugin, "module", name, ok, "", "", "", ok, how)

    def _binary(self, plugin: Plugin, one: RequiredBinary, *, versions: bool) -> Requirement:
        name = self._settings.text(one.name)
        found = self.binary(one)
        version = ""
        if found and (versions or one.min_version):
            version = self._version(one, found)
        old = bool(one.min_version) and not _at_least(version, one.min_version)
        ok = bool(found) and not old
        how = "" if ok else self._how(one, name)
        return Requirement(plugin.name, "binary", name, bool(found), found, version, one.min_version, ok, how)

    def binary(self, one: RequiredBinary) -> str:
        """Where a required program or package is; empty when it is missing."""
        name = self._settings.text(one.name)
        if not name:
            return ""
        if found := self._interpreters.find(name):
            return found
        if _PYTHON_PROVIDERS & set(one.providers) and "/" not in name:
            _, distributions, scripts = self._asked
            if program := shutil.which(name, path=scripts):
                return program
            if distributions.get(name):
                return f"{self._interpreters.python}:{name}"
        if _NODE_PROVIDERS & set(one.providers) and not name.startswith("/"):
            return _node_package(name)
        return ""

    def _version(self, one: RequiredBinary, found: str) -> str:
        name = self._settings.text(one.name)
        if not found.startswith("/") or ":" in found:
            return self._asked[1].get(name) or ""
        if (package := Path(found) / "package.json").is_file():
            return str(json.loads(package.read_bytes()).get("version", ""))
        match = _VERSION.search(_said_version(found))
        return match[0] if match else ""

    def _how(self, one: RequiredBinary, name: str) -> str:
        provider = next((each for each in _ORDER if each in one.providers), "")
        least = f" ({one.min_version} or newer)" if one.min_version else ""
        if not provider:
            return f"install {name}{least}, so that it is in PATH"
        return _INSTALLS[provider].format(Path(name).name, python=self._interpreters.python or "python3") + least

    @cached_property
    def _asked(self) -> tuple[frozenset[str], dict[str, str | None], str]:
        """What the Python of hooks says: modules it lacks, versions of distributions, where its programs are."""
        modules = sorted({name for names in self._modules.values() for name in names})
        binaries = (one for plugin in self._plugins for one in plugin.config.required_binaries)
        names = sorted({self._settings.text(one.name) for one in binaries if _PYTHON_PROVIDERS & set(one.providers)})
        if not self._interpreters.python:
            return frozenset(modules), {}, ""
        asked = [self._interpreters.python, "-c", _ASK_PYTHON, json.dumps([modules, names])]
        try:
            said = subprocess.run(asked, capture_output=True, check=True, timeout=_PATIENCE_S, cwd="/")
            missing, distributions, scripts = json.loads(said.stdout)
        except (OSError, subprocess.SubprocessError, ValueError):
            return frozenset(modules), {}, ""
        return frozenset(missing), distributions, scripts


_DISTRIBUTIONS = {"abx_plugins": "abx-plugins", "rich_click": "rich-click", "bs4": "beautifulsoup4", "yaml": "pyyaml"}


def _modules_of(plugin: Plugin, hook: HookFile, interpreters: Interpreters) -> list[str]:
    """Modules that a Python hook imports at its top, but for those of Python and those beside it."""
    if not Path(interpreters.named(hook)).name.startswith("python"):
        return []
    beside = {path.stem for path in plugin.directory.glob("*.py")} | {
        path.name for path in plugin.directory.iterdir() if path.is_dir()
    }
    return sorted(_imports(hook.path) - beside - sys.stdlib_module_names)


def _imports(path: Path) -> set[str]:
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return set()
    names = [alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.module and not node.level]
    return {name.partition(".")[0] for name in names}


def _node_package(name: str) -> str:
    for folder in node_folders():
        package = folder / name
        if (package / "package.json").is_file():
            return str(package)
    return ""


def _said_version(program: str) -> str:
    """What a program says of its version; empty when it says nothing."""
    try:
        said = subprocess.run(
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return (said.stdout or said.stderr).decode("utf-8", "replace")


def _at_least(version: str, least: str) -> bool:
    """Whether a version is new enough; an unknown one is too old."""
    return bool(version) and _numbers(version) >= _numbers(least)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:4])
