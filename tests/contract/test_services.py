"""What docs/services.md shows is what systemd, cron and Muniment take."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from muniment.cli.crawl import crawl

TEXT = (Path(__file__).parents[2] / "docs" / "services.md").read_text()
COMMAND = "/usr/local/bin/muniment"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def unit(text: str) -> configparser.RawConfigParser:
    # a setting may be there more than once
    parsed = configparser.RawConfigParser(strict=False)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read_string(text)
    return parsed


def weekly() -> str:
    (line,) = re.findall(r"^ExecStart=(/bin/sh .*)$", TEXT, re.MULTILINE)
    return line


def arguments(command: str) -> list[str]:
    """What stands after the command's name, as a shell would pass it."""
    words = shlex.split(command)
    return words[words.index(COMMAND) + 1 :]


def test_the_units_have_what_units_need():
    service, timer = map(unit, blocks("ini"))
    assert [service.sections(), timer.sections()] == [["Unit", "Service", "Install"], ["Unit", "Timer", "Install"]]
    assert service["Service"]["KillMode"] == "mixed"
    assert service["Service"]["SuccessExitStatus"] == "3"
    assert service["Service"]["RestartPreventExitStatus"] == "2 4"


def test_systemd_finds_nothing_wrong_with_the_units(tmp_path):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:  # containers: the parser above has the last word
        return
    service, timer = blocks("ini")
    program = tmp_path / "muniment"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    again = re.sub(r"^ExecStart=.*$", lambda _: f"ExecStart={weekly()}", service, flags=re.MULTILINE)
    for name, text in (("archive-example.service", service), ("again.service", again)):
        (tmp_path / name).write_text(text.replace(COMMAND, str(program)))
    (tmp_path / "archive-example.timer").write_text(timer)
    units = ["archive-example.service", "again.service", "archive-example.timer"]
    done = subprocess.run(
        [analyze, "verify", "--man=no", *units], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    wrong = [line for line in done.stderr.splitlines() if "archive-example" in line or "again.service" in line]
    assert not wrong


def test_the_commands_are_commands():
    (exec_start,) = re.findall(r"^ExecStart=(/usr/.*)$", blocks("ini")[0], re.MULTILINE)
    inner = shlex.split(weekly().replace("$$", "$").replace("%%", "%"))[2]
    crons = [line.split("&& ", 1)[1].replace("\\%", "%") for line in blocks("cron")[0].splitlines() if "&&" in line]
    for command in (exec_start, inner, *crons):
        name, *given = arguments(command)
        assert name == "crawl"
        context = crawl.make_context("crawl", given)
        assert context.params["urls"] == ("https://example.com/",)
    assert crons[0] == crons[1] == inner.removeprefix("exec ")


@pytest.mark.parametrize("line", [line for line in blocks("cron")[0].splitlines() if "=" not in line.split()[0]])
def test_cron_lines_have_five_fields_or_a_name(line):
    assert re.match(r"(?:@reboot|(?:[\d*,/-]+\s+){5})\s*cd ", line)
    assert not re.search(r"(?<!\\)%", line), "cron takes it for the end of the command"
