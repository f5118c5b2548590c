"""What other programs see: error tree, failure codes, columns, version."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pyarrow as pa

import muniment
from muniment import errors
from muniment.archive.index.parquet import SCHEMA
from muniment.model.capture import Capture
from muniment.model.failure import FAILURE_CODES

ROOT = Path(__file__).resolve().parents[2]

CODES = [
    "dns",
    "refused",
    "unreachable",
    "reset",
    "tls",
    "timeout-connect",
    "timeout-header",
    "timeout-body",
    "cut",
    "protocol",
    "too-large",
    "robots",
    "scheme",
    "dead-host",
    "private-address",
    "limit",
    "disk",
    "browser",
]
COLUMNS = {
    "url": pa.string(),
    "host": pa.string(),
    "status": pa.int32(),
    "fetched_at": pa.int64(),
    "content_type": pa.string(),
    "body_length": pa.int64(),
    "digest": pa.string(),
    "unchanged": pa.bool_(),
    "warc_file": pa.string(),
    "warc_offset": pa.int64(),
    "warc_length": pa.int64(),
    "error": pa.string(),
    "meta_json": pa.string(),
}
MORE_COLUMNS = [
    "record_id",
    "record_type",
    "ip",
    "started_at",
    "duration_ms",
    "ttfb_ms",
    "redirect_to",
    "seed_url",
    "attempt",
    "depth",
    "found_as",
    "truncated",
    "etag",
    "last_modified",
    "method",
    "page_id",
    "engine",
]


def test_columns_are_the_contracts_in_its_order():
    assert list(Capture.__struct_fields__) == [*COLUMNS, *MORE_COLUMNS]
    assert SCHEMA.names == [*COLUMNS, *MORE_COLUMNS]


def test_columns_have_the_contracts_types():
    assert {name: SCHEMA.field(name).type for name in COLUMNS} == COLUMNS


def test_failure_codes_are_the_contracts():
    assert list(FAILURE_CODES) == CODES


def drawn() -> dict[str, str]:
    """Each error of the tree in the docstring, with its parent."""
    parents: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in errors.__doc__.splitlines():
        if name := re.match(r"[ │├└─]*(\w+Error)\b", line):
            depth = name.start(1)
            above = [(d, n) for d, n in above if d < depth]
            parents[name[1]] = above[-1][1] if above else "Exception"
            above.append((depth, name[1]))
    return parents


def test_the_tree_of_errors_is_as_drawn():
    classes = {name: kind.__base__.__name__ for name, kind in vars(errors).items() if isinstance(kind, type)}
    assert drawn() == classes
    assert set(errors.__all__) == set(classes)


def test_exit_codes_of_errors_are_the_contracts():
    codes = {name: getattr(errors, name).exit_code for name in errors.__all__}
    assert codes == {
        "MunimentError": 1, "UsageError": 2, "BusyError": 2, "ArchiveError": 1, "DiskFullError": 3,
        "TrackerError": 1, "TrackerLostError": 3, "ProcessError": 1, "ProtocolError": 1, "StoppedError": 3,
        "AbortedError": 3, "ForeignJobError": 2, "NotFoundError": 2, "PlaceError": 2, "PrivateTargetError": 2,
        "RefusedError": 2, "ServerError": 1, "ServerLostError": 3, "SessionEndedError": 2, "TooLargeError": 1,
        "WrongAskError": 1, "LinksLostError": 1,
    }  # fmt: skip


def test_one_version_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    headings = re.findall(r"^## \[(\d[^\]]*)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert project["version"] == muniment.__version__ == headings[0]
