"""The archives of a fleet's jobs that this machine can read: which there are, a search in them, and their bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from msgspec import structs

from muniment.archive.hooks.read import file_rows
from muniment.clock import monotonic
from muniment.control.captures import payload_of, record_of, search_captures
from muniment.control.runs.page_artifacts import artifacts_of_page, hook_file, picture_of
from muniment.control.runs.replays import Replays
from muniment.control.tracker_location import POINTER
from muniment.errors import NotFoundError, UsageError
from muniment.model.network.captures import CaptureFilter, CaptureRow, PageArtifacts

__all__ = ["FleetArchives"]

_LOOK_S = 2.0
_PLACE = "pipeline.place"
_JOB = re.compile(r"[1-9][0-9]{0,8}")
_BELOW = ("", "*", "*/*")
"""Where the output directory of a job is: it was named itself, its pipeline's directory was, or a folder of these."""


class FleetArchives:
    """Output directories of a tracker's jobs; each pipeline that worked at a job has one. Any thread may ask."""

    def __init__(self, paths: Sequence[Path], tracker_id: str) -> None:
        """Raises UsageError for a path that is not a directory."""
        for path in paths:
            if not path.is_dir():
                raise UsageError(f"--archives {path} is not a directory; give the directory of a pipeline")
        self._paths, self._tracker_id = paths, tracker_id
        self._seen: tuple[float, list[tuple[int, Path]]] = (-_LOOK_S, [])
        self._replays = Replays()

    def captures(self, wanted: CaptureFilter) -> list[CaptureRow]:
        """A page of captures, and one more."""
        found = self._directories()
        return search_captures([one for one in found if wanted.job in (None, one[0])], wanted)

    def record(self, job: int, file: str, offset: int) -> Iterator[bytes]:
        """A record as it is stored; raises NotFoundError."""
        return record_of(self._holder(job, file), file, offset)

    def payload(self, job: int, file: str, offset: int) -> Iterator[bytes]:
        """The payload of a capture; raises NotFoundError."""
        return payload_of(self._holder(job, file), file, offset)

    def view_address(self, job: int, url: str, at: int) -> str:
        """Where the capture of a URL nearest to a moment is shown, on this machine; raises NotFoundError."""
        wanted = CaptureFilter(q=url, job=job, since=at, until=at + 1)
        rows = [row for row in self.captures(wanted) if row.url == url and row.warc_file]
        if not rows:
            raise NotFoundError(f"no archive here has a capture of {url[:200]} at that moment")
        return self._replays.address(self._holder(job, rows[0].warc_file), url, at)

    def made(self, job: int, url: str) -> PageArtifacts:
        """What a browser and hooks made of a page, in all archives of the job."""
        found = [artifacts_of_page(out, url) for number, out in self._directories() if number == job]
        parts = zip(*map(structs.astuple, found), strict=True)
        return PageArtifacts(*(tuple(chain.from_iterable(part)) for part in parts))

    def picture(self, job: int, file: str, offset: int) -> tuple[str, Iterator[bytes]]:
        """The media type and the bytes of a picture that a browser made; raises NotFoundError."""
        return picture_of(self._holder(job, file), file, offset)

    def hook_file(self, job: int, path: str, url: str) -> Iterator[bytes]:
        """The bytes of a file that hooks of a page left; raises NotFoundError."""
        mine = [out for number, out in self._directories() if number == job]
        return hook_file(next((out for out in mine if any(file_rows(out, "path", path))), self._holder(job, "")), path)

    def close(self) -> None:
        """End what was started to look at captures."""
        self._replays.close()

    def _holder(self, job: int, file: str) -> Path:
        """The directory of a job that has a WARC file; any of its own when none has, whose reader says so."""
        mine = [out for number, out in self._directories() if number == job]
        if not mine:
            raise NotFoundError(f"no archive of job {job} is below the paths that --archives names")
        return next((out for out in mine if _has(out, file)), mine[0])

    def _directories(self) -> list[tuple[int, Path]]:
        at, found = self._seen
        if monotonic() - at >= _LOOK_S:
            found = sorted({one for path in self._paths for one in self._below(path)})
            self._seen = monotonic(), found
        return found

    def _below(self, path: Path) -> Iterator[tuple[int, Path]]:
        for pattern in _BELOW:
            for pointer in path.glob(f"{pattern}/{POINTER}".removeprefix("/")):
                out = pointer.parent.resolve()
                if (job := _text_of(pointer).rpartition("\n")[2]) and _JOB.fullmatch(job) and self._is_ours(out):
                    yield int(job), out

    def _is_ours(self, out: Path) -> bool:
        return _text_of(out.parent / _PLACE) == self._tracker_id


def _has(out: Path, file: str) -> bool:
    return bool(file) and "/" not in file and any((out / name).exists() for name in (file, f"{file}.open"))


def _text_of(path: Path) -> str:
    with suppress(OSError, UnicodeDecodeError):
        return path.read_text("utf-8").strip()
    return ""
