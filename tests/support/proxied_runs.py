"""Crawls of pages whose clients go through the recording proxy, and what they left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from fastwarc.warc import ArchiveIterator
from tests.support.logging_site import LoggedExchange

from muniment.archive.index.read import rows

__all__ = ["assert_equal", "crawl_command", "ended", "environment", "events", "recorded", "table", "visit"]

ROOT = Path(__file__).parents[2]
BEGIN = """
import sys, socket, time
from tests.support.proxy_client import ProxyClient, read_answer
client = ProxyClient(sys.argv[1], sys.argv[2])
"""


def crawl_command(out: Path, url: str, program: str, *options: str) -> list[str]:
    """The command of a crawl of a page whose client is a program of these lines."""
    out.with_suffix(".client").write_text(BEGIN + program)
    command = [sys.executable, "-m", "tests.support.proxied_pages", "crawl", url, "-o", str(out), "--workers", "1"]
    return [*command, "--no-robots", "--insecure", "--quiet", *options]


def environment() -> dict[str, str]:
    """That of the command."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}


def visit(folder: Path, url: str, program: str, *options: str) -> Path:
    """Crawl such a page; the output directory."""
    out = folder / "out"
    command = crawl_command(out, url, program, *options)
    done = subprocess.run(command, cwd=folder, env=environment(), timeout=120, check=False)
    assert done.returncode == 0, out.with_suffix(".output").read_text()
    return out


def events(out: Path) -> list[dict[str, Any]]:
    """What the page's owner was notified of."""
    return [json.loads(line) for line in out.with_suffix(".told").read_text().splitlines()]


def ended(out: Path) -> dict[str, dict[str, Any]]:
    """The ends of requests by the path of their URL."""
    return {"/" + one["url"].split("/", 3)[3]: one for one in events(out) if one["kind"] == "RequestEnded"}


def recorded(out: Path) -> list[tuple[str, str, bytes, dict[str, str]]]:
    """Type, URL, block and fields of all records."""
    found = []
    for path in sorted(out.glob("*.warc.gz")):
        with path.open("rb") as file:
            for one in ArchiveIterator(file, parse_http=False):
                fields = {name.lower(): value for name, value in one.headers.items()}
                found.append((fields["warc-type"], fields.get("warc-target-uri", ""), one.reader.read(), fields))
    return found


def assert_equal(out: Path, url: str, logged: LoggedExchange) -> None:
    """The only exchange of a URL is in the archive as it was logged."""
    ours = [(kind, block) for kind, target, block, _ in recorded(out) if target == url]
    assert [block for kind, block in ours if kind == "request"] == [logged.received]
    [(kind, block)] = [one for one in ours if one[0] in ("response", "revisit")]
    head, end, body = logged.sent.partition(b"\r\n\r\n")
    assert block == head + end + (body if kind == "response" else b"")


def table(out: Path) -> list[dict[str, Any]]:
    """The rows of the index."""
    return [row for batch in rows(out) for row in batch.to_pylist()]
