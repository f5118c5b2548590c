"""The place of the tracker of an output directory: in it, or where its pointer says (decisions 0080, 0112)."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from muniment.archive.durable import archive_error
from muniment.disk import sync, sync_directory
from muniment.errors import UsageError
from muniment.model.mask import redact
from muniment.model.place import TrackerPlace

__all__ = ["POINTER", "database_url", "keep_place", "tracker_place"]

POINTER = "tracker.place"
"""A file in an output directory whose tracker is elsewhere.

It holds the absolute path of a directory; or the URL of a database and, in a second line, which of its jobs is meant.
"""


def tracker_place(out: Path, state: Path | None = None, database: str | None = None) -> TrackerPlace:
    """The tracker of a directory, which `--state` or `--database` names or an earlier run noted.

    Raises UsageError when they differ.
    """
    if state is not None and database is not None:
        raise UsageError("--state is for SQLite trackers: leave it out with --database")
    kept = _kept(out)
    if database is not None:
        return _on_server(out, database_url(database), kept)
    if state is None:
        return kept or TrackerPlace(out)
    if kept is not None and (kept.database or kept.directory.resolve() != state.resolve()):
        raise UsageError(
            f"the tracker of {out} is in {kept}: leave --state out (if you moved the tracker, remove {out / POINTER})"
        )
    if kept is None and state.resolve() != out.resolve() and TrackerPlace(out).file.exists():
        raise UsageError(f"{out} has its own tracker: leave --state out")
    return TrackerPlace(state)


def _on_server(out: Path, url: str, kept: TrackerPlace | None) -> TrackerPlace:
    if kept is None and TrackerPlace(out).file.exists():
        raise UsageError(f"{out} has its own tracker: leave --database out")
    if kept is not None and kept.database != url:
        raise UsageError(
            f"the tracker of {out} is in {kept}: leave --database out (if the database has moved, change the first "
            f"line of {out / POINTER})"
        )
    return kept or TrackerPlace(out, url, secrets.token_hex(16))


def database_url(text: str) -> str:
    """The URL of a PostgreSQL database in its one form; raises UsageError, which shows no password."""
    shown = redact(text)
    try:
        parts = urlsplit(text)
        usable = parts.scheme in {"postgresql", "postgres"} and parts.path.strip("/") and (parts.port or 1)
    except ValueError:
        usable = False
    if not usable:
        raise UsageError(
            f"{shown} is not a PostgreSQL database; write postgresql://USER@HOST/NAME "
            "(for SQLite elsewhere, --state DIR)"
        )
    if parts.password is not None or any("password" in name for name, _ in parse_qsl(parts.query)):
        raise UsageError(
            "the URL of --database contains a password, which every user of this machine can read: leave it out and "
            f"give it in PGPASSWORD or in ~/.pgpass ({shown.partition('?')[0]})"
        )
    return parts._replace(scheme="postgresql", fragment="").geturl()


def keep_place(out: Path, place: TrackerPlace) -> bool:
    """Note that the tracker of `out` is in `place`; whether that was known. The caller holds the place's lock.

    Raises UsageError when another run was faster with another place.
    """
    inside = not place.database and place.directory.resolve() == out.resolve()
    if (kept := _kept(out)) is not None:
        if kept.database != place.database or kept.place_id != place.place_id:
            raise UsageError(f"another run started in {out} at the same time: give the same command again")
        tracker_place(out, None if place.database else place.directory)
        return True
    if inside:
        return True
    try:
        # whoever makes the file has the directory: its filesystem may have no locks
        descriptor = os.open(out / POINTER, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except FileExistsError:
        return keep_place(out, place)
    except OSError as error:
        raise archive_error(error, out / POINTER) from error
    lines = (place.database, place.place_id) if place.database else (place.directory.resolve(),)
    with os.fdopen(descriptor, "wb") as file:
        file.write(b"".join(os.fsencode(line) + b"\n" for line in lines))
        file.flush()
        sync(file.fileno())
    sync_directory(out)
    return False


def _kept(out: Path) -> TrackerPlace | None:
    try:
        text = os.fsdecode((out / POINTER).read_bytes().rstrip(b"\n"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{out / POINTER} cannot be read: {error.strerror}") from None
    if not text:
        raise UsageError(f"{out / POINTER} is empty, because a run was killed: remove it and give the command again")
    if text.startswith(("http:", "https:")):
        server, _, job = text.partition("\n")
        return TrackerPlace(out, server=server, place_id=job)
    if not text.startswith("postgresql:"):
        return TrackerPlace(Path(text))
    url, _, place_id = text.partition("\n")
    if len(place_id) != 32:
        raise UsageError(
            f"{out / POINTER} is cut short, because a run was killed: remove it and give the command again"
        )
    return TrackerPlace(out, url, place_id)
