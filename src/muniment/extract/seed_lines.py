"""Lines of seed lists: text, JSON and table rows become seed lines. Pure; what a line lacks is said, never raised."""

from __future__ import annotations

from typing import Any

import msgspec

from muniment.model.mask import masked_url, redact
from muniment.model.seed import Prior, SeedLine, sha1_hex
from muniment.model.url import account_of, did_you_mean, normalise_any

__all__ = ["Parsed", "json_line", "seed_line", "table_row", "text_line"]

Parsed = tuple[SeedLine | None, str]
"""The seed line, and what is wrong; nothing of either for a line that says nothing."""

_NOTHING: Parsed = (None, "")
_NO_PRIOR = Prior()
_NULL = msgspec.Raw(b"null")
_KNOWN = ("digest", "etag", "last_modified")
_END_OF_DATES = 253_402_300_800_000_000
"""The year 10000 in Unix microseconds: a WARC-Date has four digits for the year."""
_raw_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_any_text = msgspec.json.Decoder(str).decode
_encode = msgspec.json.encode


def text_line(number: int, raw: bytes) -> Parsed:
    """A line that is a URL; empty ones and comments (`#`) say nothing."""
    try:
        text = raw.decode().strip()
    except UnicodeDecodeError:
        return None, "not in UTF-8"
    if number == 1:
        text = text.removeprefix("\ufeff").strip()
    if not text or text.startswith("#"):
        return _NOTHING
    url = normalise_any(text)
    if url is None:
        return None, _no_url(text)
    return SeedLine(number, url) if "@" not in text else SeedLine(number, url, account=account_of(text)), ""


def json_line(number: int, raw: bytes) -> Parsed:
    """A line that is a JSON object with a `url`; its other fields are kept as `meta_json`."""
    if not raw.strip():
        return _NOTHING
    try:
        fields = _raw_fields(raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw)
        url = _any_text(fields.pop("url"))
        known = {name: _text(raw) for name in _KNOWN if bytes(raw := fields.pop(name, _NULL)) != b"null"}
        meta = {name: _text(value) for name, value in fields.items()} if fields else None
    except KeyError:
        return None, "no field url"
    except RecursionError:
        return None, "its JSON nests too deep"
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return None, f"not a JSON object with a text as url: {error}"
    return seed_line(number, url, "" if meta is None else _encode(meta).decode(), known)


def _text(value: msgspec.Raw) -> str:
    """A string as it is, all else as its JSON text."""
    raw = bytes(value)
    return _any_text(raw) if raw.startswith(b'"') else msgspec.json.format(raw, indent=-1).decode()


def table_row(number: int, row: dict[str, Any]) -> Parsed:
    """A row of a table with a column `url`; an earlier index also has what it captured, and when."""
    url = row.get("url")
    if not isinstance(url, str) or not url:
        return None, "no text in column url"
    known = {name: str(row[name]) for name in _KNOWN if row.get(name)} if _compares(row) else {}
    line, wrong = seed_line(number, url, str(row.get("meta_json") or ""), known)
    if line is None or not known:
        return line, wrong
    at = _captured_at(row)
    return (line if at is None else msgspec.structs.replace(line, prior=_dated(line.prior, at))), wrong


def _compares(row: dict[str, Any]) -> bool:
    """Whether the row's capture, if it is one, is worth comparing with: a complete answer, or still the same."""
    return not row.get("error") and row.get("status") in (None, 200, 304)


def _captured_at(row: dict[str, Any]) -> int | None:
    """When the bytes that the row speaks of were recorded, µs; a revisit's date is not that."""
    if row.get("record_type") not in (None, "response"):
        return None
    for column, unit in (("started_at", 1), ("fetched_at", 1000)):
        at = row.get(column)
        # a table of somebody else's may mean anything by its columns
        if type(at) is int and 0 < at * unit < _END_OF_DATES:
            return at * unit
    return None


def _dated(prior: Prior, at: int) -> Prior:
    return msgspec.structs.replace(prior, captured_at=at)


def seed_line(number: int, text: str, meta_json: str, known: dict[str, str]) -> Parsed:
    """A URL with what is known of it: `meta_json`, and of an earlier capture `digest`, `etag` and `last_modified`."""
    url = normalise_any(text.strip())
    if url is None:
        return None, _no_url(text)
    account = account_of(text) if "@" in text else None
    if not known:
        return SeedLine(number, url, meta_json, account=account), ""
    given = known.get("digest", "")
    digest = sha1_hex(given) if given else ""
    prior = Prior(digest or "", known.get("etag", ""), known.get("last_modified", ""))
    wrong = f"its digest is not a SHA-1: {given[:60]}" if digest is None else ""
    return SeedLine(number, url, meta_json, _NO_PRIOR if prior == _NO_PRIOR else prior, account=account), wrong


def _no_url(text: str) -> str:
    told = masked_url(text) if "@" in text else text
    told = told if len(told) <= 100 else told[:99] + "…"
    return f"{told!r} is not a URL{redact(did_you_mean(told))}"
