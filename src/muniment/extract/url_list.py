"""A list of URLs, one a line: the start URLs of a job."""

from __future__ import annotations

from muniment.extract.charset import decode
from muniment.extract.link_collector import LinkCollector
from muniment.model.link import FoundAs

__all__ = ["list_links"]


def list_links(payload: bytes, charset: str | None, found: LinkCollector) -> None:
    """Take the lines of a list; one without a scheme is of HTTP."""
    for line in decode(payload, charset).splitlines():
        url = line.strip()
        if url:
            found.add(url if "://" in url else f"http://{url}", FoundAs.START_LINE)
