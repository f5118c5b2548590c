"""Reading a WACZ with nothing of Muniment's: its ZIP, its descriptions, its index and its page lists."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["PackageReader"]


@dataclass
class PackageReader:
    """A WACZ whose form was checked when it was opened."""

    path: Path
    entries: dict[str, bytes] = field(default_factory=dict)
    lines: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        with zipfile.ZipFile(self.path) as package:
            assert package.testzip() is None
            self.entries = {info.filename: package.read(info) for info in package.infolist()}
            assert len(self.entries) == len(package.infolist())
            stored = {info.filename for info in package.infolist() if info.compress_type == zipfile.ZIP_STORED}
            assert not any(info.flag_bits & 1 for info in package.infolist()), "encrypted"
            ends = sorted((info.header_offset, info) for info in package.infolist())
            assert ends[0][0] == 0, "data before the first entry"
        assert {name for name in self.entries if name.endswith(".gz")} <= stored
        self._check_description()
        self.lines = self._read_index()

    @property
    def description(self) -> dict[str, Any]:
        """What it says of itself."""
        said: dict[str, Any] = json.loads(self.entries["datapackage.json"])
        return said

    @property
    def warcs(self) -> dict[str, bytes]:
        """Its WARC files by name."""
        return {
            name.removeprefix("archive/"): data for name, data in self.entries.items() if name.startswith("archive/")
        }

    def pages(self, name: str = "pages") -> list[dict[str, str]]:
        """The lines of a page list, without its head."""
        head, *lines = map(json.loads, self.entries[f"pages/{name}.jsonl"].splitlines())
        assert head["format"] == "json-pages-1.0"
        return lines

    def text_of_index(self) -> str:
        """The whole index."""
        return gzip.decompress(self.entries["indexes/index.cdx.gz"]).decode()

    def record(self, fields: dict[str, str]) -> tuple[dict[str, str], bytes]:
        """Header and block of the record of a line of the index."""
        offset, length = int(fields["offset"]), int(fields["length"])
        member = gzip.decompress(self.warcs[fields["filename"]][offset : offset + length])
        head, _, rest = member.partition(b"\r\n\r\n")
        header = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        return header, rest[: int(header["Content-Length"])]

    def body(self, fields: dict[str, str]) -> bytes:
        """The body of a capture; of a revisit that of the record it refers to, by URL and date, as players do."""
        header, block = self.record(fields)
        if header["WARC-Type"] == "revisit":
            url, date = header["WARC-Refers-To-Target-URI"], header["WARC-Refers-To-Date"]
            at = "".join(filter(str.isdigit, date))[:14]
            found = [line for _, when, line in self.lines if line["url"] == url and when == at]
            header, block = self.record(next(line for line in found if line["mime"] != "warc/revisit"))
        return block.partition(b"\r\n\r\n")[2]

    def _check_description(self) -> None:
        said, digest = self.description, json.loads(self.entries["datapackage-digest.json"])
        assert digest == {"path": "datapackage.json", "hash": _sha256(self.entries["datapackage.json"])}
        assert (said["profile"], said["wacz_version"]) == ("data-package", "1.1.1")
        others = self.entries.keys() - {"datapackage.json", "datapackage-digest.json"}
        assert {one["path"] for one in said["resources"]} == others
        names = [one["name"] for one in said["resources"]]
        assert len(set(names)) == len(names)
        assert set("".join(names)) <= set("-abcdefghijklmnopqrstuvwxyz0123456789._/"), names
        for one in said["resources"]:
            data = self.entries[one["path"]]
            assert (one["hash"], one["bytes"]) == (_sha256(data), len(data)), one

    def _read_index(self) -> list[tuple[str, str, dict[str, str]]]:
        lines = self.text_of_index().splitlines()
        assert lines == sorted(lines, key=str.encode)
        found = []
        for line in lines:
            key, at, fields = line.split(" ", 2)
            found.append((key, at, json.loads(fields)))
        meta, *blocks = self.entries["indexes/index.idx"].decode().splitlines()
        assert json.loads(meta.split(" ", 2)[2])["format"] == "cdxj-gzip-1.0"
        packed = self.entries["indexes/index.cdx.gz"]
        ends = [json.loads(block.split(" ", 2)[2]) for block in blocks]
        assert b"".join(packed[one["offset"] : one["offset"] + one["length"]] for one in ends) == packed
        for _, at, fields in found:
            self._check_line(at, fields)
        return found

    def _check_line(self, at: str, fields: dict[str, str]) -> None:
        """A line leads to the record that it says."""
        header, block = self.record(fields)
        assert header["WARC-Target-URI"] == fields["url"]
        assert "".join(filter(str.isdigit, header["WARC-Date"]))[:14] == at
        assert block.split(b" ", 2)[1].decode() == fields["status"]
        if "WARC-Payload-Digest" in header:
            assert header["WARC-Payload-Digest"] == fields["digest"]
            base64.b32decode(fields["digest"].removeprefix("sha1:"))


def _sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
