"""The pages of a directory that hooks run for, out of its index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from muniment.archive.index.read import rows
from muniment.model.hooks.runs import CapturedPage
from muniment.model.link import FoundAs
from muniment.rules.hooks.pages import is_hook_row
from muniment.rules.session_ids import page_key

__all__ = ["captured_pages"]

_COLUMNS = (
    "url", "status", "error", "depth", "found_as", "content_type", "fetched_at", "warc_file", "warc_offset", "digest",
    "engine",
)  # fmt: skip

_BESIDE = FoundAs.REQUISITE.label
"""How what a browser or a hook asked for beside its page was found."""


def captured_pages(out: Path) -> Iterator[CapturedPage]:
    """The captures of pages with a record, in the order of the index."""
    for batch in rows(out, _COLUMNS):
        for row in batch.to_pylist():
            url, status, error, depth, found_as, content_type, fetched_at, name, offset, digest, engine = row.values()
            beside = engine != "http" and found_as == _BESIDE
            if name and not beside and is_hook_row(status, error, depth, found_as):
                yield CapturedPage(
                    *(0, page_key(url), url, depth, status, content_type, fetched_at, name, offset or 0, digest)
                )
