"""The settings of plugins: what was given, aliases, fallbacks, and defaults with names in them."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from muniment.errors import UsageError
from muniment.model.hooks.plugins import Plugin, PluginProperty
from muniment.model.mask import MASK, is_secret_name
from muniment.settings.values import parse_size

__all__ = ["PluginSettings"]

_NAME_IN_TEXT = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_DEEPEST = 8
_TRUE, _FALSE = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off", ""})
_QUIET = {"FAVICON_PROVIDER": "", "ARCHIVEDOTORG_ENABLED": False}
"""Settings that would tell others what is archived: off unless they are given."""


class PluginSettings:
    """The values that the plugins of a run get, from what was given."""

    def __init__(self, plugins: Iterable[Plugin], given: Mapping[str, str], run: Mapping[str, str] = {}) -> None:
        """`given`: by name, those of `--hook-env`, and of the crawl what was chosen; `run`: all of the crawl's."""
        self._plugins = {plugin.name: plugin for plugin in plugins}
        self._given, self._run = given, run
        self._known = {one.name: one for plugin in self._plugins.values() for one in plugin.config.properties}

    def of(self, plugin: Plugin) -> dict[str, str]:
        """The resolved settings of a plugin and of those that it requires, as variables. Raises UsageError."""
        resolved: dict[str, str] = {}
        for name in self.with_required(plugin.name):
            for one in self._plugins[name].config.properties:
                resolved.setdefault(one.name, _written(self._value(one, 0)))
        return resolved

    def with_required(self, name: str) -> list[str]:
        """A plugin and all that it requires, as far as they are there."""
        found: dict[str, None] = {}
        waiting = [name]
        while waiting:
            one = waiting.pop(0)
            if one in self._plugins and one not in found:
                found[one] = None
                waiting += self._plugins[one].config.required_plugins
        return list(found)

    def enabled(self, plugin: Plugin) -> bool:
        """Whether `<PLUGIN>_ENABLED` is on, which it is where the plugin has no such setting. Raises UsageError."""
        name = f"{plugin.name.upper()}_ENABLED"
        one = self._known.get(name)
        if one is not None and one in plugin.config.properties:
            return self._value(one, 0) is not False
        return self._given.get(name, "true").strip().lower() not in _FALSE

    def number(self, plugin: Plugin, suffix: str) -> float | None:
        """`<PLUGIN>_<SUFFIX>` of a plugin, a number or a size; None where it has none. Raises UsageError."""
        name = f"{plugin.name.upper()}_{suffix}"
        one = self._known.get(name)
        value: Any = self._value(one, 0) if one is not None else self._given.get(name)
        try:
            number = float(value)
        except TypeError:
            return None
        except ValueError:
            return _size(value)
        return number if math.isfinite(number) else None

    def text(self, words: str) -> str:
        """A text with the names in braces filled in. Raises UsageError."""
        return self._filled(words, 0)

    def check(self) -> None:
        """Raise UsageError when a given value is not of its setting's type."""
        for plugin in self._plugins.values():
            self.of(plugin)

    def _value(self, one: PluginProperty, depth: int) -> Any:
        found = self._explicit(one, 0)
        if found is not None:
            return _read(one, *found)
        if one.name in _QUIET:
            return _QUIET[one.name]
        default = one.default
        return self._filled(default, depth) if isinstance(default, str) else default

    def _explicit(self, one: PluginProperty, depth: int) -> tuple[str, str] | None:
        """Name and text of what was given for a setting."""
        for name in (one.name, *one.aliases):
            if name in self._given:
                return name, self._given[name]
        if not one.fallback or depth > _DEEPEST:
            return None
        if one.fallback in self._given:
            return one.fallback, self._given[one.fallback]
        further = self._known.get(one.fallback)
        return self._explicit(further, depth + 1) if further is not None else None

    def _filled(self, words: str, depth: int) -> str:
        def fill(match: re.Match[str]) -> str:
            name = match[1]
            if depth < _DEEPEST and (one := self._known.get(name)) is not None:
                return _written(self._value(one, depth + 1))
            return self._given.get(name, self._run.get(name, match[0]))

        return _NAME_IN_TEXT.sub(fill, words)


def _size(text: str) -> float | None:
    try:
        return float(parse_size(text))
    except UsageError:
        return None


def _written(value: object) -> str:
    """A value as a variable: booleans in lower case, arrays and objects as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _read(one: PluginProperty, name: str, text: str) -> Any:
    try:
        value = _TYPES[one.type](text)
    except ValueError:
        raise _wrong(one, name, text, f"not {_ARTICLES[one.type]}") from None
    if complaint := _unfit(one.schema, value):
        raise _wrong(one, name, text, complaint)
    return value


def _wrong(one: PluginProperty, name: str, text: str, complaint: str) -> UsageError:
    shown = MASK if is_secret_name(name) or one.schema.get("x-sensitive") is True else text[:80]
    of = "" if name == one.name else f" (for {one.name})"
    return UsageError(f"--hook-env {name}={shown}{of}: {complaint}")


def _truth(text: str) -> bool:
    word = text.strip().lower()
    if word not in _TRUE | _FALSE:
        raise ValueError
    return word in _TRUE


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return int(value) if value.is_integer() else value


def _json_of(kind: type) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        value = json.loads(text)
        if isinstance(value, kind):
            return value
        raise ValueError

    return read


_TYPES: dict[str, Callable[[str], Any]] = {
    "string": str,
    "boolean": _truth,
    "integer": int,
    "number": _number,
    "array": _json_of(list),
    "object": _json_of(dict),
}
_ARTICLES = {
    "string": "a text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "array": "a JSON array",
    "object": "a JSON object",
}


def _unfit(schema: Mapping[str, Any], value: Any) -> str:
    """What of its JSON Schema a value does not fulfil; empty for none."""
    choices = schema.get("enum")
    if isinstance(choices, list) and value not in choices:
        return f"not one of {', '.join(map(str, choices))}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _out_of_bounds(schema, value)
    if isinstance(value, str):
        return _unfit_text(schema, value)
    if isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, dict) and items.get("type") == "string" and not all(isinstance(one, str) for one in value):
            return "not an array of texts"
        least = schema.get("minItems")
        return f"fewer than {least} items" if isinstance(least, int) and len(value) < least else ""
    return ""


_BOUNDS: tuple[tuple[str, Callable[[float, float], bool], str], ...] = (
    ("minimum", operator.lt, "less than"),
    ("maximum", operator.gt, "more than"),
    ("exclusiveMinimum", operator.le, "not more than"),
    ("exclusiveMaximum", operator.ge, "not less than"),
)


def _out_of_bounds(schema: Mapping[str, Any], value: float) -> str:
    for key, wrong, words in _BOUNDS:
        bound = schema.get(key)
        if isinstance(bound, int | float) and not isinstance(bound, bool) and wrong(value, bound):
            return f"{words} {bound}"
    return ""


def _unfit_text(schema: Mapping[str, Any], value: str) -> str:
    pattern, most = schema.get("pattern"), schema.get("maxLength")
    if isinstance(most, int) and len(value) > most:
        return f"more than {most} characters"
    if isinstance(pattern, str):
        try:
            return "" if re.search(pattern, value) else f"does not match {pattern}"
        except re.error:
            return ""
    return ""
