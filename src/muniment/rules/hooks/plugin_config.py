"""The `config.json` of a plugin, read with care: it is a file of somebody else."""

from __future__ import annotations

from typing import Any

import msgspec

from muniment.model.hooks.plugins import PluginConfig, PluginProperty, RequiredBinary

__all__ = ["read_config"]

_TYPES = frozenset({"string", "boolean", "integer", "number", "array", "object"})


class _ConfigError(Exception):
    """What is wrong in a config."""


def read_config(text: bytes) -> PluginConfig:
    """The config of a plugin; one with a `fault` when it makes no sense."""
    try:
        given = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        return PluginConfig(fault=f"its config.json is not JSON ({error})")
    if not isinstance(given, dict):
        return PluginConfig(fault="its config.json is not a JSON object")
    try:
        return _config(given)
    except _ConfigError as error:
        return PluginConfig(fault=f"its config.json is invalid: {error}")


def _config(given: dict[str, Any]) -> PluginConfig:
    properties = given.get("properties", {})
    if not isinstance(properties, dict):
        raise _ConfigError("properties is not an object")
    runtimes = _names(given, "x-runtimes") if given.get("x-runtimes") is not None else None
    binaries = given.get("required_binaries", [])
    if not isinstance(binaries, list):
        raise _ConfigError("required_binaries is not an array")
    return PluginConfig(
        tuple(_property(name, schema) for name, schema in properties.items()),
        _names(given, "required_plugins"),
        tuple(map(_binary, binaries)),
        runtimes,
        given.get("x-auto-run") is not False,
    )


def _names(given: dict[str, Any], key: str) -> tuple[str, ...]:
    names = given.get(key) or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _ConfigError(f"{key} is not an array of names")
    return tuple(names)


def _property(name: str, schema: Any) -> PluginProperty:
    if not isinstance(schema, dict):
        raise _ConfigError(f"the property {name} is not an object")
    kind = schema.get("type", "string")
    if kind not in _TYPES:
        raise _ConfigError(f"the type of {name} is not one of {', '.join(sorted(_TYPES))}")
    fallback = schema.get("x-fallback") or ""
    if not isinstance(fallback, str):
        raise _ConfigError(f"x-fallback of {name} is not a name")
    return PluginProperty(name, kind, schema.get("default"), _names(schema, "x-aliases"), fallback, schema)


def _binary(given: Any) -> RequiredBinary:
    if not isinstance(given, dict) or not isinstance(given.get("name"), str) or not given["name"]:
        raise _ConfigError("one of required_binaries has no name")
    providers = given.get("binproviders") or "env"
    if not isinstance(providers, str):
        raise _ConfigError(f"binproviders of {given['name']} is not a text")
    names = tuple(name.strip() for name in providers.split(",") if name.strip())
    return RequiredBinary(given["name"], names, str(given.get("min_version") or ""))
