"""Plugins for tests of hooks: written, run, and what is kept of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from tests.support.logging_site import LoggingSite
from tests.support.proxied_runs import recorded

__all__ = ["artifacts_of", "assert_log_is_archive", "hook", "page_folder", "results_of"]


def hook(folder: Path, plugin: str, name: str, text: str, **config: Any) -> Path:
    """Write an executable hook; without a first line it is for sh."""
    path = folder / plugin / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}")
    path.chmod(0o755)
    if config:
        (path.parent / "config.json").write_text(json.dumps(config))
    return path


def results_of(out: Path) -> list[dict[str, Any]]:
    """The rows of `hooks.parquet`."""
    return pq.read_table(out / "hooks.parquet").to_pylist()


def artifacts_of(out: Path) -> dict[str, dict[str, Any]]:
    """The rows of `hook-files.parquet`, by path below the page's folder."""
    rows = pq.read_table(out / "hook-files.parquet").to_pylist()
    return {"/".join(row["path"].split("/")[4:]): row for row in rows}


def page_folder(out: Path) -> Path:
    """The folder of the one page that hooks ran for."""
    [folder] = out.glob("hooks/pages/*/*")
    return folder


def assert_log_is_archive(sites: Iterable[LoggingSite], out: Path) -> None:
    """Each request that a server had is in the WARC with the head of its answer, and nothing else is."""
    had = Counter((site.url(one.path), one.received, _head(one.sent)) for site in sites for one in site.log)
    kept = recorded(out)
    requests = {fields["warc-concurrent-to"]: (url, block) for kind, url, block, fields in kept if kind == "request"}
    answers = [(fields["warc-record-id"], block) for kind, _, block, fields in kept if kind in ("response", "revisit")]
    assert Counter((*requests[number], _head(block)) for number, block in answers) == had


def _head(message: bytes) -> bytes:
    """What revisits have, too."""
    return message.partition(b"\r\n\r\n")[0]
