"""Settings of plugins: what was given, aliases, fallbacks, defaults, types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muniment.errors import UsageError
from muniment.model.hooks.plugins import Plugin
from muniment.model.mask import masked_setting
from muniment.rules.hooks.plugin_config import read_config
from muniment.rules.hooks.plugin_settings import PluginSettings

WGET = {
    "WGET_ENABLED": {"type": "boolean", "default": True, "x-aliases": ["SAVE_WGET"]},
    "WGET_BINARY": {"type": "string", "default": "wget"},
    "WGET_TIMEOUT": {"type": "integer", "default": 60, "minimum": 5, "x-fallback": "TIMEOUT"},
    "WGET_ARGS": {"type": "array", "items": {"type": "string"}, "default": ["-e", "robots=off"]},
    "WGET_DIR": {"type": "string", "default": "{LIB_DIR}/wget/{WGET_BINARY}"},
    "WGET_MODE": {"type": "string", "enum": ["a", "b"], "default": "a", "pattern": "^[ab]$"},
    "WGET_SHARE": {"type": "number", "default": 0.5, "exclusiveMaximum": 1},
    "WGET_MAP": {"type": "object", "default": {}},
    "WGET_API_KEY": {"type": "integer", "default": 0},
}


def plugin(name: str, properties: dict[str, Any], **more: Any) -> Plugin:
    config = read_config(json.dumps({"properties": properties, **more}).encode())
    assert config.fault == ""
    return Plugin(name, Path(name), config, ())


def resolved(**given: str) -> dict[str, str]:
    one = plugin("wget", WGET)
    return PluginSettings([one], given, {"LIB_DIR": "/lib"}).of(one)


def test_defaults_are_written_as_variables_with_names_filled_in() -> None:
    assert resolved() == {
        "WGET_ENABLED": "true",
        "WGET_BINARY": "wget",
        "WGET_TIMEOUT": "60",
        "WGET_ARGS": '["-e", "robots=off"]',
        "WGET_DIR": "/lib/wget/wget",
        "WGET_MODE": "a",
        "WGET_SHARE": "0.5",
        "WGET_MAP": "{}",
        "WGET_API_KEY": "0",
    }


def test_what_is_given_goes_before_aliases_before_fallbacks_before_defaults() -> None:
    assert resolved(TIMEOUT="7")["WGET_TIMEOUT"] == "7"
    assert resolved(TIMEOUT="7", WGET_TIMEOUT="9")["WGET_TIMEOUT"] == "9"
    assert resolved(SAVE_WGET="no")["WGET_ENABLED"] == "false"
    assert resolved(SAVE_WGET="no", WGET_ENABLED="yes")["WGET_ENABLED"] == "true"
    assert resolved(WGET_BINARY="w2")["WGET_DIR"] == "/lib/wget/w2"


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"WGET_ENABLED": "maybe"}, "--hook-env WGET_ENABLED=maybe: not true or false"),
        ({"WGET_TIMEOUT": "x"}, "--hook-env WGET_TIMEOUT=x: not a whole number"),
        ({"TIMEOUT": "4"}, "--hook-env TIMEOUT=4 (for WGET_TIMEOUT): less than 5"),
        ({"WGET_ARGS": "a b"}, "not a JSON array"),
        ({"WGET_ARGS": "[1]"}, "not an array of texts"),
        ({"WGET_MAP": "[]"}, "not a JSON object"),
        ({"WGET_MODE": "c"}, "not one of a, b"),
        ({"WGET_SHARE": "1"}, "not less than 1"),
        ({"WGET_SHARE": "nan"}, "not a number"),
        ({"WGET_API_KEY": "hush"}, "--hook-env WGET_API_KEY=***: not a whole number"),
    ],
)
def test_a_value_that_is_not_of_its_type_is_refused(given: dict[str, str], complaint: str) -> None:
    with pytest.raises(UsageError) as refused:
        resolved(**given)
    assert complaint in str(refused.value)
    assert "hush" not in str(refused.value)


def test_settings_of_required_plugins_come_along_and_circles_end() -> None:
    base = plugin("base", {"BASE_X": {"type": "string", "default": "{OWN_X}"}}, required_plugins=["own"])
    own = plugin("own", {"OWN_X": {"type": "string", "default": "{BASE_X}"}}, required_plugins=["base", "absent"])
    settings = PluginSettings([base, own], {"OWN_X": "1"})
    assert settings.of(own) == {"OWN_X": "1", "BASE_X": "1"}
    assert settings.with_required("own") == ["own", "base"]
    assert "{" in PluginSettings([base, own], {}).of(own)["OWN_X"]


def test_what_tells_others_is_off_unless_it_is_set() -> None:
    quiet = plugin("favicon", {"FAVICON_PROVIDER": {"type": "string", "default": "https://example.com/{}"}})
    assert PluginSettings([quiet], {}).of(quiet)["FAVICON_PROVIDER"] == ""
    assert PluginSettings([quiet], {"FAVICON_PROVIDER": "x"}).of(quiet)["FAVICON_PROVIDER"] == "x"
    submits = plugin("archivedotorg", {"ARCHIVEDOTORG_ENABLED": {"type": "boolean", "default": True}})
    assert not PluginSettings([submits], {}).enabled(submits)
    assert PluginSettings([submits], {"ARCHIVEDOTORG_ENABLED": "1"}).enabled(submits)


def test_a_plugin_without_the_setting_is_enabled_unless_told() -> None:
    bare = plugin("bare", {})
    assert PluginSettings([bare], {}).enabled(bare)
    assert not PluginSettings([bare], {"BARE_ENABLED": "false"}).enabled(bare)


@pytest.mark.parametrize(
    "text",
    [b"{", b"[]", b'{"properties": 3}', b'{"properties": {"A": 1}}', b'{"properties": {"A": {"type": "tuple"}}}',
     b'{"required_plugins": "a"}', b'{"required_binaries": [{}]}', b'{"required_binaries": {}}'],
)  # fmt: skip
def test_a_config_that_makes_no_sense_has_a_fault(text: bytes) -> None:
    assert "config.json" in read_config(text).fault


def test_secret_settings_are_masked() -> None:
    assert masked_setting("API_KEY=hush") == "API_KEY=***"
    assert masked_setting("x_cookies=hush") == "x_cookies=***"
    assert masked_setting("COLOUR=red") == "COLOUR=red"
    assert masked_setting("API_KEY") == "API_KEY"
