"""Setting a damaged file aside: it leaves the archive and the index, and stays as evidence in `damaged/`."""

from __future__ import annotations

from pathlib import Path

from muniment.archive.durable import archive_error
from muniment.archive.index.journal import journal_path
from muniment.archive.names import OPEN_SUFFIX
from muniment.disk import sync_directory

__all__ = ["FOLDER", "half_aside", "place_aside", "set_aside"]

FOLDER = "damaged"
_SUFFIX = ".warc.gz"


def place_aside(out: Path, name: str) -> Path:
    """The path that the open file `name` moves to; a second one may come, as its number is used again."""
    folder = out / FOLDER
    place, count = folder / name, 1
    while place.exists():
        count += 1
        place = folder / f"{name.removesuffix(_SUFFIX)}.{count}{_SUFFIX}"
    return place


def set_aside(out: Path, parts: Path, name: str) -> None:
    """Move an open file and its row journal to `damaged/`; its captures are in the index no more, its name is free.

    May be killed at any instant and repeated. Blocks.
    """
    place = place_aside(out, name)
    journal = journal_path(parts, name)
    try:
        if not place.parent.exists():
            place.parent.mkdir()
            sync_directory(out)
        # The journal goes first: its rows must not be there without their file.
        if journal.exists():
            _move(journal, journal_path(place.parent, place.name))
        _move(out / (name + OPEN_SUFFIX), place)
    except OSError as error:
        raise archive_error(error, place) from error


def half_aside(out: Path, name: str) -> bool:
    """Whether a kill came when the row journal of the open file `name` was aside and the file was not."""
    place = place_aside(out, name)
    return journal_path(place.parent, place.name).exists()


def _move(source: Path, target: Path) -> None:
    source.replace(target)
    sync_directory(target.parent)
    sync_directory(source.parent)
