"""A worker that is forked for a test looks from outside like one that the product started."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.support.gated_site import GatedSite

from forked import ForkedWithChildren, without
from processes import children

PIPES: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)


def seen(pid: int) -> dict[str, Any]:
    """What can be seen of a process that does not depend on when it was started."""
    there = Path(f"/proc/{pid}")
    status = dict(re.findall(r"(\w+):\t(.*)", (there / "status").read_text()))
    environ = (there / "environ").read_bytes().rstrip(b"\0").split(b"\0")
    files = Counter(re.sub(r"[0-9a-f]{32}|\d+", "n", str(one.readlink())) for one in (there / "fd").iterdir())
    return {
        "arguments": (there / "cmdline").read_bytes().rstrip(b"\0").split(b"\0"),
        "environment": {one.partition(b"=")[0] for one in environ},
        "directory": (there / "cwd").readlink(),
        "leads its session": os.getsid(pid) == pid,
        "signals": {name: status[name] for name in ("SigBlk", "SigIgn", "SigCgt")},
        "files": files,
    }


def worker_of(launch: type[subprocess.Popen[str]], cwd: Path) -> dict[str, Any]:
    """What can be seen of the worker of a crawl that was launched so, in the middle of its work."""
    with GatedSite({"/": "a page"}, held=["/"]) as site:
        command = [sys.executable, "-m", "muniment", "crawl", site.url, "-o", "out", "--no-robots", "--quiet"]
        with launch(command, cwd=cwd, env=dict(os.environ), start_new_session=True, **PIPES) as process:
            try:
                site.wait_for("/")
                [worker] = children(process.pid, "worker")
                return seen(worker.pid)
            finally:
                process.kill()


def test_a_forked_worker_looks_like_a_started_one(tmp_path: Path) -> None:
    forked = worker_of(ForkedWithChildren, tmp_path)
    shutil.rmtree(tmp_path / "out")
    assert forked == worker_of(subprocess.Popen, tmp_path)


OPENED = """
import os, sys
opened, streams = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY), (sys.stdin, sys.stdout, sys.stderr)
os.write(opened, repr([opened, *(one is None for one in streams)]).encode())
"""
"""Says which descriptor is the first that is free, and which streams there are."""


@pytest.mark.parametrize(
    ("closed", "script"), [((0,), "<&-"), ((1,), ">&-"), ((1, 2), ">&- 2>&-"), ((0, 1, 2), "<&- >&- 2>&-")]
)
def test_a_fork_without_streams_is_like_a_program_without(closed: tuple[int, ...], script: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", OPENED]
    with without(*closed)([*command, "forked"], cwd=tmp_path, **PIPES) as process:
        process.communicate(timeout=60)
    assert process.returncode == 0
    subprocess.run(["sh", "-c", f'"$@" {script}', "sh", *command, "started"], cwd=tmp_path, check=True)
    assert (tmp_path / "forked").read_text() == (tmp_path / "started").read_text()
