"""Plugins for tests of hooks: written, run, and what is kept of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

__all__ = ["artifacts_of", "hook", "page_folder", "results_of"]


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
