"""What a request of a browser is for, by what it says itself."""

from __future__ import annotations

__all__ = ["resource_type"]

_BY_DESTINATION = {
    "document": "document",
    "iframe": "document",
    "frame": "document",
    "object": "document",
    "embed": "document",
    "style": "stylesheet",
    "xslt": "stylesheet",
    "image": "image",
    "audio": "media",
    "video": "media",
    "font": "font",
    "script": "script",
    "worker": "script",
    "sharedworker": "script",
    "serviceworker": "script",
    "audioworklet": "script",
    "paintworklet": "script",
    "track": "texttrack",
    "manifest": "manifest",
    "json": "fetch",
    "empty": "fetch",
}


def resource_type(destination: str, method: str) -> str:
    """WARC-Resource-Type by `Sec-Fetch-Dest`, which browsers send to https and the loopback alone; else `other`."""
    if method == "OPTIONS":
        return "preflight"
    return _BY_DESTINATION.get(destination.strip().lower(), "other")
