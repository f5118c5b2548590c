"""A resource record of a rendered page: a picture of it, its document as it stands, or what is known of it."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["PageResource"]


class PageResource(Struct, frozen=True):
    """What becomes one `resource` record."""

    uri: str
    """`urn:KIND:URL`."""
    content_type: str
    block: bytes
    record_id: str
    """`urn:uuid:…`."""
