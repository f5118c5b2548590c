"""Names of hook files and their order."""

from __future__ import annotations

from pathlib import Path

import pytest

from muniment.rules.hooks.file_names import hook_file, in_order


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("on_Snapshot__35_wget.finite.bg.py", ("Snapshot", 35, True)),
        ("on_Snapshot__hello.sh", ("Snapshot", 0, False)),
        ("on_CrawlSetup__007_a_b.daemon.js", ("CrawlSetup", 7, False)),
        ("on_Snapshot__5_bg.sh", ("Snapshot", 5, False)),
        ("on_Snapshot__5_x.bg.sh", ("Snapshot", 5, True)),
        ("on_Snapshot__5_x.bgx.sh", ("Snapshot", 5, False)),
        ("on_Other__5.sh", ("Other", 0, False)),
        ("on_Snapshot__a\nb.sh", ("Snapshot", 0, False)),
    ],
)
def test_a_name_says_event_number_and_background(name: str, parts: tuple[str, int, bool]) -> None:
    hook = hook_file("plugin", Path(name))
    assert hook is not None
    assert (hook.event, hook.number, hook.background) == parts


@pytest.mark.parametrize(
    "name", ["config.json", "on_Snapshot_5_x.sh", "on_Snapshot__5_x", "xon_Snapshot__5_x.sh", "on___x.sh"]
)
def test_other_files_are_no_hooks(name: str) -> None:
    assert hook_file("plugin", Path(name)) is None


def test_hooks_run_by_number_then_bytes_of_the_name_then_plugin() -> None:
    names = ["b/on_S__10_a.sh", "a/on_S__9_z.sh", "b/on_S__9_z.sh", "a/on_S__9_Z.sh", "c/on_S__x.sh"]
    hooks = [hook for name in names if (hook := hook_file(name[0], Path(name)))]
    assert [(hook.plugin, hook.name) for hook in in_order(hooks)] == [
        ("c", "on_S__x.sh"),
        ("a", "on_S__9_Z.sh"),
        ("a", "on_S__9_z.sh"),
        ("b", "on_S__9_z.sh"),
        ("b", "on_S__10_a.sh"),
    ]
