"""Replay on a machine without network, whose home cannot be written: a packet that leaves it would be counted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from crawled import run_muniment
from tests.support.gated_site import GatedSite
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
"""A network that leads nowhere: what is sent to another machine goes through one device, which counts it."""
PROBE = """
import json, os, signal, socket, subprocess, sys, time, urllib.request
from pathlib import Path
def left(): return int(Path("/proc/self/net/dev").read_text().partition("out0:")[2].split()[9])
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("203.0.113.7", 53))
counted = left()
assert counted == 1, "the device does not count"
replay = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
opened = json.loads(replay.stdout.readline())
front = opened["url"].split("/at/")[0].rstrip("/")
asked = {"front": urllib.request.urlopen(front + "/").read().decode()}
if opened.get("content"):
    page = opened["url"].replace(front, "http://127.0.0.1:" + opened["content"].rpartition(":")[2])
    host = opened["content"].partition("//")[2]
    asked["page"] = urllib.request.urlopen(urllib.request.Request(page, headers={"Host": host})).read().decode()
else:
    time.sleep(float(os.environ["LOOK_S"]))
alive = replay.poll() is None
replay.send_signal(signal.SIGTERM)
print(json.dumps({"asked": asked, "code": replay.wait(), "alive": alive, "left": left() - counted}))
"""


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A crawl of a page that tries to get out, and the page's URL."""
    cwd = tmp_path_factory.mktemp("alone")
    with GatedSite({"/": HOSTILE}) as site:
        run_muniment(cwd, "crawl", site.url, "-o", "out", "--quiet", "--no-robots", "--no-sitemaps")
    return cwd, site.url


def alone(cwd: Path, *arguments: str, **environ: str) -> dict[str, object]:
    """What a replay did there."""
    home = cwd / "home"
    home.mkdir(exist_ok=True)
    replay = [sys.executable, "-m", "muniment", "replay", "out", "--json", *arguments]
    command = ["unshare", "--mount", "--net", "sh", "-c", ALONE, "sh", sys.executable, "-c", PROBE, *replay]
    given = {**os.environ, "HOME": str(home), "XDG_STATE_HOME": "", "XDG_DATA_HOME": "", **environ}
    done = subprocess.run(command, cwd=cwd, env=given, capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_pages_are_shown_without_network(crawl: tuple[Path, str]) -> None:
    cwd, url = crawl
    found = alone(cwd, "--no-open", "--url", url)
    assert "hostile page" in found["asked"]["page"]  # type: ignore[index]
    assert (found["code"], found["left"]) == (0, 0)


def test_no_packet_of_an_exact_replay_leaves_the_machine(crawl: tuple[Path, str]) -> None:
    cwd, url = crawl
    program = cwd / "bin" / "chromium"
    program.parent.mkdir()
    log = cwd / "net.json"
    options = f"--headless=new --disable-gpu --log-net-log={log}"
    program.write_text(f'#!/bin/sh\nexec {shutil.which("chromium")} {options} "$@" 2>/dev/null\n')
    program.chmod(0o755)
    found = alone(cwd, "--exact", "--url", url, PATH=f"{program.parent}:{os.environ['PATH']}", LOOK_S="8")
    assert found["alive"]
    assert (found["code"], found["left"]) == (0, 0)
    assert "x.test" in log.read_text(), "the page has tried"
