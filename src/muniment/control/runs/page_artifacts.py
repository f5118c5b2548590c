"""What a browser and hooks made of a page: pictures, documents and files beside its captures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from muniment.archive.hooks.read import file_pieces, file_rows
from muniment.archive.index.read import rows_with
from muniment.archive.warc.inflate import DamageError
from muniment.archive.warc.stored import read_record
from muniment.control.captures import stored_pieces
from muniment.control.hook_reports import hooks_of_page
from muniment.control.results import FILES
from muniment.errors import ArchiveError, NotFoundError, TrackerError
from muniment.model.hooks.runs import HookArtifact, HookOutcome, HookResult
from muniment.model.network.captures import ArtifactFile, ArtifactRecord, PageArtifacts

__all__ = ["HooksOfPage", "artifacts_of_page", "hook_file", "picture_of"]

_T = TypeVar("_T", bound=Struct)
_COLUMNS = ("url", "fetched_at", "body_length", "warc_file", "warc_offset")
_KINDS = (*FILES, "customJs")
_SIGNATURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}
_LONGEST_SIGNATURE = max(map(len, _SIGNATURES))
_MOST_FILES = 500
HooksOfPage = tuple[list[HookResult], list[HookArtifact]]
"""What the tracker of a run that goes on has of the hooks of a page: their tables are written at its end."""


def artifacts_of_page(out: Path, url: str, hooks: HooksOfPage | None = None) -> PageArtifacts:
    """What a directory has of a page, by its normalised URL; raises TrackerError when that cannot be read."""
    try:
        if hooks is None:
            runs = hooks_of_page(out, url)
            files = [_named(ArtifactFile, row) for row in islice(file_rows(out, "url", url), _MOST_FILES)]
        else:
            runs = tuple(_named(HookOutcome, asdict(one)) for one in hooks[0])
            files = [_named(ArtifactFile, asdict(one)) for one in hooks[1][:_MOST_FILES]]
        return PageArtifacts(tuple(_records(out, url)), runs, tuple(files))
    except ArchiveError as error:
        raise TrackerError(f"{error}; look again in a moment") from None


def _named(kind: type[_T], row: Mapping[str, Any]) -> _T:
    return kind(*(row[name] for name in kind.__struct_fields__))


def _records(out: Path, url: str) -> Iterator[ArtifactRecord]:
    names = {f"urn:{kind}:{url}": kind for kind in _KINDS}
    newest: dict[str, ArtifactRecord] = {}
    for row in rows_with(out, "url", list(names), _COLUMNS):
        if row["warc_file"]:
            kind = names[row["url"]]
            one = ArtifactRecord(kind, row["fetched_at"], row["body_length"], row["warc_file"], row["warc_offset"] or 0)
            newest[kind] = max(one, newest.get(kind, one), key=lambda record: record.fetched_at)
    yield from sorted(newest.values(), key=lambda record: _KINDS.index(record.kind))


def picture_of(out: Path, file: str, offset: int) -> tuple[str, Iterator[bytes]]:
    """The media type and the bytes of a picture that a browser made; raises NotFoundError for any other record."""
    try:
        header, block = read_record(stored_pieces(out, file, offset))
        begin = b""
        while len(begin) < _LONGEST_SIGNATURE and (piece := next(block, b"")):
            begin += piece
    except (DamageError, OSError) as error:
        raise NotFoundError(f"the record at {offset} of {file} cannot be read: {error}") from None
    kinds = [kind for signature, kind in _SIGNATURES.items() if begin.startswith(signature)]
    if header.get("warc-type") != "resource" or not kinds:
        raise NotFoundError(f"the record at {offset} of {file} is not a picture that a browser made")
    return kinds[0], chain([begin], block)


def hook_file(out: Path, path: str, hooks: HooksOfPage | None = None) -> Iterator[bytes]:
    """The bytes of a file that hooks left; raises NotFoundError for any other."""
    links = (
        [row["link"] for row in file_rows(out, "path", path)]
        if hooks is None
        else [one.link for one in hooks[1] if one.path == path]
    )
    if all(links):
        raise NotFoundError(f"no hook left a file {path[:200]!r}")
    try:
        return file_pieces(out, path)
    except OSError as error:
        raise NotFoundError(f"{path[:200]!r} cannot be read: {error.strerror}") from None
