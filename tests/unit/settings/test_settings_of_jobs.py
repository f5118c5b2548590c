"""Settings over a network: what a job may be given, by which names, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import json, structs

from muniment.control.fleet.patches import patch_of
from muniment.control.fleet.values import changed_values, settings_of_values
from muniment.errors import UsageError
from muniment.model.network.jobs import JobPatch
from muniment.settings.option_table import Command, DelayRange, Settings, defaults, options
from muniment.settings.settings_json import option_name, written_settings

MACHINE = {
    "redis", "redis-roles", "redis-log-keep", "reap-after", "announce",
    "out", "run-id", "prefix", "warc-size", "min-free", "state", "database", "workers", "inflight", "proxy",
    "auth-file", "insecure", "allow-private", "browser-path", "tabs", "browser-memory",
}  # fmt: skip
FILES = {"input", "from", "shard", "shards", "import-ignores", "cookies", "custom-js", "storage-state"}
OTHERS: dict[str, Any] = {
    "contact": "mailto:ann@example.com",
    "header": ("Accept-Language: de", "*=X-Project: books"),
    "user-agent": "books/1.0",
    "include": ("/a", "/b"),
    "ignore": ("/c",),
    "ignore-sets": ("phpbb",),
    "engine": "auto",
    "guards": "loops",
    "viewport": "800x600",
    "behaviors": "scroll",
    "screenshots": "view",
    "render": "text",
}
"""Values of options whose text has a grammar, or that may be repeated."""


def other_value(name: str, default: Any, kind: Any) -> Any:
    """A value that differs from the default."""
    if name in OTHERS:
        return OTHERS[name]
    if isinstance(default, bool):
        return not default
    if isinstance(default, DelayRange):
        return DelayRange(250, 375)
    if isinstance(default, int | float):
        return type(default)(default + 2)
    return {"on": "off", "off": "on", "fast": "polite"}.get(default, 7)


@pytest.mark.parametrize("command", ["crawl", "fetch"])
def test_settings_come_back_as_they_went(command: Command) -> None:
    # --browser is another way to write an engine
    mine = [one for one in options(command) if one[3].kind == "job" and one[0] != "browser"]
    values = {name: other_value(option_name(option), default, kind) for name, kind, default, option in mine}
    seed = "list" if command == "fetch" else ""
    settings = structs.replace(defaults(command), seed=seed, **values)
    written = written_settings(settings)
    assert set(written) == {option_name(option) for *_, option in mine}
    sent = json.decode(json.encode(written))
    assert settings_of_values(sent, command) == structs.replace(settings, seed="")
    assert written_settings(structs.replace(defaults(command), seed=seed)) == {}


def test_what_is_of_a_machine_is_refused_with_a_remedy() -> None:
    kinds = {option_name(option): option.kind for *_, option in options()}
    assert {name for name, kind in kinds.items() if kind == "machine"} == MACHINE
    assert {name for name, kind in kinds.items() if kind == "file"} == FILES
    for name, remedy in [*((n, "pipeline") for n in MACHINE), *((n, "file") for n in FILES), ("max-time", "max-pages")]:
        command: Command = "fetch" if name in {"from", "shard", "shards"} else "crawl"
        with pytest.raises(UsageError, match=remedy):
            settings_of_values({name: "1"}, command)


@pytest.mark.parametrize(
    ("values", "field", "value"),
    [
        ({"per-host": "3"}, "per_host", 3),
        ({"per_host": 3}, "per_host", 3),
        ({"concurrency": 3}, "per_host", 3),
        ({"no-robots": True}, "robots", False),
        ({"robots": "off"}, "robots", False),
        ({"no-offsite-links": False}, "offsite_links", True),
        ({"delay": 250}, "delay", DelayRange(250, 250)),
        ({"max-pages": None}, "max_pages", None),
        ({"max-pages": "none"}, "max_pages", None),
        ({"max-bytes": "1MiB"}, "max_bytes", 1 << 20),
        ({"timeout": 0.5}, "timeout", 0.5),
        ({"include": "/a"}, "include", ("/a",)),
        ({"browser": True}, "engine", "browser"),
        ({"behaviors": "none"}, "behaviors", "none"),
        ({"screenshots": "view, full"}, "screenshots", "view,full"),
    ],
)
def test_values_are_as_on_a_command_line_or_in_their_type(values: dict[str, Any], field: str, value: Any) -> None:
    assert getattr(settings_of_values(values, "crawl"), field) == value


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"per-host": 0}, "per-host: '0' is too small"),
        ({"per-host": True}, "must be a number"),
        ({"per-host": [1]}, "must be a number"),
        ({"per-host": None}, "cannot be left empty"),
        ({"robots": "maybe"}, "must be true or false"),
        ({"mode": "slow"}, "must be one of fast, polite"),
        ({"include": [1]}, "must be text"),
        ({"user-agent": "x" * 20_000}, "longer than"),
        ({"redirects": "off"}, "for jobs that fetch"),
        ({"pace": 1}, "there is no setting 'pace'"),
        ({"header": "Authorization: Bearer abc"}, "may be a secret"),
        ({"header": "*=X-Api-Key: abc"}, "may be a secret"),
        ({"header": "@headers.txt"}, "header file"),
        ({"viewport": "wide"}, "viewport: 'wide' is not a size"),
        ({"behaviors": "dance"}, "there is no 'dance'"),
        ({"browser": True, "engine": "auto"}, "contradict"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(values: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text) as refused:
        settings_of_values(values, "crawl")
    assert "abc" not in str(refused.value)


def test_a_patch_divides_terms_from_settings() -> None:
    given = [("delay", "250"), ("nice", "-3"), ("max-slots", "none"), ("tags", "a, b"), ("explanation", "because")]
    expected = JobPatch(settings={"delay": "250"}, nice=-3, max_slots=None, tags=["a", "b"], explanation="because")
    assert patch_of(given) == expected
    assert patch_of([("tags", "none"), ("drip", "5")]) == JobPatch(tags=[], drip=5)
    with pytest.raises(UsageError, match="nice: 'x' is not a whole number"):
        patch_of([("nice", "x")])
    assert changed_values({"delay": 250, "max-pages": None}) == (("delay", "250"), ("max-pages", "none"))
    with pytest.raises(UsageError, match="give it to `muniment pipeline`"):
        changed_values({"workers": 3})
    with pytest.raises(UsageError, match="level cannot be changed once a job is made") as caught:
        changed_values({"level": 3})
    assert "delay, tries," in str(caught.value)
    assert not any(name in str(caught.value) for name in ("workers", "inflight", "max-time"))


def test_the_defaults_of_a_job_are_those_of_its_command() -> None:
    assert settings_of_values({}, "crawl") == Settings()
    assert settings_of_values({}, "fetch") == defaults("fetch")
