"""`muniment hooks list` and `hooks doctor`: what there is, what runs, and one reason for what does not."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest


def hook(folder: Path, plugin: str, name: str, text: str = "#!/bin/sh\n", mode: int = 0o755) -> Path:
    path = folder / plugin / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def config(folder: Path, plugin: str, **given: Any) -> None:
    (folder / plugin).mkdir(parents=True, exist_ok=True)
    (folder / plugin / "config.json").write_text(json.dumps(given))


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """Plugins of each kind."""
    folder = tmp_path / "plugins"
    hook(folder, "hello", "on_Snapshot__10_hello.sh")
    hook(folder, "hello", "on_Snapshot__9_watch.bg.sh")
    hook(folder, "hello", "on_Binary__1_old.sh")
    hook(folder, "hello", "on_Snapshot__1_plain.sh", mode=0o644)
    (folder / "hello" / "on_Snapshot__2_folder.sh").mkdir()
    (folder / "hello" / "on_Snapshot__3_link.sh").symlink_to("on_Snapshot__10_hello.sh")
    hook(folder, "_hidden", "on_Snapshot__1_x.sh")
    hook(folder, ".hidden", "on_Snapshot__1_x.sh")
    hook(folder, "off", "on_CrawlSetup__1_off.sh")
    config(folder, "off", properties={"OFF_ENABLED": {"type": "boolean", "default": False}})
    hook(folder, "needs_off", "on_Snapshot__20_x.sh")
    config(folder, "needs_off", required_plugins=["off"])
    hook(folder, "needs_none", "on_Snapshot__21_x.sh")
    config(folder, "needs_none", required_plugins=["nowhere"])
    hook(folder, "other", "on_Snapshot__22_x.sh")
    config(folder, "other", **{"x-runtimes": ["archivebox"]})
    hook(folder, "asked", "on_Snapshot__23_x.sh")
    config(folder, "asked", **{"x-auto-run": False})
    hook(folder, "bound", "on_Snapshot__24_x.sh")
    binary = {"name": "{BOUND_BINARY}", "binproviders": "env,apt", "min_version": None}
    text = {"type": "string", "default": "no-such-program"}
    config(folder, "bound", properties={"BOUND_BINARY": text}, required_binaries=[binary])
    first = "#!/usr/bin/env -S abxpkg run --script --deps-from=./config.json:required_binaries"
    hook(folder, "bound_py", "on_Snapshot__25_x.py", f"{first} python3\nimport json, no_such_module\n")
    hook(folder, "broken", "on_Snapshot__26_x.sh")
    (folder / "broken" / "config.json").write_text("{")
    hook(folder, "strange", "on_Snapshot__27_x.rb", "#!/usr/bin/env no-such-interpreter\n")
    return folder


def test_every_hook_is_listed_in_its_order_with_one_reason(muniment: Any, plugins: Path) -> None:
    done = muniment("hooks", "list", "--hooks", plugins, "--json")
    assert (done.code, done.stderr) == (0, "")
    lines = json.loads(done.stdout)
    assert list(lines[0]) == ["event", "order", "plugin", "hook", "background", "enabled", "runs", "why"]
    assert [(line["event"], line["plugin"], line["order"]) for line in lines] == [
        ("CrawlSetup", "off", 1), ("Snapshot", "hello", 3), ("Snapshot", "hello", 9), ("Snapshot", "hello", 10),
        ("Snapshot", "needs_off", 20), ("Snapshot", "needs_none", 21), ("Snapshot", "other", 22),
        ("Snapshot", "asked", 23), ("Snapshot", "bound", 24), ("Snapshot", "bound_py", 25),
        ("Snapshot", "broken", 26), ("Snapshot", "strange", 27), ("Binary", "hello", 1),
    ]  # fmt: skip
    assert [line["hook"] for line in lines if line["background"]] == ["on_Snapshot__9_watch.bg.sh"]
    assert {line["hook"] for line in lines if line["runs"]} == {
        "on_Snapshot__3_link.sh", "on_Snapshot__9_watch.bg.sh", "on_Snapshot__10_hello.sh",
    }  # fmt: skip
    why = {line["plugin"]: line["why"] for line in lines if line["why"]}
    for plugin, words in {
        "off": "OFF_ENABLED is false",
        "needs_off": "requires the plugin off, which is off",
        "needs_none": "requires the plugin nowhere, which is missing",
        "other": "x-runtimes",
        "asked": "--plugins names it",
        "bound": "the binary no-such-program is missing: apt install no-such-program",
        "bound_py": "the module no_such_module is missing",
        "broken": "its config.json is not JSON",
        "strange": "the interpreter no-such-interpreter is missing",
        "hello": "there is no event Binary",
    }.items():
        assert words in why[plugin]


def test_a_hook_without_its_interpreter_is_left_out_alone(muniment: Any, tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    hook(folder, "mixed", "on_Snapshot__1_shell.sh")
    hook(folder, "mixed", "on_Snapshot__2_strange.rb", "#!/usr/bin/env no-such-interpreter\n")
    hook(folder, "mixed", "on_Snapshot__3_module.py", "#!/usr/bin/env python3\nimport no_such_module\n")
    hook(folder, "mixed", "on_Binary__1_old.rb", "#!/usr/bin/env no-other-interpreter\n")
    hook(folder, "reader", "on_Snapshot__5_x.sh")
    config(folder, "reader", required_plugins=["mixed"])
    lines = json.loads(muniment("hooks", "list", "--hooks", folder, "--json").stdout)
    assert [line["hook"] for line in lines if line["runs"]] == ["on_Snapshot__1_shell.sh"]
    why = {line["order"]: line["why"] for line in lines if line["event"] == "Snapshot"}
    assert "the interpreter no-such-interpreter is missing" in why[2]
    assert "the module no_such_module is missing" in why[3]
    assert why[5].startswith("it requires the plugin mixed: the interpreter no-such-interpreter is missing")
    doctor = muniment("hooks", "doctor", "--hooks", folder, "--quiet")
    assert (doctor.code, "install no-such-interpreter," in doctor.stdout) == (1, True)
    assert "no-other-interpreter" not in doctor.stdout
    named = muniment("hooks", "run", "-o", tmp_path, "--hooks", folder, "--plugins", "mixed")
    assert (named.code, "--plugins: mixed: the interpreter no-such-interpreter" in named.stderr) == (2, True)


def test_settings_switch_plugins_on_and_are_checked(muniment: Any, plugins: Path, tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_text("# mine\nOFF_ENABLED=true\n")
    lines = json.loads(muniment("hooks", "list", "--hooks", plugins, "--hook-env-file", file, "--json").stdout)
    assert {line["plugin"] for line in lines if line["runs"]} == {"hello", "off", "needs_off"}
    wrong = muniment("hooks", "list", "--hooks", plugins, "--hook-env", "OFF_ENABLED=maybe")
    assert (wrong.code, wrong.stderr) == (2, "muniment: --hook-env OFF_ENABLED=maybe: not true or false\n")
    absent = muniment("hooks", "list", "--hooks", plugins, "--hook-env", "NO_SUCH_VARIABLE_HERE")
    assert (absent.code, "there is no such variable" in absent.stderr) == (2, True)


def test_the_later_folder_counts(muniment: Any, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    hook(first, "one", "on_Snapshot__1_first.sh")
    hook(second, "one", "on_Snapshot__1_second.sh")
    lines = json.loads(muniment("hooks", "list", "--hooks", first, "--hooks", second, "--json").stdout)
    assert [line["hook"] for line in lines] == ["on_Snapshot__1_second.sh"]


def test_the_doctor_names_what_is_missing_and_finds_what_is_there(muniment: Any, plugins: Path, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "no-such-program"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho no-such-program version 2.10.1 of today\n")
    program.chmod(0o755)
    ill = muniment("hooks", "doctor", "--hooks", plugins, "--json")
    needs = {(need["plugin"], need["kind"], need["name"]): need for need in json.loads(ill.stdout)}
    assert ill.code == 1
    assert not needs["bound", "binary", "no-such-program"]["ok"]
    assert needs["bound_py", "module", "no_such_module"]["how"].endswith("-m pip install no_such_module")
    words = ["plugin", "kind", "name", "found", "path", "version", "min_version", "ok", "how"]
    assert {tuple(need) for need in json.loads(ill.stdout)} == {tuple(words)}
    shell = needs["hello", "interpreter", "/bin/sh"]
    assert (shell["found"], shell["path"]) == (True, "/bin/sh")
    assert needs["bound", "binary", "no-such-program"]["found"] is False
    muniment.environ["PATH"] = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    well = muniment("hooks", "doctor", "--hooks", plugins, "--plugins", "bound", "--json")
    found = {need["kind"]: need for need in json.loads(well.stdout)}
    assert well.code == 0
    assert (found["binary"]["path"], found["binary"]["version"]) == (str(program), "2.10.1")
    (plugins / "bound" / "config.json").write_text(
        json.dumps({"required_binaries": [{"name": "no-such-program", "min_version": "2.11"}]})
    )
    old = muniment("hooks", "doctor", "--hooks", plugins, "--plugins", "bound", "--quiet")
    assert (old.code, "2.11 or newer" in old.stdout) == (1, True)


def test_a_plugin_that_is_not_there_is_wrong_use(muniment: Any, plugins: Path) -> None:
    done = muniment("hooks", "doctor", "--hooks", plugins, "--plugins", "hello,nobody")
    assert (done.code, done.stderr.startswith("muniment: --plugins nobody: there is no such plugin")) == (2, True)
