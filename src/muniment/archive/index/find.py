"""Where a payload is: the record that has it, found in the index of a directory."""

from __future__ import annotations

from pathlib import Path

from muniment.archive.index.read import rows_with

__all__ = ["find_payload"]

_COLUMNS = ("url", "digest", "record_type", "warc_file", "warc_offset")


def find_payload(out: Path, digest: str, url: str) -> tuple[str, int] | None:
    """File and offset of a response with a payload, of this URL if there is one; None without any."""
    found: tuple[str, int] | None = None
    for row in rows_with(out, "digest", [digest], _COLUMNS):
        if row["record_type"] == "response":
            found = found or (str(row["warc_file"]), int(row["warc_offset"]))
            if row["url"] == url:
                return str(row["warc_file"]), int(row["warc_offset"])
    return found
