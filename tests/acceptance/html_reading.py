"""Which URLs a site leads to, found with a few expressions: a second opinion on Muniment's extraction.

Enough for well-formed documents such as Sphinx makes; the standard library's parser takes a minute for 50 MB of them.
"""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import quote, unquote, urljoin, urlsplit

__all__ = ["Reached", "references", "walk"]

_NAMING = {
    "a": ("href",), "area": ("href",), "link": ("href",), "img": ("src",), "script": ("src",), "iframe": ("src",),
    "frame": ("src",), "object": ("data",), "embed": ("src",), "video": ("src", "poster"), "audio": ("src",),
    "source": ("src",), "track": ("src",), "input": ("src",), "form": ("action",),
}  # fmt: skip
_UNREAD = re.compile(r"<!--.*?-->|<script>.*?</script>", re.DOTALL)
_TAG = re.compile(rf"<({'|'.join(_NAMING)}|base|meta)\s([^>]*)>")
_ATTRIBUTE = re.compile(r"([\w:-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>\"']+))")
_STYLE = re.compile(r"<style[^>]*>(.*?)</style>|\sstyle=\"([^\"]*)\"", re.DOTALL)
_KEPT = "%/:?&=~+!$,;'@()*[]|"
"""What stays as it is in a URL; the rest, `>` and letters beyond ASCII among it, is percent-encoded."""
_CSS_URL = re.compile(r"""url\(\s*(?:"([^"]*)"|'([^']*)'|([^)'"\s]*))\s*\)|@import\s+(?:"([^"]*)"|'([^']*)')""")
_CSS_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def _in_css(text: str) -> list[str]:
    return ["".join(groups) for groups in _CSS_URL.findall(_CSS_COMMENT.sub("", text))]


def _in_html(text: str) -> list[str]:
    found = [url for style in _STYLE.findall(text) for url in _in_css("".join(style))]
    for tag, attributes in _TAG.findall(_UNREAD.sub("", text)):
        values = {name: "".join(value) for name, *value in _ATTRIBUTE.findall(attributes)}
        assert tag != "base", "relative references would be seen from elsewhere"
        assert values.get("http-equiv") != "refresh"
        found += [unescape(values[name]) for name in _NAMING.get(tag, ()) if name in values]
        found += [candidate.split()[0] for candidate in values.get("srcset", "").split(",") if candidate.strip()]
    return found


def references(url: str, content_type: str, text: str) -> set[str]:
    """The absolute http URLs, fragments cut off, that a document names; those within itself left out."""
    find = {"text/html": _in_html, "text/css": _in_css}.get(content_type, lambda _: [])
    hrefs = {href.strip().partition("#")[0] for href in find(text)}
    absolute = (quote(urljoin(url, href), safe=_KEPT) for href in hrefs if href)
    return {_with_path(target) for target in absolute if target.startswith(("http://", "https://"))}


def _with_path(url: str) -> str:
    return url if urlsplit(url).path else url + "/"


class Reached:
    """A directory that is served under `base`, as seen by somebody who follows every reference from its start page."""

    def __init__(self) -> None:
        self.files: dict[str, Path] = {}
        """The file that each URL stands for."""
        self.missing: set[str] = set()
        """URLs on the site without a file."""
        self.references: dict[str, set[str]] = {}
        """What each URL's document names, other sites too."""
        self.steps: dict[str, int] = {}
        """Steps from the start page, of whatever kind."""


def walk(root: Path, base: str) -> Reached:
    """Follow every reference from `base` that stays under it."""
    reached = Reached()
    reached.steps[base] = 0
    queue = [base]
    for url in queue:
        path = root / (unquote(urlsplit(url).path).lstrip("/") or "index.html")
        if not path.is_file():
            reached.missing.add(url)
            continue
        reached.files[url] = path
        kind = {".html": "text/html", ".css": "text/css"}.get(path.suffix, "")
        reached.references[url] = references(url, kind, path.read_text("utf-8")) if kind else set()
        for target in reached.references[url]:
            if target.startswith(base) and target not in reached.steps:
                reached.steps[target] = reached.steps[url] + 1
                queue.append(target)
    return reached
