"""Novelty: whether a URL that a page is the first to name makes that page worth asking for. Pure."""

from __future__ import annotations

import re

from muniment.model.link import FoundAs, Kind

__all__ = ["is_novel"]

_FILE = re.compile(
    r"""\.(?:
      7z|aac|ai|apk|avi|avif|bin|bmp|bz2|csv|deb|dmg|docx?|djvu|epub|eps|exe|flac|flv|gif|gz|ico|iso|jar|jpe?g|jxl
    | m4[abv]|midi?|mkv|mobi|mov|mp[234]|mpe?g|msi|od[fgpst]|og[agv]|opus|pdf|png|pptx?|ps|psd|rar|rpm|rtf|svgz?
    | swf|tar|tgz|tiff?|torrent|ttf|txz|wav|webm|webp|wm[av]|woff2?|xlsx?|xz|zip|zst
    )$""",
    re.VERBOSE | re.IGNORECASE,
).search
_MOMENT = re.compile(r"[0-9]{9,}").search
_KINDS = tuple(found_as.kind for found_as in FoundAs)


def is_novel(url: str, found_as: int) -> bool:
    """Whether a new URL, found in this way, is a file or a requisite; one with a time of day in it is always new."""
    path, _, query = url.partition("?")
    kind = _KINDS[found_as]
    if kind in {Kind.REQUISITE, Kind.FRAME}:
        return not (query and _MOMENT(query))
    return kind is Kind.LINK and _FILE(path) is not None
