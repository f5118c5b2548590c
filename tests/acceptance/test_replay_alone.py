"""Hostile pages, on a machine without network whose home cannot be written: a packet that leaves it is seen."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from crawled import run_muniment
from tests.support.gated_site import Answer, GatedSite
from tests.support.replay import HOSTILE

ALONE = """
set -eu
mount -t tmpfs -o ro none "$HOME"
! touch "$HOME/x" 2>/dev/null
ip link set lo up
ip link add out0 type veth peer name out1
sysctl -qw net.ipv6.conf.all.disable_ipv6=1
ip link set out1 up
ip address add 192.0.2.2/24 dev out0
ip link set out0 up
ip route add default via 192.0.2.1 dev out0
ip neighbour add 192.0.2.1 lladdr 02:00:00:00:00:01 dev out0
echo nameserver 198.51.100.1 > resolv.conf
mount --bind resolv.conf /etc/resolv.conf
exec "$@"
"""
"""A network that leads nowhere: what is sent to another machine goes through one device."""
ROOT = Path(__file__).resolve().parents[2]
SUPPORT = ROOT / "tests" / "support"
SITE = {
    "/": "<a href=/all>a</a><a href=/plain>p</a><a href=/evil.js>e</a>",
    "/all": "<iframe src=/hostile></iframe><iframe src=/windows></iframe><iframe src=/worker></iframe>",
    "/hostile": HOSTILE,
    "/windows": (SUPPORT / "hostile_windows.html").read_text(),
    "/worker": (SUPPORT / "hostile_worker.html").read_text(),
    "/plain": "<p id=text>a plain page</p>",
    "/evil.js": Answer("onfetch = () => 0", headers=(("Content-Type", "text/javascript"),)),
}


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A crawl of pages that try to get out, and the site's URL."""
    cwd = tmp_path_factory.mktemp("alone")
    with GatedSite(SITE) as site:
        run_muniment(cwd, "crawl", site.url, "-o", "out", "--quiet", "--no-robots", "--no-sitemaps")
    return cwd, site.url


def alone(cwd: Path, *arguments: object, **environ: str) -> dict[str, Any]:
    """What a replay did there."""
    home = cwd / "home"
    home.mkdir(exist_ok=True)
    looks = [sys.executable, "-m", "tests.support.alone", *map(str, arguments)]
    command = ["unshare", "--mount", "--net", "sh", "-c", ALONE, "sh", *looks]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    own = {"HOME": str(home), "XDG_STATE_HOME": "", "XDG_DATA_HOME": "", "PYTHONPATH": paths}
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **own, **environ}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["counts"] == {"203.0.113.7": 1}, "what leaves the machine is seen"
    assert found["home"] is False
    return found


def test_no_packet_of_hostile_pages_leaves_the_machine(crawl: tuple[Path, str]) -> None:
    cwd, url = crawl
    found = alone(cwd, url)
    for path in ("windows", "worker"):
        assert (found[path]["got"], found[path]["missing"]) == ([], []), "natives, and what was not tried"
    assert {"refused: SecurityError", "unregistered"} <= set(found["worker"]["tried"])
    assert len(found["hostile"]["tried"]) > 15
    assert found["sent"] == {}
    assert (found["front"], found["next"]) == (True, "a plain page"), "what comes after them is unharmed"


def test_no_packet_of_an_exact_replay_leaves_the_machine(crawl: tuple[Path, str]) -> None:
    cwd, url = crawl
    program = cwd / "bin" / "chromium"
    program.parent.mkdir()
    log = cwd / "net.json"
    options = f"--headless=new --disable-gpu --log-net-log={log}"
    program.write_text(f'#!/bin/sh\nexec {shutil.which("chromium")} {options} "$@" 2>/dev/null\n')
    program.chmod(0o755)
    found = alone(cwd, url, log, PATH=f"{program.parent}:{os.environ['PATH']}")
    assert (found["alive"], found["code"], found["sent"]) == (True, 0, {})
    assert found["tried"] == ["done-windows", "done-worker", "x.test"], "the pages have tried"
