"""The title and the visible text of an HTML document, for people: read token by token, so that no document explodes."""

from __future__ import annotations

import re
from itertools import islice

from msgspec import Struct
from turbohtml import TokenType, tokenize

from muniment.extract.charset import decode, label

__all__ = ["PageText", "document_text", "page_text"]

_UNSEEN = frozenset({"script", "style", "noscript", "template", "iframe", "noframes", "noembed", "textarea", "svg"})
_BREAKS = frozenset(
    {
        "address", "article", "aside", "blockquote", "br", "caption", "dd", "div", "dl", "dt", "fieldset", "figure",
        "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "option", "p",
        "pre", "section", "table", "td", "th", "tr", "ul",
    }
)  # fmt: skip
_META = re.compile(rb"<meta\b[^>]*?\bcharset\s*=\s*[\"']?([\w:.-]+)", re.IGNORECASE)
_SNIFFED = 4096
_BROWSERS = {
    "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "euc-kr": "cp949", "iso-8859-1": "cp1252",
    "latin1": "cp1252", "us-ascii": "cp1252", "ascii": "cp1252", "iso-8859-9": "cp1254", "big5": "big5hkscs",
}  # fmt: skip
"""What browsers take these names for (the Encoding standard)."""
_MOST_TOKENS = 1_000_000
_LONGEST_TITLE = 1000


class PageText(Struct, frozen=True):
    """The words of a page."""

    title: str
    """On one line; empty when it has none."""
    text: str
    """A line for each block; empty unless it was asked for."""


def page_text(payload: bytes, content_type: str, *, with_text: bool = False) -> PageText:
    """Title, and visible text if asked for, of a document without content coding; whatever its bytes."""
    title: list[str] = []
    lines: list[list[str]] = [[]]
    inside = ""
    for token in islice(tokenize(document_text(payload, content_type)), _MOST_TOKENS):
        kind, tag = token.type, token.tag or ""
        if kind is TokenType.TEXT:
            if inside == "title":
                title.append(token.data or "")
            elif with_text and not inside:
                lines[-1].append(token.data or "")
        elif kind is TokenType.START_TAG:
            if not inside and (tag in _UNSEEN or (tag == "title" and not title)):
                inside = tag
        elif kind is TokenType.END_TAG and tag == inside:
            if tag == "title" and not with_text:
                break
            inside = ""
        if with_text and tag in _BREAKS and lines[-1]:
            lines.append([])
    told = (" ".join("".join(line).split()) for line in lines)
    return PageText(" ".join("".join(title).split())[:_LONGEST_TITLE], "\n".join(filter(None, told)))


def document_text(payload: bytes, content_type: str) -> str:
    """The text of a document: by its declared charset, else by what it says itself, else as UTF-8 or Latin 1."""
    declared = label(content_type)
    if declared is None and (found := _META.search(payload[:_SNIFFED])):
        declared = found[1].decode("ascii", "replace")
    if declared is None:
        try:
            return payload.decode("utf-8-sig")
        except UnicodeDecodeError:
            # cut within a character, or the charset of the old web
            text = decode(payload, "utf-8")
            return text if text.count("\ufffd") <= 1 else decode(payload, "cp1252")
    return decode(payload, _BROWSERS.get(declared.lower(), declared))
