"""Addresses that scripts name word for word: what modules import, import maps, and where a click goes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from muniment.model.link import FoundAs

__all__ = ["ImportMap", "click_targets", "module_links", "read_import_map"]

_Add = Callable[[str, FoundAs], None]

# As in a style sheet (`css`): every token that is opened is consumed, closed or not, and every text can be read in one
# way alone. A slash begins a regular expression where no value can end; a `)` before it is taken for the end of one.
_MANY = "{0,100000}"
_COMMENT = rf"//[^\n]*+|/\*[^*]*+(?:\*++(?!/)[^*]*+){_MANY}(?:\*++/)?"
_SKIPPED = (
    rf"{_COMMENT}"
    rf'|"[^"\\\n]*+(?:\\(?s:.)[^"\\\n]*+){_MANY}"?+'
    rf"|'[^'\\\n]*+(?:\\(?s:.)[^'\\\n]*+){_MANY}'?+"
    rf"|`[^`\\]*+(?:\\(?s:.)[^`\\]*+){_MANY}`?+"
    r"|(?:(?<=[(,=:\[!&|?{};+*%~^<>\n-])|(?<=[(,=:\[!&|?{};+*%~^<>\n-] )|(?<=return)|(?<=return ))"
    rf"/(?![*/])[^/\\\[\n]*+(?:(?:\\.|\[[^\]\\\n]*+(?:\\.[^\]\\\n]*+){{0,1000}}\]?+)[^/\\\[\n]*+){{0,1000}}/?+"
)
_GAP = rf"(?:\s++|{_COMMENT}){{0,1000}}"
_NAMES = r"\{[^{}();=`]*+\}"
_NAME = r"[\w$]++"
_IMPORTED = (
    rf"(?:(?!from{_GAP}[\"']){_NAME}{_GAP}(?:,{_GAP})?)?(?:{_NAMES}|\*{_GAP}as\b{_GAP}{_NAME})?{_GAP}"
    rf"(?<![\w$])from{_GAP}"
)
_EXPORTED = rf"(?:{_NAMES}|\*(?:{_GAP}as\b{_GAP}(?:{_NAME}|\"[^\"\\\n]*+\"|'[^'\\\n]*+'))?){_GAP}from{_GAP}"
_SPECIFIER = r"""(?:"([^"\\\n]++)"|'([^'\\\n]++)')"""
_STATEMENT = re.compile(rf"(?:(?<=import){_GAP}(?:{_IMPORTED})?|(?<=export){_GAP}{_EXPORTED}){_SPECIFIER}").match
_KEYWORDS = re.compile(rf"(?P<word>(?<![\w$.#])(?:import|export)(?![\w$]))|{_SKIPPED}").finditer
_MAY_IMPORT = re.compile(r"(?:im|ex)port[\s{*\"'/]").search

_ADDRESSES = ("/", "./", "../", "http://", "https://")
_MOST_MAP = 1 << 20

_OWNER = r"(?:(?:window|document|self|top|parent|opener|this)\s*+\.\s*+){0,3}"
_LITERAL = r"""(?:"([^"\\\r\n]*+(?:\\[/'"][^"\\\r\n]*+){0,1000})"|'([^'\\\r\n]*+(?:\\[/'"][^'\\\r\n]*+){0,1000})')"""
_GOES = re.compile(
    rf"(?<![\w$.]){_OWNER}"
    r"(?:location(?:\s*+\.\s*+href)?\s*+=\s*+|location\s*+\.\s*+(?:assign|replace)\s*+\(\s*+"
    rf"|(?:open|MM_openBrWindow)\s*+\(\s*+){_LITERAL}\s*+(?=[;,)}}]|\Z)"
).finditer
_SCRIPT_SCHEME = re.compile(r"\s*+javascript:", re.IGNORECASE).match
_LONGEST_HANDLER = 20_000


class ImportMap(Struct):
    """What the modules of a document mean by names that are no addresses."""

    imports: dict[str, str] = {}

    def address(self, specifier: str) -> str:
        """The address of what a module imports, as written; empty when it has none."""
        if specifier.startswith(_ADDRESSES):
            return specifier
        known = self.imports.get(specifier)
        if known is not None:
            return known
        folders = [name for name in self.imports if name.endswith("/") and specifier.startswith(name)]
        longest = max(folders, key=len, default="")
        return self.imports[longest] + specifier[len(longest) :] if longest else ""


def module_links(text: str, add: _Add, names: ImportMap | None = None) -> None:
    """Hand what a module imports statically, or exports on, to `add`; `names` are those of the document it is in."""
    if not _MAY_IMPORT(text):
        return
    names = names or ImportMap()
    for word in _KEYWORDS(text):
        if word.lastgroup and (found := _STATEMENT(text, word.end())):
            add(names.address(found[1] or found[2]), FoundAs.IMPORT)


def read_import_map(text: str, add: _Add) -> dict[str, str]:
    """The names of an import map with their addresses, of which all that are whole go to `add`."""
    found = _decoded(text)
    if not isinstance(found, dict):
        return {}
    imports = _addresses(found.get("imports"))
    scopes = found.get("scopes")
    for one in (imports, *map(_addresses, scopes.values() if isinstance(scopes, dict) else ())):
        for address in one.values():
            if not address.endswith("/"):
                add(address, FoundAs.IMPORT_MAP)
    return imports


def _addresses(names: object) -> dict[str, str]:
    if not isinstance(names, Mapping):
        return {}
    return {
        name: address for name, address in names.items() if isinstance(address, str) and address.startswith(_ADDRESSES)
    }


def _decoded(text: str) -> object:
    try:
        return msgspec.json.decode(text) if len(text) <= _MOST_MAP else None
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def click_targets(script: str) -> Iterator[str]:
    """Where the script of a click, or a `javascript:` address, goes by a literal address; nothing if it asks first."""
    if len(script) > _LONGEST_HANDLER or ("location" not in script and "open" not in script.lower()):
        return
    if _SCRIPT_SCHEME(script):
        script = unquote(script.partition(":")[2])
    if "confirm" in script:
        return
    for found in _GOES(script):
        address = found[1] if found[1] is not None else found[2]
        yield re.sub(r"\\(.)", r"\1", address)
