"""Links of JSON documents: JSON-LD within a page, and a web application's manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from muniment.model.link import FoundAs

__all__ = ["json_ld_links", "manifest_links"]

_Add = Callable[[str, FoundAs], None]

_MOST_BYTES = 4 << 20
_WEB = ("http://", "https://")
# Names of things, not of pages: what a vocabulary is, and the words of schema.org.
_NAMES = frozenset({"@context", "@type", "@vocab", "additionaltype"})
_VOCABULARIES = ("http://schema.org/", "https://schema.org/", "http://purl.org/", "http://www.w3.org/")
_ADDRESSES = frozenset(
    {
        "url", "image", "logo", "contenturl", "embedurl", "thumbnailurl", "thumbnail", "mainentityofpage", "sameas",
        "item", "downloadurl", "installurl", "discussionurl", "hasmap", "photo", "screenshot", "relatedlink",
    }
)  # fmt: skip
"""Properties of schema.org, in lower case, whose text is an address even when it is relative."""


def json_ld_links(text: str, add: _Add) -> None:
    """Hand each URL of a JSON-LD script to `add`; invalid JSON has none."""
    for key, value in _strings(_decoded(text)):
        if key in _NAMES or value.startswith(_VOCABULARIES):
            continue
        if (value.startswith(_WEB) or key in _ADDRESSES) and " " not in value:
            add(value, FoundAs.JSON_LD)


def manifest_links(text: str, add: _Add) -> None:
    """Hand the icons, screenshots and pages of a manifest to `add`; an invalid manifest has none."""
    manifest = _decoded(text)
    if not isinstance(manifest, dict):
        return
    for key, found_as in (("icons", FoundAs.ICON), ("screenshots", FoundAs.ICON), ("shortcuts", FoundAs.MANIFEST_URL)):
        for entry in _entries(manifest, key):
            _add_text(entry.get("src") or entry.get("url"), found_as, add)
            for icon in _entries(entry, "icons"):
                _add_text(icon.get("src"), FoundAs.ICON, add)
    _add_text(manifest.get("start_url"), FoundAs.MANIFEST_URL, add)
    for entry in _entries(manifest, "related_applications"):
        _add_text(entry.get("url"), FoundAs.MANIFEST_URL, add)


def _decoded(text: str) -> Any:
    if len(text) > _MOST_BYTES:
        return None
    try:
        return msgspec.json.decode(text.strip().removeprefix("\ufeff"))
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def _strings(value: Any) -> Iterator[tuple[str, str]]:
    """All strings with the key in lower case that they or their list stand under; depth costs no stack."""
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        key, here = waiting.pop()
        if isinstance(here, str):
            yield key, here
        elif isinstance(here, dict):
            waiting += [(name.lower(), inner) for name, inner in reversed(here.items())]
        elif isinstance(here, list):
            waiting += [(key, inner) for inner in reversed(here)]


def _entries(of: dict[str, Any], key: str) -> list[dict[str, Any]]:
    entries = of.get(key)
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _add_text(value: object, found_as: FoundAs, add: _Add) -> None:
    if isinstance(value, str):
        add(value, found_as)
