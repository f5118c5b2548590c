"""The commands of docs/fleet.md, in their order: one tracker, two pipelines, a job that ends."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

from crawled import wait_until
from tests.support.gated_site import GatedSite

PAGE = Path(__file__).resolve().parents[2] / "docs" / "fleet.md"
COMMANDS = [line for block in re.findall(r"(?ms)^```sh\n(.*?)^```$", PAGE.read_text()) for line in block.splitlines()]
BESIDE = {"serve": ("--listen", "127.0.0.1:0", "--allow-private"), "pipeline": ("--allow-private",)}
"""Commands that go on while the others run, and what is different here."""


def test_three_machines_in_ten_minutes(muniment: Any, tmp_path: Path) -> None:
    running: list[subprocess.Popen[str]] = []
    names = {"https://tracker.example.org": ""}
    pages = {f"/{number}.html": f"page {number}" for number in range(30)}
    with GatedSite({"/": "".join(f"<a href={path}>x</a>" for path in pages), **pages}) as site:
        names["https://example.com/"] = site.url
        for line in COMMANDS:
            words, _, file = line.partition(" > ")
            for name, here in names.items():
                words = words.replace(name, here)
            arguments = shlex.split(words)[1:]
            if arguments[0] in BESIDE:
                running.append(muniment.start(*arguments, *BESIDE[arguments[0]]))
                if arguments[0] == "serve":
                    assert running[0].stdout is not None
                    names["https://tracker.example.org"] = running[0].stdout.readline().split()[1]
                continue
            if arguments[0] == "check":
                _stop(running)
                # one pipeline may have been faster than the other with such a small site
                arguments[1] = str(next(tmp_path.glob("archive-*/1")))
            done = muniment(*arguments)
            assert done.code == 0, f"{line}\n{done.stdout}{done.stderr}"
            if file:
                (tmp_path / file).write_text(done.stdout)
            if arguments[0] == "process":
                assert [done.stdout.count(f"cli {name} running") for name in BESIDE] == [1, 2], done.stdout
            if arguments[:2] == ["job", "show"]:
                assert "FINISHED completed" in done.stdout
                assert "31 captured" in done.stdout
    assert len(running) == 3
    assert site.requests.count("/3.html") == 1


def _stop(running: list[subprocess.Popen[str]]) -> None:
    """The pipelines first, which say goodbye to the server."""
    for process in reversed(running):
        process.send_signal(signal.SIGTERM)
        wait_until(lambda process=process: process.poll() is not None, "the end of a command")  # type: ignore[misc]
        assert process.returncode == 0
