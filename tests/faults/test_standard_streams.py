"""Standard streams that are closed, full or not read: what a command is about is done, and its files are whole."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.gated_site import GatedSite

from forked import without
from muniment.archive.check.directory import check

pytestmark = pytest.mark.long  # its tests stay together

JSON = "--json"


def shell(script: str, *arguments: object, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """A command with its streams as a shell sets them: `"$@"` is the command."""
    command = ["sh", "-c", script, "sh", sys.executable, "-m", "muniment", *map(str, arguments)]
    given = {**os.environ, **environ}
    return subprocess.run(
        command, cwd=cwd, env=given, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL
    )


@pytest.fixture(scope="module")
def site() -> Iterator[GatedSite]:
    pages = {"/": "".join(f"<a href=/{number}>x</a>" for number in range(9)), **{f"/{n}": "x" for n in range(9)}}
    with GatedSite(pages) as site:
        yield site


@pytest.fixture(scope="module")
def crawled(site: GatedSite, tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("crawled")
    assert shell('"$@"', "crawl", site.url, "-o", "out", "--no-robots", "--quiet", cwd=top).returncode == 0
    return top


ANSWERS = (
    ("check", "out"),
    ("inspect", "out"),
    ("why", "http://127.0.0.1:9/", "-o", "out"),
    ("ignores", "list"),
    ("process", "list"),
    ("--help",),
    ("--version",),
)


@pytest.mark.parametrize("more", [(), (JSON,)], ids=["text", "json"])
@pytest.mark.parametrize("command", ANSWERS, ids=lambda command: command[0])
def test_an_answer_that_has_no_room_is_one_line(crawled: Path, command: tuple[str, ...], more: tuple[str, ...]) -> None:
    if command[0].startswith("--"):
        more = ()
    if more:
        code, said = forked((*command, *more), ">/dev/full", crawled)
    else:
        done = shell('"$@" > /dev/full', *command, cwd=crawled)
        code, said = done.returncode, done.stderr
    assert (code, said.count("\n")) == (1, 1), said
    assert "No space left on device" in said
    assert said.startswith('{"error":' if more else "muniment: ")


CLOSED_OR_FULL = {
    "<&-": (0,),
    ">&-": (1,),
    "2>&-": (2,),
    ">&- 2>&-": (1, 2),
    "<&- >&- 2>&-": (0, 1, 2),
    "2>/dev/full": (),
}
"""How a shell says it, and what is closed then."""


def forked(command: tuple[str, ...], streams: str, cwd: Path) -> tuple[int, str]:
    """The same without a shell, in a fork."""
    with open("/dev/full", "w") as full:  # noqa: PTH123
        out = full if streams == ">/dev/full" else subprocess.PIPE
        err = full if streams == "2>/dev/full" else subprocess.PIPE
        words = [sys.executable, "-m", "muniment", *command]
        launch = without(*CLOSED_OR_FULL.get(streams, ()))
        with launch(words, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=err, text=True) as process:
            _, stderr = process.communicate(timeout=60)
    return process.returncode, stderr or ""


@pytest.mark.parametrize("streams", CLOSED_OR_FULL)
@pytest.mark.parametrize("command", ANSWERS, ids=lambda command: command[0])
def test_streams_that_are_closed_or_full_change_no_exit_code(
    crawled: Path, command: tuple[str, ...], streams: str
) -> None:
    if command[0] == "check":
        done = shell(f'"$@" {streams}', *command, cwd=crawled)
        assert (done.returncode, done.stderr) == (0, ""), done
    assert forked(command, streams, crawled) == (0, "")


@pytest.mark.parametrize("streams", CLOSED_OR_FULL)
def test_what_is_refused_is_refused_without_streams(crawled: Path, streams: str) -> None:
    refused = shell(f'"$@" {streams}', "check", "no-such", cwd=crawled)
    assert refused.returncode == 2
    assert (refused.stdout, refused.stderr.count("\n")) == ("", 0 if "2>" in streams else 1)


@pytest.mark.parametrize("streams", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full", "2>&1 | true"])
@pytest.mark.parametrize("more", [(), (JSON,)], ids=["text", "json"])
def test_a_crawl_needs_no_stream(site: GatedSite, tmp_path: Path, streams: str, more: tuple[str, ...]) -> None:
    """A file that is opened in place of a closed stream would get what is meant for that."""
    kept = {"MUNIMENT_PROCESSES": str(tmp_path / "kept")}
    done = shell(f'"$@" {streams}', "crawl", site.url, "-o", "out", "--no-robots", *more, cwd=tmp_path, **kept)
    answered = more and streams == ">/dev/full"
    assert done.returncode == (1 if answered else 0), done
    assert "Traceback" not in done.stderr
    found = check(tmp_path / "out", 1)
    assert (found.faults, found.files) == ((), 1)
    assert found.rows >= 10


def test_who_reads_no_further_is_no_error(crawled: Path) -> None:
    for command in ANSWERS:
        done = shell('{ "$@"; echo $? >&2; } | true', *command, cwd=crawled)
        assert done.stderr == "0\n", command
