"""Commands that sentences and tables of the documents name exist, with the options that they are given."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
from options_page import visible_commands

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PREFIXES = ("muniment", "./scripts/run", "/usr/local/bin/muniment")
GROUPS = ("job", "pipelines", "tokens", "process", "ignores")
"""Groups of commands that pages name without `muniment` before them."""


def named() -> Iterator[tuple[str, list[str]]]:
    """Each command of ours that a page quotes, as words after `muniment`."""
    for page in PAGES:
        for code in re.findall(r"`([^`\n]+)`", re.sub(r"(?ms)^```.*?^```$", "", page.read_text())):
            line = code.replace("\\|", "|").removeprefix("podman run --init --rm -v ./data:/data ")
            words = line.split() if "'" not in line or line.count("'") % 2 else shlex.split(line)
            if len(words) > 1 and words[0] in PREFIXES and words[1][0].islower():
                yield f"{page.name}: {code}", words[1:]
            elif len(words) > 1 and words[0] in GROUPS and words[1][0].islower():
                yield f"{page.name}: {code}", words


def problem(words: list[str]) -> str:
    """What is wrong with a command; empty when nothing is."""
    command = visible_commands().get(words[0])
    if command is None:
        return f"there is no command {words[0]}"
    rest = words[1:]
    if isinstance(command, click.Group) and rest and rest[0].isalpha() and rest[0].islower():
        if rest[0] not in command.commands:
            return f"there is no command {words[0]} {rest[0]}"
        command = command.commands[rest[0]]
    known = {flag for param in command.params for flag in (*param.opts, *param.secondary_opts)}
    if isinstance(command, click.Group):
        known |= {f for sub in command.commands.values() for p in sub.params for f in (*p.opts, *p.secondary_opts)}
    wrong = [word for word in rest if word.startswith("--") and word != "--" and word.rstrip(",") not in known]
    return f"there is no option {wrong[0]}" if wrong and wrong[0] not in {"--help", "--version"} else ""


def test_commands_are_found() -> None:
    assert len(list(named())) > 60


def test_named_commands_exist() -> None:
    found = [f"{where}: {said}" for where, words in named() if (said := problem(words))]
    assert found == [], "\n".join(found)


SCRIPT = re.compile(r"(?:python |\./)((?:benchmarks|tests|scripts)/[\w/.]+)([^\n`]*)")
PASSED_ON = {"scripts/test", "scripts/run", "scripts/lock", "scripts/compare_docs.py"}
"""Scripts that give their options to another program, or have none."""
SHARED = "".join((ROOT / path).read_text() for path in ("benchmarks/measure.py", "fuzz/__main__.py"))
"""Where options of several scripts are."""


def test_named_scripts_take_the_options_that_they_are_given() -> None:
    """Benchmarks and the fault harness run for minutes, so that here only their names and options are looked up."""
    named_scripts = [(page.name, *found) for page in PAGES for found in SCRIPT.findall(page.read_text())]
    wrong = []
    for page, script, given in named_scripts:
        if not (ROOT / script).is_file():
            wrong.append(f"{page}: there is no {script}")
        elif script not in PASSED_ON:
            text = (ROOT / script).read_text() + SHARED
            wrong += [f"{page}: {script} {flag}" for flag in re.findall(r"--[a-z][a-z-]+", given) if flag not in text]
    assert len(named_scripts) > 30
    assert wrong == [], "\n".join(wrong)
