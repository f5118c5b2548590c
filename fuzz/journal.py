"""The row journal: any prefix of a valid one reads to a prefix of its rows, and garbage after it adds none."""

from __future__ import annotations

import tempfile
from pathlib import Path

from muniment.archive.index.journal import JournalEntry, entries, entry_frame, header_frame, journalled_length
from muniment.errors import ArchiveError

_ROWS = [JournalEntry(length, None) for length in (120, 4000, 70_000)]
_VALID = header_frame("x.warc.gz") + b"".join(map(entry_frame, _ROWS))
SEEDS = [b"\xff\xff" + _VALID, b"\x10\x00", b"\xff\x00" + entry_frame(_ROWS[0])]


def check(data: bytes) -> None:
    """The first two bytes say how much of a valid journal goes before the rest."""
    kept = int.from_bytes(data[:2], "big") % (len(_VALID) + 1)
    tail = data[2:]
    with tempfile.NamedTemporaryFile(prefix="muniment-fuzz-", suffix=".journal") as file:
        path = Path(file.name)
        path.write_bytes(_VALID[:kept])
        prefix = list(entries(path))
        assert prefix == _ROWS[: len(prefix)], "a prefix of the rows"
        assert kept < len(_VALID) or prefix == _ROWS, "all of them"
        path.write_bytes(_VALID[:kept] + tail)
        try:
            found = list(entries(path))
            length = journalled_length(path)
        except ArchiveError:
            return  # a whole header of another version
        assert found[: len(prefix)] == prefix, "what was valid stays so"
        assert length == (found[-1].warc_length if found else 0)
