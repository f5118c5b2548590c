"""The title and the visible text of an HTML document, for people: read token by token, so that no document explodes."""

from __future__ import annotations

import re
from itertools import islice

from msgspec import Struct
from turbohtml import TokenType, tokenize

from muniment.extract.charset import codec_of, decode, label

__all__ = ["PageText", "document_text", "early_title", "page_text"]

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
    reader = _Reader(with_text=with_text)
    reader.read(document_text(payload, content_type))
    return reader.words()


def early_title(start: bytes, content_type: str) -> str | None:
    """The title of a document of which only the start is given; None when the title does not end in it."""
    reader = _Reader(with_text=False)
    return reader.words().title if reader.read(document_text(start, content_type)) else None


class _Reader:
    """Takes the words out of tokens."""

    def __init__(self, *, with_text: bool) -> None:
        self._with_text, self._title, self._inside = with_text, list[str](), ""
        self._lines: list[list[str]] = [[]]

    def read(self, text: str) -> bool:
        """Whether the title ended, after which only its text is asked for."""
        for token in islice(tokenize(text), _MOST_TOKENS):
            kind, tag = token.type, token.tag or ""
            if kind is TokenType.TEXT:
                self._take(token.data or "")
            elif kind is TokenType.START_TAG:
                if not self._inside and (tag in _UNSEEN or (tag == "title" and not self._title)):
                    self._inside = tag
            elif kind is TokenType.END_TAG and tag == self._inside:
                if tag == "title" and not self._with_text:
                    return True
                self._inside = ""
            if self._with_text and tag in _BREAKS and self._lines[-1]:
                self._lines.append([])
        return False

    def _take(self, text: str) -> None:
        if self._inside == "title":
            self._title.append(text)
        elif self._with_text and not self._inside:
            self._lines[-1].append(text)

    def words(self) -> PageText:
        """What was read."""
        lines = (" ".join("".join(line).split()) for line in self._lines)
        return PageText(" ".join("".join(self._title).split())[:_LONGEST_TITLE], "\n".join(filter(None, lines)))


def document_text(payload: bytes, content_type: str) -> str:
    """The text of a document: by its declared charset, else by what it says itself, else as UTF-8 or Latin 1."""
    declared = label(content_type)
    if codec_of(declared) is None and (found := _META.search(payload[:_SNIFFED])):
        declared = found[1].decode("ascii", "replace")
        # what is read here is no two-byte text (HTML §13.2.3.2)
        declared = "utf-8" if (codec_of(declared) or "").startswith("utf-16") else declared
    if codec_of(declared) is None:
        try:
            return payload.decode("utf-8-sig")
        except UnicodeDecodeError:
            # cut within a character, or the charset of the old web
            text = decode(payload, "utf-8")
            return text if text.count("\ufffd") <= 1 else decode(payload, "cp1252")
    return decode(payload, declared)
