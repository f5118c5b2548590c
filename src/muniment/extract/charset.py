"""Which charset a document is read in, as far as links need it."""

from __future__ import annotations

from muniment.extract.media_type import media_type

__all__ = ["decode", "label"]

_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


def label(content_type: str) -> str | None:
    """Return the charset that the fields of a Content-Type name, as written, or None."""
    return media_type(content_type).charset or None


def decode(payload: bytes, declared: str | None) -> str:
    """Decode by byte-order mark, then by the declared charset, then as UTF-8; faults become U+FFFD."""
    for mark, name in _MARKS:
        if payload.startswith(mark):
            return payload[len(mark) :].decode(name, "replace")
    try:
        return payload.decode(declared or "utf-8", "replace")
    except (LookupError, ValueError, AssertionError):
        # An unknown name, one of Python's codecs that are no charsets, or one that cannot replace faults.
        return payload.decode("utf-8", "replace")
