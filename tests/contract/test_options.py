"""The options of the contract exist, with its defaults, and each is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import click
from msgspec import structs
from options_page import visible_commands
from source_tree import folder, nodes, trees

from muniment.cli.crawl import crawl, fetch
from muniment.settings.option_table import DEFAULT_USER_AGENT, DelayRange, Settings, defaults

# The contract's table: flags, the setting, its default for `crawl`.
CONTRACT = {
    "-o --out": ("out", "muniment-out"),
    "--run-id": ("run_id", ""),
    "--prefix": ("prefix", "muniment"),
    "-i --input": ("input", None),
    "--page-only": ("page_only", False),
    "--level": ("level", None),
    "--no-offsite-links": ("offsite_links", True),
    "--no-parent": ("no_parent", False),
    "--include": ("include", ()),
    "--ignore": ("ignore", ()),
    "--ignore-sets": ("ignore_sets", ()),
    "--no-global-ignores": ("no_global_ignores", False),
    "--import-ignores": ("import_ignores", ()),
    "--sitemaps --no-sitemaps": ("sitemaps", True),
    "--guards": ("guards", "none"),
    "--barren": ("barren", 20),
    "--per-host --concurrency": ("per_host", 6),
    "--inflight": ("inflight", 256),
    "--min-inflight": ("min_inflight", 32),
    "--start-inflight": ("start_inflight", 64),
    "--delay": ("delay", DelayRange(0, 0)),
    "--workers": ("workers", None),
    "--robots --no-robots": ("robots", True),
    "--tries": ("tries", 3),
    "--rounds": ("rounds", 2),
    "--give-up-after": ("give_up_after", 43_200.0),
    "--max-fetch-time": ("max_fetch_time", 3_600.0),
    "--connect-timeout": ("connect_timeout", 20.0),
    "--timeout": ("timeout", 60.0),
    "--max-redirects": ("max_redirects", 20),
    "--max-body": ("max_body", None),
    "--max-pages": ("max_pages", None),
    "--max-bytes": ("max_bytes", None),
    "--max-time": ("max_time", None),
    "--contact": ("contact", ""),
    "--user-agent": ("user_agent", DEFAULT_USER_AGENT),
    "--header": ("header", ()),
    "--referer --no-referer": ("referer", True),
    "--cookies": ("cookies", None),
    "--auth-file": ("auth_file", None),
    "--proxy": ("proxy", ()),
    "--insecure": ("insecure", False),
    "--http-compression": ("http_compression", False),
    "--mode": ("mode", "fast"),
    "--warc-size": ("warc_size", 1 << 30),
    "--min-free": ("min_free", None),
    "--allow-private": ("allow_private", False),
    "--state": ("state", None),
    "--database": ("database", None),
    "--nofollow": ("nofollow", False),
    "--redis": ("redis", None),
    "--redis-roles": ("redis_roles", "all"),
    "--redis-log-keep": ("redis_log_keep", 10_000),
    "--reap-after": ("reap_after", 7200.0),
    "--announce": ("announce", "queue"),
    "--explanation": ("explanation", None),
    "--ignore-reports": ("ignore_reports", "off"),
    "--noarchive": ("noarchive", False),
    "--engine": ("engine", "http"),
    "--browser": ("browser", False),
    "--browser-path": ("browser_path", None),
    "--tabs": ("tabs", None),
    "--viewport": ("viewport", "1280x720"),
    "--load-time": ("load_time", 30.0),
    "--page-time": ("page_time", 90.0),
    "--behaviors": ("behaviors", "scroll,more,details,play,carousel"),
    "--behavior-time": ("behavior_time", 20.0),
    "--screenshots": ("screenshots", "view,full,thumbnail"),
    "--render": ("render", "dom,text"),
    "--custom-js": ("custom_js", None),
    "--storage-state": ("storage_state", None),
    "--service-workers": ("service_workers", "off"),
    "--browser-memory": ("browser_memory", 2 << 30),
}
FETCH = {
    "--from": ("seed_format", None),
    "--shard": ("shard", 0),
    "--shards": ("shards", 1),
    "--redirects": ("redirects", "on"),
    "--store-unchanged": ("store_unchanged", False),
    "--reorder": ("reorder", "on"),
}
FETCH_DEFAULTS = {"per_host": 8, "inflight": 2000, "robots": False, "connect_timeout": 5.0, "timeout": 20.0}
ONLY_CRAWL = {
    "-i --input", "--page-only", "--level", "--no-offsite-links", "--no-parent", "--include", "--ignore",
    "--ignore-sets", "--no-global-ignores", "--import-ignores", "--sitemaps --no-sitemaps", "--guards", "--barren",
}  # fmt: skip
ONLY_FETCH = set(FETCH)
BOTH = "--retry-failed", "--json", "--quiet"


def spelled(command: click.Command) -> set[str]:
    return {flag for param in command.params for flag in (*param.opts, *param.secondary_opts)}


def test_crawl_takes_each_option_with_its_default():
    assert [flags for flags in CONTRACT if not set(flags.split()) <= spelled(crawl)] == []
    defaults_of = {name: getattr(Settings(), name) for name, _ in CONTRACT.values()}
    expected = dict(CONTRACT.values())
    assert defaults_of == expected
    assert [name for name, default in expected.items() if type(defaults_of[name]) is not type(default)] == []


def test_there_is_no_setting_beside_the_contract():
    options = {name for name, _ in (*CONTRACT.values(), *FETCH.values())}
    assert {*options, "seed", "start_list"} == set(Settings.__struct_fields__)


def test_fetch_has_defaults_of_its_own():
    before = structs.asdict(Settings())
    after = structs.asdict(defaults("fetch"))
    assert {name: value for name, value in after.items() if value != before[name]} == FETCH_DEFAULTS
    assert {name: before[name] for name, _ in FETCH.values()} == dict(FETCH.values())


def test_each_command_has_its_own_options_only():
    for others, command in (ONLY_CRAWL, fetch), (ONLY_FETCH, crawl):
        assert [flags for flags in others if set(flags.split()) & spelled(command)] == []


def test_both_commands_take_options_that_are_no_settings():
    assert set(BOTH) <= spelled(crawl) & spelled(fetch)


def test_fetch_takes_its_options():
    assert [flags for flags in {*CONTRACT, *ONLY_FETCH} - ONLY_CRAWL if not set(flags.split()) <= spelled(fetch)] == []


def test_every_command_prints_json_quietly_and_logs():
    """Contract, "Commands": all take `--json` where they print data, `--quiet`, `--log-level`."""
    missing = {command.name: {"--json", "--quiet", "--log-level"} - spelled(command) for command in all_commands()}
    # a pipeline prints none, what the firehose prints is JSON, and a rebuild prints that it was asked for
    printing = {name: flags for name, flags in missing.items() if name not in {"pipeline", "firehose", "rebuild"}}
    assert {name: flags for name, flags in printing.items() if flags} == {}
    assert {name: flags - {"--json"} for name, flags in missing.items() if flags - {"--json"}} == {}


def all_commands() -> Iterator[click.Command]:
    for command in visible_commands().values():
        yield from command.commands.values() if isinstance(command, click.Group) else [command]


def uses() -> set[str]:
    """The settings that the code reads outside the table itself, as `settings.name`."""
    return {
        node.attr
        for module in trees()
        if folder(module) != "settings"
        for node in nodes(module)
        if isinstance(node, ast.Attribute)
        and (getattr(node.value, "id", "") or getattr(node.value, "attr", "")).endswith("settings")
    }


def test_every_setting_is_used():
    assert set(Settings.__struct_fields__) <= uses()
