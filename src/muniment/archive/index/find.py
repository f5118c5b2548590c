"""Where a payload is: the record that has it, found in the index of a directory."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from muniment.archive.index.read import rows

__all__ = ["find_payload"]

_COLUMNS = ("url", "digest", "record_type", "warc_file", "warc_offset")


def find_payload(out: Path, digest: str, url: str) -> tuple[str, int] | None:
    """File and offset of a response with a payload, of this URL if there is one; None without any."""
    found: tuple[str, int] | None = None
    for batch in rows(out, _COLUMNS):
        same = pc.equal(batch.column("digest"), pa.scalar(digest))
        kept = batch.filter(pc.and_(same, pc.equal(batch.column("record_type"), pa.scalar("response"))))
        for row in kept.to_pylist():
            if row["url"] == url:
                return str(row["warc_file"]), int(row["warc_offset"])
            found = found or (str(row["warc_file"]), int(row["warc_offset"]))
    return found
