"""Results of a page: what its attempts gave, and the files that a browser made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from muniment.archive.durable import archive_error
from muniment.archive.index.read import rows_with
from muniment.archive.names import OPEN_SUFFIX
from muniment.archive.warc.inflate import DamageError
from muniment.archive.warc.stored import member_pieces, read_message, read_record
from muniment.errors import ArchiveError, UsageError
from muniment.extract.charset import decode as decode_text
from muniment.extract.charset import label
from muniment.extract.coding import decode
from muniment.model.page import PageState
from muniment.model.place import TrackerPlace
from muniment.model.url import did_you_mean, normalise_page, without_route
from muniment.tracker.connect import tracker_to_read
from muniment.tracker.jobs import store as jobs
from muniment.tracker.queue.page_lookup import AttemptRecord, find_page
from muniment.tracker.stores.results import ResultStore, StoredResult

__all__ = ["FILES", "PageResults", "document_of", "results_of", "save_results"]

_COLUMNS = ("url", "attempt", "page_id", "redirect_to", "warc_file", "warc_offset", "record_type")
_MOST_REDIRECTS = 20
_MOST_MARKUP = 64 << 20
FILES = {
    "view": "view.png",
    "fullPage": "fullPage.png",
    "thumbnail": "thumbnail.jpg",
    "dom": "dom.html",
    "text": "text.txt",
    "pageinfo": "pageinfo.json",
}
"""The file of each record, by the word after `urn:`."""


class PageResults(Struct, frozen=True, kw_only=True):
    """What one attempt at a page gave; None stands for what there is none of."""

    url: str
    attempt: int | None = None
    state: str
    """`done`, or how the page waits: `ready`, `claimed`, `skipped`, `stashed`."""
    status_code: int | None = None
    final_url: str | None = None
    title: str | None = None
    outlinks: Any = None
    requisites: Any = None
    console: Any = None
    screenshot: Any = None
    custom_js: Any = None
    """Status and value."""
    ua: str | None = None
    page_id: str | None = None


def results_of(out: Path, place: TrackerPlace, text: str, attempt: int | None) -> PageResults:
    """The results of the last attempt at a page, or of a certain one; raises UsageError when there is no such page."""
    url = normalise_page(text)
    if url is None:
        raise UsageError(f"{text!r} is not an http or https URL{did_you_mean(text)}")
    url = _followed(out, url)
    with tracker_to_read(place) as db:
        job = jobs.find_job(db)
        page = find_page(db, job.job_id, url) if job is not None else None
        if job is None or page is None:
            raise UsageError(
                f"{url} is not a page of the job in {out}; muniment why {url} -o {out} says what is known of it"
            )
        stored = ResultStore(db, job.job_id).of_page(page.page_id)
    tried = {one.number: one for one in page.attempts}
    if attempt is not None and attempt not in tried:
        raise UsageError(f"{url} has no attempt {attempt}; it was tried {len(tried)} times")
    number = attempt if attempt is not None else max(tried, default=None)
    mine = [one for one in stored if one.attempt == number]
    state = "done" if page.state == PageState.READY and not page.attempts_remaining else page.state.lower()
    return _told(page.url, state, tried.get(number or 0), mine, _page_id(out, page.url, tried.get(number or 0)))


def _told(
    url: str, state: str, tried: AttemptRecord | None, stored: list[StoredResult], page_id: str | None
) -> PageResults:
    values: dict[str, Any] = {one.kind: _value(one) for one in stored if one.kind != "custom_js"}
    script = next((one for one in stored if one.kind == "custom_js"), None)
    values.setdefault("status_code", tried.status or None if tried else None)
    if script is not None:
        values["custom_js"] = {"status": script.status, "value": _value(script)}
    attempt = tried.number if tried else None
    return msgspec.convert({**values, "url": url, "attempt": attempt, "state": state, "page_id": page_id}, PageResults)


def _value(one: StoredResult) -> Any:
    return msgspec.json.decode(one.value) if one.value else None


def _followed(out: Path, url: str) -> str:
    """Where a URL leads by the redirects that were captured."""
    for _ in range(_MOST_REDIRECTS):
        leads = [row["redirect_to"] for row in rows_with(out, "url", [url], _COLUMNS) if row["redirect_to"]]
        if not leads:
            break
        url = leads[-1]
    return url


def _page_id(out: Path, url: str, tried: AttemptRecord | None) -> str | None:
    if tried is None:
        return None
    rows = [row for row in rows_with(out, "url", [without_route(url)], _COLUMNS) if row["attempt"] == tried.number]
    ids = list(dict.fromkeys(row["page_id"] for row in rows if row["page_id"]))
    if len(ids) > 1:  # other routes of the document have rows of its URL, too
        ids = _opened_as(out, url, ids) or ids
    return ids[-1] if ids else None


def _opened_as(out: Path, url: str, page_ids: list[str]) -> list[str]:
    """Those of some pages that were opened at a URL, of which the rows have no fragment."""
    rows = rows_with(out, "page_id", page_ids, _COLUMNS)
    said = (row for row in rows if row["url"].startswith("urn:pageinfo:"))
    return [row["page_id"] for row in said if _page_info(out, row).get("url") == url]


def _page_info(out: Path, row: dict[str, Any]) -> dict[str, Any]:
    try:
        _, block = read_record(member_pieces(_container(out, row["warc_file"]), row["warc_offset"]))
        info = msgspec.json.decode(b"".join(block))
    except (DamageError, OSError, msgspec.DecodeError):
        return {}
    return info if isinstance(info, dict) else {}


def save_results(out: Path, found: PageResults, folder: Path) -> list[str]:
    """Write the files that there are; their names. Raises ArchiveError when a record cannot be read."""
    saved = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for row in rows_with(out, "page_id", [found.page_id], _COLUMNS) if found.page_id else ():
            kind, _, url = row["url"].removeprefix("urn:").partition(":")
            mine = row["record_type"] == "resource" and url == without_route(found.url)
            if mine and (name := FILES.get(kind)):
                _save(_container(out, row["warc_file"]), row["warc_offset"], folder / name)
                saved.append(name)
        if found.custom_js is not None:
            (folder / "custom_js.json").write_bytes(msgspec.json.encode(found.custom_js) + b"\n")
            saved.append("custom_js.json")
    except OSError as error:
        raise archive_error(error, folder) from error
    return saved


def _container(out: Path, name: str) -> Path:
    sealed = out / name
    return sealed if sealed.exists() else out / (name + OPEN_SUFFIX)


def document_of(out: Path, name: str, offset: int) -> str:
    """The markup of the response at a place; empty when it cannot be read. Its record may be a revisit."""
    try:
        _, block = read_record(member_pieces(_container(out, name), offset))
        head, pieces = read_message(block)
        payload = b"".join(pieces)
    except (DamageError, OSError):
        return ""
    if head is None:
        return decode_text(payload, None)
    coding = head.field("content-encoding")
    return decode_text(decode(payload, coding, _MOST_MARKUP) if coding else payload, label(head.field("content-type")))


def _save(warc: Path, offset: int, file: Path) -> None:
    try:
        _, block = read_record(member_pieces(warc, offset))
        with file.open("wb") as stream:
            for piece in block:
                stream.write(piece)
    except DamageError as error:
        raise ArchiveError(f"{warc.name}: the record at {offset} cannot be read: {error}") from None
