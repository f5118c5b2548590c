"""What is said to who asks for help, or nearly gives a command."""

from __future__ import annotations

from typing import Any

import pytest
from crawled import complaint


def test_muniment_alone_prints_its_help_as_laid_out(muniment: Any) -> None:
    alone, asked = muniment(), muniment("--help")
    assert (alone.code, alone.stderr) == (0, "")
    assert alone.stdout == asked.stdout
    assert alone.stdout.startswith("Usage: muniment")
    assert "\n\nCommands:\n" in alone.stdout


@pytest.mark.parametrize("group", ["process", "ignores"])
def test_a_group_alone_says_where_its_commands_are(muniment: Any, group: str) -> None:
    assert f"no command given; `muniment {group} --help` lists them" in complaint(muniment(group))


@pytest.mark.parametrize("columns", ["40", "80", "200"])
@pytest.mark.parametrize("group", [(), ("process",), ("ignores",)])
def test_the_list_of_commands_shows_whole_sentences(muniment: Any, group: tuple[str, ...], columns: str) -> None:
    shown = muniment(*group, "--help", COLUMNS=columns).stdout
    assert "..." not in shown.partition("Commands:")[2]
    commands: dict[str, str] = {}
    for line in shown.partition("Commands:\n")[2].splitlines():
        if not line.startswith("   "):
            name, _, rest = line.strip().partition(" ")
            commands[name] = rest
        else:
            commands[name] += f" {line.strip()}"
    assert len(commands) > 4
    assert not {"worker", "index", "sweep"} & commands.keys()
    assert all(text.rstrip().endswith(".") for text in commands.values()), commands


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("craw",), "there is no command 'craw'; did you mean crawl?"),
        (("chekc", "out"), "there is no command 'chekc'; did you mean check?"),
        (("process", "tre"), "there is no command 'tre'; did you mean tree?"),
        (("ignores", "lst"), "there is no command 'lst'; did you mean list"),
        (("xyzzy",), "there is no command 'xyzzy'; `muniment --help` lists them"),
        (("process", "xyzzy"), "there is no command 'xyzzy'; `muniment process --help` lists them"),
        (("wroker",), "there is no command 'wroker'"),
    ],
)
def test_who_nearly_gives_a_command_is_told_which(muniment: Any, arguments: tuple[str, ...], said: str) -> None:
    line = complaint(muniment(*arguments))
    assert said in line
    assert "mean worker" not in line
