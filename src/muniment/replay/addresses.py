"""Where the faces of a replay are, and how their routes name captures."""

from __future__ import annotations

import re
from urllib.parse import unquote

from msgspec import Struct

from muniment.replay.captures.url_keys import wanted_url

__all__ = ["AT_PATH", "BANNER_SCRIPT", "STYLE", "Addresses", "url_of"]

AT_PATH = re.compile(r"/(at|raw|record)/([0-9]{1,20}|\*)([a-z]{2,4}_)?/(.+)", re.DOTALL)
"""Addresses of captures: what is wanted, when, a modifier of the rewriter, and the URL."""
STYLE = "/style.css"
BANNER_SCRIPT = "/banner.js"


class Addresses(Struct, frozen=True):
    """Where the faces are."""

    front: str
    """Origin of our own pages."""
    content: str
    """Origin of archived pages."""
    fallback: str = ""
    """Origin of archived pages for browsers that resolve no names below `localhost`."""


def url_of(text: str) -> str:
    """The URL in a path: as it stands, or escaped as a whole."""
    found = wanted_url(text)
    return found if "://" in text or not text.lower().startswith(("http%3a", "https%3a")) else wanted_url(unquote(text))
