"""Fetching again what an earlier run knows: `muniment fetch` with its index, or with JSON lines, as the list."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.support.nginx import Nginx
from tests.support.raw_server import Close, RawServer, Reset, Script, Send, Stall
from warc_reading import Record, captures, records

Muniment = Callable[..., Any]
BODY = b"<p>words that stay the same</p>\n" * 20
SHA1 = hashlib.sha1(BODY, usedforsecurity=False)
FILES = {
    "a.html": BODY,
    "b.html": BODY + b"b",
    "tiny.txt": b"x",
    "large.bin": bytes(range(256)) * 8000,
    "empty.txt": b"",
}
PROFILE = "http://netpreserve.org/warc/1.1/revisit/"


def ok(body: bytes, *lines: bytes) -> Send:
    head = b"".join(line + b"\r\n" for line in (b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *lines))
    return Send(head + b"\r\n" + body)


NOT_MODIFIED = Send(b'HTTP/1.1 304 Not Modified\r\nETag: "v1"\r\n\r\n')


def fetch(muniment: Muniment, seed: Path, out: str, *options: object) -> dict[str, dict[str, Any]]:
    """Fetch a list into a directory that `check` finds sound; the rows by the end of their URLs."""
    done = muniment("fetch", seed, "-o", out, "--quiet", "--workers", 1, *options)
    assert done.code == 0, done.stderr
    checked = muniment("check", out)
    assert (checked.code, checked.stderr) == (0, ""), checked.stdout
    rows = captures(muniment.cwd / out)  # type: ignore[attr-defined]
    assert len({row["url"] for row in rows}) == len(rows)
    return {row["url"].rpartition("/")[2]: row for row in rows}


def stored(out: Path, kind: str) -> dict[str, Record]:
    """The records of a type by the end of their URLs."""
    found = [record for path in sorted(out.glob("*.warc.gz")) for record in records(path) if record.type == kind]
    return {record.url.rpartition("/")[2]: record for record in found}


def listed(folder: Path, lines: Iterable[dict[str, Any]]) -> Path:
    path = folder / "list.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def site(nginx: Callable[..., Nginx], tmp_path: Path) -> Nginx:
    root = tmp_path / "site"
    root.mkdir()
    for name, body in FILES.items():
        (root / name).write_bytes(body)
    return nginx(root)


def first_run(muniment: Muniment, site: Nginx, folder: Path) -> Path:
    """Fetch every file of the site; the index."""
    seed = folder / "list.txt"
    seed.write_text("".join(f"{site.url}{name}\n" for name in FILES))
    rows = fetch(muniment, seed, "first")
    assert not any(row["unchanged"] for row in rows.values())
    return folder / "first" / "captures.parquet"


def test_an_unchanged_site_is_not_stored_twice(muniment: Muniment, site: Nginx, tmp_path: Path) -> None:
    index = first_run(muniment, site, tmp_path)
    rows = fetch(muniment, index, "second")
    assert {(name, row["status"], row["unchanged"], row["record_type"]) for name, row in rows.items()} == {
        (name, 304, True, "revisit") for name in FILES
    }
    assert {(row["body_length"], row["digest"], row["error"]) for row in rows.values()} == {(0, "", "")}
    assert not stored(tmp_path / "second", "response")
    before = stored(tmp_path / "first", "response")
    for name, record in stored(tmp_path / "second", "revisit").items():
        assert record["warc-profile"] == PROFILE + "server-not-modified"
        assert record["warc-refers-to-target-uri"] == site.url + name
        assert record["warc-refers-to-date"] == before[name]["warc-date"]
        assert record.http[1] == b""
    told = muniment("inspect", "second", "--json")
    assert (json.loads(told.stdout)["unchanged"], json.loads(told.stdout)["revisits"]) == (len(FILES), len(FILES))
    # The second index is a list too; the date of a revisit is not the date of a body.
    assert all(row["unchanged"] for row in fetch(muniment, tmp_path / "second" / "captures.parquet", "third").values())
    for name, record in stored(tmp_path / "third", "revisit").items():
        assert (record.all("warc-refers-to-date"), record["warc-refers-to-target-uri"]) == ([], site.url + name)


def test_only_what_changed_is_stored(muniment: Muniment, site: Nginx, tmp_path: Path) -> None:
    index = first_run(muniment, site, tmp_path)
    (site.root / "b.html").write_bytes(b"changed")
    rows = fetch(muniment, index, "second")
    assert {name for name, row in rows.items() if not row["unchanged"]} == {"b.html"}
    assert {name: record.http[1] for name, record in stored(tmp_path / "second", "response").items()} == {
        "b.html": b"changed"
    }


def test_store_unchanged_asks_for_all_and_stores_it(muniment: Muniment, site: Nginx, tmp_path: Path) -> None:
    index = first_run(muniment, site, tmp_path)
    rows = fetch(muniment, index, "second", "--store-unchanged")
    assert {name: (row["status"], row["unchanged"]) for name, row in rows.items()} == {
        name: (200, bool(body)) for name, body in FILES.items()
    }
    assert {name: record.http[1] for name, record in stored(tmp_path / "second", "response").items()} == FILES


def test_store_unchanged_stores_what_this_run_has_already(muniment: Muniment, site: Nginx, tmp_path: Path) -> None:
    for name in ("twin-1.html", "twin-2.html", "twin-3.html"):
        (site.root / name).write_bytes(BODY)
    seed = tmp_path / "list.txt"
    seed.write_text("".join(f"{site.url}{name}\n" for name in (*FILES, "twin-1.html", "twin-2.html")))
    pace = ("--per-host", 1, "--delay", 120)  # each in a batch of its own
    for out, given in (("once", ()), ("all", ("--store-unchanged",))):
        fetch(muniment, seed, out, *pace, *given)
    twins = {"twin-1.html", "twin-2.html"}
    assert set(stored(tmp_path / "once", "revisit")) == twins
    assert not stored(tmp_path / "all", "revisit")
    bodies = {name: record.http[1] for name, record in stored(tmp_path / "all", "response").items()}
    assert bodies == {**FILES, **dict.fromkeys(twins, BODY)}


def test_without_validators_the_digest_saves_the_room(muniment: Muniment, tmp_path: Path) -> None:
    with RawServer({f"/{name}": (ok(body),) for name, body in FILES.items()}) as server:
        seed = tmp_path / "list.txt"
        seed.write_text("".join(server.url(f"/{name}\n") for name in FILES))
        fetch(muniment, seed, "first")
        rows = fetch(muniment, tmp_path / "first" / "captures.parquet", "second")
    for name, body in FILES.items():
        expected = (200, True, "revisit", len(body)) if body else (200, False, "response", 0)
        assert (rows[name]["status"], rows[name]["unchanged"], rows[name]["record_type"]) == expected[:3]
        assert rows[name]["body_length"] == expected[3]
    assert set(stored(tmp_path / "second", "response")) == {"empty.txt"}
    before = stored(tmp_path / "first", "response")
    for name, record in stored(tmp_path / "second", "revisit").items():
        assert record["warc-profile"] == PROFILE + "identical-payload-digest"
        assert record["warc-refers-to-date"] == before[name]["warc-date"]
        assert record["warc-payload-digest"] == before[name]["warc-payload-digest"]
        assert not record.all("warc-refers-to")


def test_json_lines_tell_digests_and_validators(muniment: Muniment, tmp_path: Path) -> None:
    base32 = base64.b32encode(SHA1.digest()).decode()
    told = {
        "hex": {"digest": SHA1.hexdigest().upper()},
        "base32": {"digest": f"sha1:{base32}"},
        "etag": {"etag": '"v1"'},
        "date": {"last_modified": "Wed, 21 Oct 2015 07:28:00 GMT"},
        "evil": {"etag": '"v1"\r\nX-Evil: 1', "last_modified": "x\r\nX-Evil: 1"},
        "star": {"etag": "*"},
        "wrong": {"digest": "sha256:" + "0" * 64, "source": "s"},
        "null": {"digest": None, "etag": None},
    }
    scripts: dict[str, Script] = {f"/{name}": (ok(BODY + name.encode()),) for name in told}
    scripts |= {"/hex": (ok(BODY),), "/base32": (ok(BODY),), "/etag": (NOT_MODIFIED,), "/date": (NOT_MODIFIED,)}
    with RawServer(scripts) as server:
        seed = listed(tmp_path, ({"url": server.url(f"/{name}"), **fields} for name, fields in told.items()))
        done = muniment("fetch", seed, "-o", "out", "--workers", 1)
        sent = {entry.path[1:]: entry.received.decode("latin-1") for entry in server.log}
    assert done.code == 0
    assert "line 7: its digest is not a SHA-1: sha256:" in done.stderr
    assert muniment("check", "out").code == 0
    rows = {row["url"].rpartition("/")[2]: row for row in captures(tmp_path / "out")}
    assert {name for name, row in rows.items() if row["unchanged"]} == {"hex", "base32", "etag", "date"}
    assert {row["error"] for row in rows.values()} == {""}
    assert {row["meta_json"] for row in rows.values()} == {"", '{"source":"s"}'}
    assert 'If-None-Match: "v1"\r\n' in sent["etag"]
    assert "If-Modified-Since: Wed, 21 Oct 2015 07:28:00 GMT\r\n" in sent["date"]
    assert {name for name, request in sent.items() if "\r\nIf-" in request} == {"etag", "date"}
    assert not [name for name, request in sent.items() if "Evil" in request]
    # Nobody said when the earlier captures were made.
    for record in stored(tmp_path / "out", "revisit").values():
        not_modified = record["warc-profile"] == PROFILE + "server-not-modified"
        assert not record.all("warc-refers-to-date")
        assert record.all("warc-refers-to-target-uri") == ([record["warc-target-uri"]] if not_modified else [])


def test_a_server_that_answers_304_to_everything(muniment: Muniment, tmp_path: Path) -> None:
    with RawServer(default=(NOT_MODIFIED,)) as server:
        seed = listed(
            tmp_path,
            ({"url": server.url(f"/{name}"), **more} for name, more in (("asked", {"etag": '"v1"'}), ("plain", {}))),
        )
        rows = fetch(muniment, seed, "out")
    assert {name: (row["unchanged"], row["record_type"]) for name, row in rows.items()} == {
        "asked": (True, "revisit"),
        "plain": (False, "response"),
    }


def test_conditions_are_of_the_lines_own_url(muniment: Muniment, tmp_path: Path) -> None:
    """A redirect in front: its target is another page than the list knows."""
    moved = Send(b"HTTP/1.1 301 Moved\r\nLocation: /new\r\nContent-Length: 0\r\n\r\n")
    with RawServer({"/old": (moved,), "/new": (ok(BODY),)}) as server:
        seed = listed(tmp_path, [{"url": server.url("/old"), "etag": '"v1"', "digest": SHA1.hexdigest()}])
        rows = fetch(muniment, seed, "out")
        assert b"If-None-Match" in server.exchanges("/old")[0].received
        assert b"If-" not in server.exchanges("/new")[0].received
    assert {name: (row["status"], row["unchanged"]) for name, row in rows.items()} == {
        "old": (301, False),
        "new": (200, False),
    }


@pytest.mark.parametrize("fault", [Reset(), Close()])
def test_another_try_asks_on_the_same_condition(fault: Reset | Close, muniment: Muniment, tmp_path: Path) -> None:
    with RawServer(turns={"/": ((fault,), (NOT_MODIFIED,))}) as server:
        rows = fetch(muniment, listed(tmp_path, [{"url": server.url("/"), "etag": '"v1"'}]), "out")
        assert [b'If-None-Match: "v1"' in entry.received for entry in server.exchanges("/")] == [True, True]
    assert (rows[""]["unchanged"], rows[""]["attempt"]) == (True, 2)


CUT = {"closed": (Close(), "cut"), "reset": (Reset(), "reset"), "silent": (Stall(), "timeout-body")}


def test_cut_bodies_are_marked_and_asked_for_in_full_the_next_time(muniment: Muniment, tmp_path: Path) -> None:
    whole = ok(BODY, b'ETag: "v1"').data
    scripts: dict[str, Script] = {f"/{name}": (Send(whole[:-100]), end) for name, (end, _) in CUT.items()}
    long, whole_page = ok(BODY * 9, b'ETag: "v1"'), ok(BODY)
    with RawServer({**scripts, "/long": (long,), "/whole": (whole_page,)}) as server:
        seed = tmp_path / "list.txt"
        seed.write_text("".join(server.url(f"/{name}\n") for name in (*CUT, "long", "whole")))
        options = ("--tries", 1, "--rounds", 0, "--timeout", 2, "--max-body", 3000)
        rows = fetch(muniment, seed, "first", *options)
        again = fetch(muniment, tmp_path / "first" / "captures.parquet", "second", *options)
        assert not [entry for entry in server.log if b"\r\nIf-" in entry.received]
    codes = {name: code for name, (_, code) in CUT.items()} | {"long": "too-large"}
    marks = {"closed": "disconnect", "reset": "disconnect", "silent": "time", "long": "length"}
    assert (rows.pop("whole")["unchanged"], again.pop("whole")["unchanged"]) == (False, True)
    for found in (rows, again):
        assert {name: row["error"].partition(": ")[0] for name, row in found.items()} == codes
        assert {name: row["truncated"] for name, row in found.items()} == marks
        assert {(row["status"], row["unchanged"], row["record_type"]) for row in found.values()} == {
            (200, False, "response")
        }
    for out in ("first", "second"):
        kept = stored(tmp_path / out, "response")
        kept.pop("whole", None)
        assert {name: record["warc-truncated"] for name, record in kept.items()} == marks
        assert kept["closed"].http[1] == BODY[:-100]
        assert kept["long"].http[1] == (BODY * 9)[:3000]
