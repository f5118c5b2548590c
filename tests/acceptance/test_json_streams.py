"""With `--json` every line on either stream is JSON: answers, errors and warnings, whoever says them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.gated_site import GatedSite

from process_harness import soon

URL = "http://127.0.0.1:9/"


def lines(done: Any) -> tuple[list[Any], list[Any]]:
    """Both streams, every line of which is an object or a list."""
    return [json.loads(line) for line in done.stdout.splitlines()], [
        json.loads(line) for line in done.stderr.splitlines()
    ]


def error_of(done: Any, code: int) -> str:
    """The one error with which a command ended."""
    answers, said = lines(done)
    assert (done.code, answers) == (code, []), done
    [one] = said
    assert list(one) == ["error"]
    return str(one["error"])


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with the output of a finished crawl, `out`."""
    top = tmp_path_factory.mktemp("crawled")
    with GatedSite({"/": "a page"}) as site:
        command = [sys.executable, "-m", "muniment", "crawl", site.url, "-o", "out", "--quiet", "--no-robots"]
        subprocess.run(command, check=True, timeout=60, cwd=top)
    return top


@pytest.mark.parametrize(
    ("code", "arguments", "words"),
    [
        (2, ["craw", "--json"], "did you mean crawl"),
        (2, ["--json"], "--json"),
        (2, ["crawl", "--json"], "no start URL"),
        (2, ["crawl", "--json", URL, "--no-such"], "--no-such"),
        (2, ["crawl", "--json", URL, "--out"], "--out"),
        (2, ["crawl", "--json", URL, "--per-host", "0"], "--per-host"),
        (2, ["crawl", "--json", URL, "-o", "file"], "is a file"),
        (2, ["fetch", "--json"], "SEED"),
        (2, ["fetch", "--json", "missing"], "missing cannot be read"),
        (2, ["fetch", "--json", "file"], "is empty"),
        (2, ["check", "--json", "missing"], "missing"),
        (2, ["check", "--json", "."], "has no WARC files"),
        (2, ["inspect", "--json", "missing"], "missing"),
        (1, ["inspect", "--json", "damaged"], "captures.parquet"),
        (2, ["why", "--json", URL, "-o", "missing"], "missing"),
        (2, ["why", "--json", URL, "-o", "."], "tracker"),
        (1, ["why", "--json", URL, "-o", "damaged"], "tracker"),
        (2, ["set", "--json", "-o", "out", "per-host=many"], "finished"),
        (2, ["set", "--json", "-o", "out", "per-host=3"], "finished"),
        (1, ["set", "--json", "-o", "damaged", "per-host=3"], "tracker"),
        (2, ["ignores", "tset", "--json"], "did you mean test"),
        (2, ["ignores", "show", "--json", "no-such-set"], "no-such-set"),
        (2, ["ignores", "list", "--json", "-o", "missing"], "missing"),
        (2, ["ignores", "add", "--json", "-o", "out", "("], "finished"),
        (2, ["ignores", "remove", "--json", "-o", "out"], "RE or --set"),
        (2, ["process", "show", "--json", "0000"], "no process"),
        (2, ["process", "kill", "--json", "0000"], "no process"),
        (2, ["process", "tail", "--json", "--follow", "0000"], "--follow"),
        (2, ["process", "prune", "--json", "--older-than", "x"], "span of time"),
        (2, ["process", "list", "--json", "--state", "missing"], "missing"),
        (2, ["process", "list", "--json", "--state", "."], "no processes are stored"),
        (2, ["process", "tree", "--json", "--log-level", "loud"], "loud"),
    ],
)
def test_what_a_command_complains_of(
    muniment: Any, crawled: Path, tmp_path: Path, code: int, arguments: list[str], words: str
) -> None:
    (tmp_path / "out").symlink_to(crawled / "out")
    (tmp_path / "file").touch()
    (tmp_path / "damaged").mkdir()
    for name in ("captures.parquet", "tracker.sqlite"):
        (tmp_path / "damaged" / name).write_bytes(b"\xff" * 5000)
    assert words in error_of(muniment(*arguments), code)


def test_answers_are_alone_on_standard_output(muniment: Any, crawled: Path) -> None:
    for arguments in (
        ["check", crawled / "out"],
        ["inspect", crawled / "out"],
        ["why", URL, "-o", crawled / "out"],
        ["ignores", "list"],
        ["ignores", "test", URL],
        ["process", "list"],
        ["process", "tree", "--all"],
    ):
        done = muniment(*arguments, "--json")
        answers, said = lines(done)
        assert (done.code, len(answers), said) == (0, 1, []), arguments


def test_faults_of_a_check_are_an_answer(muniment: Any, crawled: Path, tmp_path: Path) -> None:
    shutil.copytree(crawled / "out", tmp_path / "cut")
    os.truncate(tmp_path / "cut" / "muniment-00000.warc.gz", 900)
    done = muniment("check", "cut", "--json")
    [answer], said = lines(done)
    assert (done.code, said) == (1, [])
    assert answer["faults"]


def test_what_is_logged_is_json(muniment: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with GatedSite({"/": "a page"}) as site:
        done = muniment(
            *("crawl", site.url, "-o", "out", "--json", "--no-robots", "--log-level", "debug"),
            MUNIMENT_PROCESSES=str(tmp_path / "file"),
        )
    [summary], said = lines(done)
    assert (done.code, summary["pages"]) == (0, 1)
    assert ["processes are not recorded" in one["warning"] for one in said] == [True]


def test_a_run_in_use_and_one_that_is_interrupted(muniment: Any) -> None:
    with GatedSite({"/": "held"}, held=["/"]) as site:
        crawl = muniment.start("crawl", site.url, "-o", "out", "--json", "--no-robots", "--no-sitemaps")
        site.wait_for("/")
        assert "in use" in error_of(muniment("crawl", site.url, "-o", "out", "--json"), 2)
        assert "in use" in error_of(muniment("check", "out", "--repair", "--json"), 2)
        crawl.send_signal(signal.SIGTERM)
        crawl.send_signal(signal.SIGINT)
        stdout, stderr = crawl.communicate(timeout=30)
    assert (crawl.returncode, stderr) == (3, "")
    assert json.loads(stdout)["exit"] == 3


def test_ctrl_c_is_an_error_in_json(muniment: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "list")
    fetch = muniment.start("fetch", "list", "-o", "out", "--json")
    kept = Path(os.environ["MUNIMENT_PROCESSES"])
    soon(lambda: _waits_for(fetch.pid, "wait_for_partner"), f"it opens the list {kept}")
    fetch.send_signal(signal.SIGINT)
    stdout, stderr = fetch.communicate(timeout=30)
    assert (fetch.returncode, stdout) == (3, "")
    assert json.loads(stderr) == {"error": "interrupted; give the same command again"}


def _waits_for(pid: int, call: str) -> bool:
    return call in Path(f"/proc/{pid}/wchan").read_text()


UNEXPECTED = """
import sys, threading, warnings, logging
from muniment.cli.json_lines import JsonComplaints
JsonComplaints.take_over()
sys.stderr.write('{"error":"as it is"}\\nno newl')
sys.stderr.write("ine\\n\\n  \\nmuniment: ended\\n{no json\\n")
warnings.warn("of Python")
def fail(): raise ValueError("of a thread")
thread = threading.Thread(target=fail)
thread.start()
thread.join()
class Late:
    def __del__(self): raise ValueError("of a destructor")
Late()
try:
    fail()
except ValueError:
    logging.exception("logged")
    import traceback
    traceback.print_exc()
print(b"\\xff".decode("utf-8", "surrogateescape"), file=sys.stderr)
sys.stderr.write("the rest")
sys.stderr.end_line()
"""


def test_whatever_is_written_is_a_line_of_json() -> None:
    done = subprocess.run([sys.executable, "-c", UNEXPECTED], capture_output=True, text=True, timeout=60, check=True)
    said = [json.loads(line) for line in done.stderr.splitlines()]
    assert "UserWarning: of Python" in said.pop(4)["warning"]
    assert said == [
        {"error": "as it is"},
        {"warning": "no newline"},
        {"error": "ended"},
        {"warning": "{no json"},
        {"error": "internal error: ValueError: of a thread"},
        {"error": "internal error: ValueError: of a destructor"},
        {"error": "logged (ValueError: of a thread)"},
        {"error": "ValueError: of a thread"},
        {"warning": "\\xff"},
        {"warning": "the rest"},
    ]


def test_a_fault_of_the_program_is_one_line(muniment: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import muniment.control.ignores as ignores\ndef fail(): raise ValueError('a fault\\nof ours')\n"
        "ignores.built_in_sets = fail\n"
    )
    path = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    done = muniment("ignores", "list", "--json", PYTHONPATH=path)
    assert error_of(done, 1) == "internal error: ValueError: a fault of ours"
    assert "Traceback" in muniment("ignores", "list", PYTHONPATH=path).stderr
