"""Ignore patterns suggested for a URL: its host, its directory, its query parameters."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

__all__ = ["suggestions_for"]

_MOST = 8


def suggestions_for(url: str) -> list[tuple[str, str]]:
    """Patterns that match a URL and others like it, each with what it stands for; none for a URL that is not one."""
    try:
        parts = urlsplit(url)
        host = re.escape(parts.netloc)
    except ValueError:
        return []
    if not host:
        return []
    made = [("this page", f"^{re.escape(url)}$")]
    folders = parts.path.split("/")[1:-1]
    for depth in range(len(folders), 0, -1):
        path = "/".join(folders[:depth])
        made.append((f"the directory /{path}/", f"^https?://{host}/{re.escape(path)}/"))
    made.append((f"the host {parts.netloc}", f"^https?://{host}/"))
    for name, _ in parse_qsl(parts.query, keep_blank_values=True):
        made.append((f"the query parameter {name}", f"^https?://{host}/.*[?&]{re.escape(name)}="))
    return made[:_MOST]
