"""The seed list of a fetch, as a command line names it; standard input is kept first."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from muniment.archive.durable import archive_error, sync_directory
from muniment.errors import UsageError
from muniment.seeds.source import Source, digest_of, open_source
from muniment.settings import Settings

__all__ = ["SPOOLED", "named_list", "spooled_list"]

SPOOLED = "seed-list"
"""What came on standard input, in the output directory."""
_PIECE = 1 << 20


def named_list(settings: Settings) -> Source | None:
    """The list of a fetch, before anything is written; None for standard input and in a crawl. Raises UsageError."""
    if settings.shard >= settings.shards:
        raise UsageError(
            f"there is no --shard {settings.shard} of --shards {settings.shards}: count from 0 to {settings.shards - 1}"
        )
    if settings.seed in ("", "-"):
        return None
    return open_source(settings.seed, settings.seed_format, Path(settings.seed))


def spooled_list(settings: Settings, out: Path) -> Source:
    """The list that comes on standard input, kept in the directory, which the caller has locked. Raises UsageError."""
    return open_source(settings.seed, settings.seed_format, _spool(out))


def _spool(out: Path) -> Path:
    """Keep standard input; a resumed run that is given none goes on with what was kept."""
    kept, aside = out / SPOOLED, out / (SPOOLED + ".new")
    try:
        with aside.open("wb") as file:
            while piece := sys.stdin.buffer.read(_PIECE):
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise archive_error(error, aside) from error
    if not kept.exists():
        aside.rename(kept)
        sync_directory(out)
        return kept
    same = not aside.stat().st_size or digest_of(aside) == digest_of(kept)
    aside.unlink()
    if not same:
        raise UsageError(f"{out} holds the fetch of another list; choose another directory with -o")
    return kept
