"""The ZIP of a WACZ: entries written once and hashed on the way, `datapackage.json` and its digest."""

from __future__ import annotations

import hashlib
import os
import re
import time
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from muniment import __version__
from muniment.archive.export.target import FileSums

__all__ = ["Description", "WaczPackage", "pieces_of"]

WACZ_VERSION = "1.1.1"
_PIECE = 8 << 20
"""Large enough that threads seldom wait for one another."""
_OTHER = re.compile(r"[^-a-z0-9._/]")


class Description(Struct, frozen=True, kw_only=True):
    """What a package says of itself; empty fields are left out."""

    title: str
    description: str
    created: str
    main_url: str
    main_date: str


class _Resource(Struct, frozen=True):
    name: str
    path: str
    hash: str
    bytes: int


def pieces_of(path: Path, length: int | None = None) -> Iterator[memoryview]:
    """The bytes of a file, up to a length; a piece is there until the next one is asked for. Raises OSError."""
    with path.open("rb", buffering=0) as file:
        yield from _pieces(file.fileno(), 0, path.stat().st_size if length is None else length)


def _pieces(file: int, start: int, end: int) -> Iterator[memoryview]:
    # one buffer for all: to get new memory for each costs as much as to copy it
    buffer = memoryview(bytearray(min(end - start, _PIECE)))
    while start < end and (read := os.preadv(file, [buffer[: end - start]], start)):
        start += read
        yield buffer[:read]


class WaczPackage:
    """A WACZ that is being written. The same entries give the same bytes."""

    def __init__(self, file: IO[bytes], created_s: int) -> None:
        self._file, self._whole, self._digested = file, hashlib.sha256(), 0
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True)
        self._date = time.gmtime(max(created_s, 315_532_800))[:6]  # a ZIP begins with the year 1980
        self._resources: list[_Resource] = []

    def add(self, path: str, length: int, pieces: Iterable[memoryview], *, deflate: bool = False) -> None:
        """Write one entry of so many bytes. Raises OSError; ValueError when the pieces have another length."""
        digest, written = hashlib.sha256(), 0
        with self._zip.open(self._info(path, length, deflate=deflate), "w") as entry:
            for piece in pieces:
                entry.write(piece)
                digest.update(piece)
                written += len(piece)
        if written != length:
            raise ValueError(f"{path}: {written} bytes, and {length} were there before")
        self._resources.append(_Resource(self._name(path), path, f"sha256:{digest.hexdigest()}", length))

    def settle(self) -> None:
        """Digest and sync the entries that are written, so that less is left to do at the end. Raises OSError."""
        self._file.flush()
        for piece in _pieces(self._file.fileno(), self._digested, self._file.tell()):
            self._whole.update(piece)
            self._digested += len(piece)
        os.fdatasync(self._file.fileno())

    def close(self, said: Description) -> FileSums:
        """Write the description and its digest, and the directory of the ZIP. Raises OSError."""
        fields = {
            "profile": "data-package",
            "wacz_version": WACZ_VERSION,
            "title": said.title,
            "description": said.description,
            "created": said.created,
            "software": f"Muniment {__version__}",
            "mainPageUrl": said.main_url,
            "mainPageDate": said.main_date,
        }
        package = {**{name: value for name, value in fields.items() if value}, "resources": self._resources}
        data = _json(package)
        self._write("datapackage.json", data)
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        self._write("datapackage-digest.json", _json({"path": "datapackage.json", "hash": digest}))
        self._zip.close()
        self.settle()
        return FileSums(self._digested, self._whole.hexdigest())

    def give_up(self) -> None:
        """Close what is not whole, and never will be."""
        self._zip.fp = None

    def _write(self, path: str, data: bytes) -> None:
        with self._zip.open(self._info(path, len(data), deflate=False), "w") as entry:
            entry.write(data)

    def _info(self, path: str, length: int, *, deflate: bool) -> zipfile.ZipInfo:
        info = zipfile.ZipInfo(path, self._date)
        info.compress_type = zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED
        info.external_attr = 0o644 << 16
        info.create_system = 3
        info.file_size = length
        return info

    def _name(self, path: str) -> str:
        """A name that no other resource has, of the characters that names may have."""
        wanted = _OTHER.sub("-", path.rpartition("/")[2].lower())
        taken = {resource.name for resource in self._resources}
        name, number = wanted, 1
        while name in taken:
            number += 1
            name = f"{wanted}-{number}"
        return name


def _json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2)
