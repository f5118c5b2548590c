"""XML as far as links need it: single elements with their attributes and text, scanned, never built.

Nothing is expanded but character references and the five names that XML itself has, so no document can grow; every
text can be read in one way alone or runs to a mark that it consumes, so time is linear. Repeated groups are not
possessive (decision 0178), so they have a bound: each turn is remembered until the element ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from muniment.extract.charset import decode

__all__ = ["Element", "attribute", "decode_xml", "root_of", "scanner", "style_sheets"]

Element = tuple[str, str, str]
"""Name without prefix, in lower case; attributes as written; the text that follows the start tag, unescaped."""

_UNTIL_CDATA_END = r"(?s:.*?)(?:\]\]>|\Z)"
_SKIPPED = rf"!--(?s:.*?)(?:-->|\Z)|!\[CDATA\[{_UNTIL_CDATA_END}"
_ATTRIBUTES = r"""[^<>"']*+(?:(?:"[^"<]*+"|'[^'<]*+')[^<>"']*+){0,10000}"""
_DECLARED = re.compile(rb"""\A\s*+<\?xml\s[^>]{0,200}?encoding\s*+=\s*+["']([A-Za-z0-9._-]{1,40})["']""")
_ROOT = re.compile(
    r"\s*+(?:<(?:\?[^?]*+(?:\?(?!>)[^?]*+)*\?|!--[^-]*+(?:-(?!->)[^-]*+)*--|!(?!--)[^<>\[]*+(?:\[[^\]]*+\]\s*+)?)>\s*+)*"
    rf"<(?:[\w.-]++:)?([\w.-]++)({_ATTRIBUTES})>"
).match
_STYLE_SHEET = re.compile(r"<\?xml-stylesheet\s([^<>]*?)\?>").finditer
_PROLOG = 4096
_REFERENCE = re.compile(r"&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(amp|lt|gt|quot|apos));").sub
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


def decode_xml(payload: bytes, declared: str | None) -> str:
    """Decode by byte-order mark, by the header's charset, then by the XML declaration, then as UTF-8."""
    found = None if declared else _DECLARED.match(payload)
    return decode(payload, found[1].decode() if found else declared)


def root_of(text: str) -> tuple[str, str]:
    """Name (without prefix, in lower case) and attributes of the document's element; empty when there is none near."""
    found = _ROOT(text[:_PROLOG])
    return (found[1].lower(), found[2]) if found else ("", "")


def scanner(*names: str) -> Callable[[str], Iterator[Element]]:
    """A function that gives all elements of these names (lower case, any prefix), in document order.

    A text that the document's end cuts off does not count: half an address is another address.
    """
    find = re.compile(
        rf"<(?:{_SKIPPED}|(?:[\w.-]++:)?(?P<name>{'|'.join(names)})(?=[\s/>])(?P<attributes>{_ATTRIBUTES})>"
        rf"(?:\s*+<!\[CDATA\[(?P<raw>{_UNTIL_CDATA_END})|(?P<text>[^<]*+)(?=<)))",
        re.IGNORECASE,
    ).finditer

    def scan(text: str) -> Iterator[Element]:
        for match in find(text):
            name, attributes, raw, plain = match.group("name", "attributes", "raw", "text")
            if name and (raw is None or raw.endswith("]]>")):
                content = raw.removesuffix("]]>") if raw is not None else _unescaped(plain)
                yield name.lower(), attributes, content.strip()

    return scan


def attribute(attributes: str, name: str) -> str:
    """The value of an attribute, unescaped; empty when there is none."""
    found = re.search(rf"""(?:^|[\s"']){name}\s*+=\s*+(?:"([^"]*)"|'([^']*)')""", attributes, re.IGNORECASE)
    return _unescaped(found[1] if found[1] is not None else found[2]).strip() if found else ""


def style_sheets(text: str) -> Iterator[str]:
    """The addresses that `xml-stylesheet` instructions before the document's element name."""
    for match in _STYLE_SHEET(text[:_PROLOG]):
        yield attribute(match[1], "href")


def _unescaped(text: str) -> str:
    return _REFERENCE(_character, text) if "&" in text else text


def _character(match: re.Match[str]) -> str:
    decimal, hexadecimal, name = match.groups()
    if name:
        return _NAMED[name]
    point = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(point) if 0 < point < 0xD800 or 0xDFFF < point < 0x110000 else "\ufffd"
