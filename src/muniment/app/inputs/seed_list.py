"""The seed list of a fetch, as a command line names it; what can be read once alone is kept first."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO

from muniment.archive.durable import archive_error
from muniment.disk import sync, sync_directory
from muniment.errors import UsageError
from muniment.model.mask import redact
from muniment.seeds.formats import FORMATS, format_of
from muniment.seeds.plain import HEAD, is_plain, plain_pieces
from muniment.seeds.source import SeedSource, digest_of, open_source
from muniment.settings.option_table import Settings

__all__ = ["SPOOLED", "named_list", "spooled_list"]

SPOOLED = "seed-list"
"""What came on standard input or through a pipe, or was packed, in the output directory."""
_PIECE = 1 << 20


def named_list(settings: Settings) -> SeedSource | None:
    """The list of a fetch, before anything is written; None in a crawl and for a list to keep. Raises UsageError.

    Kept is what can be read once alone, and a text that is packed or in UTF-16.
    """
    if settings.shard >= settings.shards:
        raise UsageError(
            f"there is no --shard {settings.shard} of --shards {settings.shards}: count from 0 to {settings.shards - 1}"
        )
    if not settings.seed or _is_stream(settings.seed):
        return None
    source = open_source(settings.seed, settings.seed_format, Path(settings.seed))
    return source if not FORMATS[source.kind].is_text or _is_plain(Path(settings.seed)) else None


def spooled_list(settings: Settings, out: Path) -> SeedSource:
    """A list that `named_list` did not open, kept in the directory, which the caller has locked. Raises UsageError."""
    form = format_of(settings.seed, settings.seed_format)
    return open_source(settings.seed, form.name, _spool(settings.seed, out, plain=form.is_text))


def _is_stream(seed: str) -> bool:
    """Whether a list can be read once alone: standard input, or a pipe such as a shell's `<(zcat list.gz)`."""
    try:
        return seed == "-" or stat.S_IFMT(Path(seed).stat().st_mode) not in (stat.S_IFREG, stat.S_IFDIR)
    except (OSError, ValueError):
        return False


def _is_plain(path: Path) -> bool:
    with path.open("rb") as file:
        return is_plain(file.read(HEAD))


def _spool(seed: str, out: Path, *, plain: bool) -> Path:
    """Keep a stream; a resumed run that is given an empty one goes on with what was kept."""
    kept, aside = out / SPOOLED, out / (SPOOLED + ".new")
    with _opened(seed) as stream:
        try:
            _copy(seed, stream, aside, plain=plain)
        except OSError as error:
            raise archive_error(error, aside) from error
        except UsageError:
            aside.unlink()
            raise
    if not kept.exists():
        aside.rename(kept)
        sync_directory(out)
        return kept
    same = not aside.stat().st_size or digest_of(aside) == digest_of(kept)
    aside.unlink()
    if not same:
        raise UsageError(f"{out} holds the fetch of another list; choose another directory with -o")
    return kept


def _opened(seed: str) -> AbstractContextManager[BinaryIO]:
    try:
        return nullcontext(sys.stdin.buffer) if seed == "-" else Path(seed).open("rb")
    except OSError as error:
        raise UsageError(f"the list {seed} cannot be read: {error.strerror}") from None


def _copy(seed: str, stream: BinaryIO, to: Path, *, plain: bool) -> None:
    pieces = iter(lambda: stream.read(_PIECE), b"")
    # what comes may hold accounts
    with os.fdopen(os.open(to, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        for piece in plain_pieces(pieces, f"the list {redact(seed)}") if plain else pieces:
            file.write(piece)
        file.flush()
        sync(file.fileno())
