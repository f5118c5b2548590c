"""References of an HTML document: one parse, one selection in C, and a visit of what it found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from turbohtml import Document, Element, PlainText, TokenType, parse, tokenize

from muniment.extract.charset import codec_of, decode
from muniment.extract.css import css_links
from muniment.extract.elements import TAGS, ElementReader, traits_of
from muniment.extract.link_collector import MOST_LINKS, LinkCollector
from muniment.extract.queries import encode_queries
from muniment.extract.scripts import click_targets
from muniment.model.link import FoundAs

__all__ = ["html_links", "markup_links"]

# A scripting parser's raw text: parsed again. Each level costs its bytes once more, hence a bound.
_RAW_TEXT = {"noframes", "noscript"}
_RAW_LEVELS = 2

# Formatting elements left open are copied into every later block (HTML, "reconstruct the active formatting
# elements"), at most 512 each time: 0.3 MB of `<b id=N><p>` becomes ten million elements and 1.3 GB. Documents that
# could exceed this number of elements are only cut into tokens, which is slower on ordinary pages, and of these only so
# many are looked at: about three seconds' worth, in which nothing else of this worker goes on.
_MOST_COPIES = 2_000_000
_MOST_TOKENS = 2_000_000
_MOST_OPEN = 512
# A parsed document takes up to 24 times its bytes, so a large one is parsed in slices, each as a document: where a
# script or a comment is cut, some of its text may be taken for markup. NULs take twice that, and are left out.
_MOST_AT_ONCE = 4 << 20
_MOST_WITH_NULS = 1 << 20
# Anchors, of which some are there twice, after which no further slice is looked at.
_ENOUGH = 4 * MOST_LINKS
_FORMATTING = re.compile(rb"<(?:b|big|code|em|font|i|s|small|strike|strong|tt|u)[\s/>]", re.IGNORECASE)
_PLAIN_TEXT = PlainText(layout="strict", table_cell_separator="\n", bullet="")
_TAGS = frozenset(tag.lower() for tag in TAGS)
_SCRIPTED = re.compile(r"[\x00-\x20]*+javascript:", re.IGNORECASE).match
_XHTML_EMPTY = re.compile(rb"<(script|style|title|textarea|iframe|noscript|noframes)\b([^<>]*+)(?<=/)>")


def html_links(payload: bytes, charset: str | None, found: LinkCollector, *, xhtml: bool = False) -> None:
    """Collect the references of an HTML document, whatever its bytes; `charset` is the header's, if any."""
    two_byte = (codec_of(charset) or "").startswith("utf-16")
    if two_byte or payload[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        # The byte tests below read ASCII, so these charsets are turned into UTF-8 first.
        payload, charset = decode(payload, charset if two_byte else None).encode(), "utf-8"
    if xhtml:
        payload = _XHTML_EMPTY.sub(rb"<\1\2></\1>", payload)
    encoding = None
    most = _MOST_TOKENS // (len(payload) // _MOST_AT_ONCE + 1)
    for part in _slices(payload):
        if len(found.anchors) > _ENOUGH:
            break
        encoding = _visit_slice(part, charset or encoding, found, most) or encoding
    _read_script_addresses(found)
    encode_queries(found, encoding)


def markup_links(markup: str, found: LinkCollector) -> None:
    """Collect the references of HTML that is the text of another document."""
    _visit_document(markup, found, _RAW_LEVELS)


def _read_script_addresses(found: LinkCollector) -> None:
    """Take out where anchors go whose address is a script."""
    if "javascript:" in "\n".join(found.anchors).lower():
        for href in dict.fromkeys(found.anchors):
            if _SCRIPTED(href):
                for address in click_targets(href):
                    found.add(address, FoundAs.ONCLICK)


def _slices(payload: bytes) -> Iterator[bytes]:
    """A document in parts that begin with a tag; most have one."""
    if len(payload) <= _MOST_AT_ONCE:
        yield payload
        return
    at = 0
    while at < len(payload):
        end = payload.rfind(b"<", at + 1, at + _MOST_AT_ONCE) if at + _MOST_AT_ONCE < len(payload) else len(payload)
        end = end if end > 0 else at + _MOST_AT_ONCE
        yield payload[at:end]
        at = end


def _visit_slice(part: bytes, charset: str | None, found: LinkCollector, most: int) -> str | None:
    """Collect the references of one part, of `most` tokens at most; what encoding it turned out to have."""
    if len(part) > _MOST_WITH_NULS:
        part = part.replace(b"\0", b"")
    reader = ElementReader(found, traits_of(part))
    if _may_explode(part):
        _visit_tokens(decode(part, charset), reader, _RAW_LEVELS, most)
        return _parsed(b"", charset).encoding if charset else None
    document = _parsed(part, charset)
    _visit_tree(document, reader, _RAW_LEVELS)
    if found.text is not None:
        found.text.append(document.to_text(_PLAIN_TEXT))
    return document.encoding


def _may_explode(payload: bytes) -> bool:
    if len(payload) // 3 * _MOST_OPEN <= _MOST_COPIES:  # a tag has three bytes at least
        return False
    # `count` looks at every byte by itself; `replace` leaps from one to the next, in less than half the time
    tags = len(payload) - len(payload.replace(b"<", b""))
    if tags * min(tags, _MOST_OPEN) <= _MOST_COPIES:
        return False
    enough = _MOST_COPIES // tags + 1
    opened = sum(1 for _ in islice(_FORMATTING.finditer(payload), enough))
    return tags * max(1, min(opened, _MOST_OPEN)) > _MOST_COPIES


def _parsed(markup: bytes | str, charset: str | None) -> Document:
    try:
        return parse(markup, encoding=charset, positions=False, allow_declarative_shadow_roots=False)
    except LookupError:
        return parse(markup, positions=False, allow_declarative_shadow_roots=False)


def _visit_tree(document: Document, reader: ElementReader, levels: int) -> None:
    # What any element may have is asked for first, and only where it holds a URL does a slower selection take
    # everything at once, to keep document order. Both ways enter <template>, unlike a browser's: a test holds turbohtml
    # to that.
    anywhere = ",".join([f"[{name}]" for name in reader.anywhere])
    elements: Iterable[Element] = document.iter_elements(TAGS)
    quick = not any(reader.holds_more(element.tag, element.attr) for element in document.select(anywhere))
    if not quick:
        elements = document.select(",".join((*TAGS, anywhere)))
    read, found = reader.read if quick else reader.read_whole, reader.found
    add_anchor = found.anchors.append
    for element in elements:
        tag = element.tag
        if quick and tag == "a":  # most references are these: they skip the calls
            href = element.attr("href")
            if href:
                add_anchor(href)
                continue
        if tag == "style":
            css_links(element.text, found.add)
        elif tag == "noframes":
            if levels:
                _visit_tree(_parsed(element.text, None), reader, levels - 1)
        else:
            read(tag, element.attr)
            if tag == "iframe" and levels:
                _visit_document(element.attr("srcdoc") or "", found, levels - 1)
            elif tag == "script" and (kind := element.attr("type")):
                reader.read_script(kind.strip().lower(), element.text)


def _visit_document(markup: str, found: LinkCollector, levels: int) -> None:
    """A document within the document, whose tags its own count did not show and whose base is its own."""
    if not markup:
        return
    base, payload = found.base, markup.encode("utf-8", "replace")
    reader = ElementReader(found, traits_of(payload))
    if _may_explode(payload):
        _visit_tokens(markup, reader, levels)
    else:
        _visit_tree(_parsed(markup, None), reader, levels)
    found.base = base


def _visit_tokens(text: str, reader: ElementReader, levels: int, most: int = _MOST_TOKENS) -> None:
    inside = kind = ""
    names = {*reader.anywhere}
    for token in islice(tokenize(text), most):
        if token.type is TokenType.TEXT:
            if inside == "style":
                css_links(token.data or "", reader.found.add)
            elif inside == "script":
                reader.read_script(kind, token.data or "")
            elif inside in _RAW_TEXT and levels:
                _visit_tokens(token.data or "", reader, levels - 1)
        elif token.type is TokenType.START_TAG:
            inside = token.tag or ""
            if inside in _TAGS or not names.isdisjoint([name for name, _ in token.attrs or ()]):
                reader.read_whole(inside, token.attr)
                kind = (token.attr("type") or "").strip().lower()
                if inside == "iframe" and levels:
                    _visit_document(token.attr("srcdoc") or "", reader.found, levels - 1)
        elif token.type is TokenType.END_TAG:
            inside = ""
