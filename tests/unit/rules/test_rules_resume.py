"""Resume: start URLs, `--page-only` and scope stay; limits, politeness, ignores and the network may change."""

from __future__ import annotations

import pytest
from msgspec import structs

from muniment.rules.resume import changed_fixed
from muniment.settings.option_table import DelayRange, Settings

FIXED = {
    "page_only": True, "level": 3, "offsite_links": False, "no_parent": True,
    "include": ("x", "a b"), "sitemaps": False,
}  # fmt: skip
FREE = {
    "ignore": ("x",), "per_host": 9, "delay": DelayRange(1, 2), "robots": False, "tries": 1, "timeout": 1.0,
    "max_pages": 1, "max_redirects": 1, "user_agent": "x", "proxy": ("http://p.example:1",), "workers": 3,
    "min_free": 1,
}  # fmt: skip


TOLD = {
    "page_only": "with --page-only", "level": "with --level 3", "offsite_links": "with --no-offsite-links",
    "no_parent": "with --no-parent", "include": "with --include x --include 'a b'", "sitemaps": "with --no-sitemaps",
}  # fmt: skip
UNTOLD = {
    "page_only": "without --page-only", "level": "without --level", "offsite_links": "with --offsite-links",
    "no_parent": "without --no-parent", "include": "without --include", "sitemaps": "with --sitemaps",
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), FIXED.items())
def test_scope_options_may_not_change(name, value):
    changed = structs.replace(Settings(), **{name: value})
    assert changed_fixed(Settings(), changed) == [UNTOLD[name]]
    assert changed_fixed(changed, Settings()) == [TOLD[name]]


@pytest.mark.parametrize(("name", "value"), FREE.items())
def test_all_else_may_change(name, value):
    assert changed_fixed(Settings(), structs.replace(Settings(), **{name: value})) == []


def test_all_that_changed_is_named():
    assert changed_fixed(Settings(**FIXED), Settings()) == list(TOLD.values())
