"""References of a style sheet: `url()`, `@import`, strings of `image-set()`, read as CSS Syntax Level 3 reads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from muniment.model.link import FoundAs

__all__ = ["css_links", "image_sets"]

# Every token that is opened is consumed, closed or not, and every text can be read in one way alone, so that time is
# linear. Repeated groups are not possessive (decision 0178), so they have a bound: each turn is remembered until the
# token ends. The pattern begins with a set of characters because that alone lets the engine jump from candidate to
# candidate; what the candidate was is asked for by look-behind.
_SPACE = r"[ \t\n\r\f]"
_ESCAPE = r"\\(?:[0-9a-fA-F]{1,6}+[ \t\n\r\f]?+|[^0-9a-fA-F])"
_MANY = "{0,100000}"
_DOUBLE = rf'[^"\\\n\r\f]*+(?:{_ESCAPE}[^"\\\n\r\f]*+){_MANY}'
_SINGLE = rf"[^'\\\n\r\f]*+(?:{_ESCAPE}[^'\\\n\r\f]*+){_MANY}"
_STRING = rf"""(?:"{_DOUBLE}(?:"|\Z)|'{_SINGLE}(?:'|\Z))"""
_BARE = rf"""[^ \t\n\r\f"'()\\]*+(?:{_ESCAPE}[^ \t\n\r\f"'()\\]*+){_MANY}"""
_COMMENT_REST = rf"\*[^*]*+(?:\*++(?!/)[^*]*+){_MANY}(?:\*++/)?"
_GAP = rf"(?:{_SPACE}++|/{_COMMENT_REST}){_MANY}"
_BAD_URL_REST = rf"[^)\\]*+(?:\\(?s:.)[^)\\]*+){_MANY}\)?+"
_REST_OF_URL = rf"(?:[rR]|\\(?:[rR]|0{{0,4}}[57]2{_SPACE}?+))(?:[lL]|\\(?:[lL]|0{{0,4}}[46][cC]{_SPACE}?+))\("


def _argument(name: str) -> str:
    return rf"{_SPACE}*+(?:(?P<{name}>{_STRING}|{_BARE}(?={_SPACE}*+(?:\)|\Z)))|{_BAD_URL_REST})"


_TOKENS = (
    rf"(?<=/){_COMMENT_REST}"
    rf"|(?<=[uU])(?<![\w-][uU]){_REST_OF_URL}{_argument('url')}"
    rf"|(?<=\\)0{{0,4}}[57]5{_SPACE}?+{_REST_OF_URL}{_argument('escaped')}"
    r"|(?<=\\)(?s:.)"
    rf"|(?<=@)[iI][mM][pP][oO][rR][tT]{_GAP}(?:(?P<sheet>{_STRING})|[uU]{_REST_OF_URL}{_argument('imported')})?"
    # The URL of a namespace is a name that nothing fetches.
    r"|(?<=@)[nN][aA][mM][eE][sS][pP][aA][cC][eE][^;{}]*+"
)
_SCAN = re.compile(rf"""[uU@/"'\\](?:{_TOKENS}|(?<="){_DOUBLE}"?+|(?<='){_SINGLE}'?+)""").finditer
# Few style sheets have `image-set`, and only for these are brackets looked at, one by one: not in endless ones.
_MOST_WITH_SETS = 4 << 20
_SCAN_SETS = re.compile(
    rf"""[uUiI()@/"'\\](?:{_TOKENS}|(?P<double>(?<="){_DOUBLE}"?+)|(?P<single>(?<='){_SINGLE}'?+)"""
    rf"|(?P<set>(?<=[iI])(?:(?<![\w-][iI])|(?<=-[wW][eE][bB][kK][iI][tT]-[iI]))[mM][aA][gG][eE]-[sS][eE][tT]\()|(?P<open>(?<=\())|(?P<close>(?<=\))))"
).finditer
_FOUND_AS = {
    "url": FoundAs.CSS_URL,
    "escaped": FoundAs.CSS_URL,
    "sheet": FoundAs.CSS_IMPORT,
    "imported": FoundAs.CSS_IMPORT,
}
_UNESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})(?:\r\n|[ \t\n\r\f])?|(\r\n|[\n\r\f])|((?s:.))|\Z)").sub


def css_links(text: str, add: Callable[[str, FoundAs], None]) -> None:
    """Hand each URL of a style sheet or of a style attribute to `add`, unescaped, in order."""
    if "(" not in text and "@" not in text:
        return
    if len(text) <= _MOST_WITH_SETS and "-set(" in text.lower():
        for value, found_as, _ in _with_sets(text):
            add(value, found_as)
        return
    for match in _SCAN(text):
        group = match.lastgroup
        if group:
            add(_value(match[group]), _FOUND_AS[group])


def image_sets(text: str) -> list[str]:
    """The addresses of which the sets of images of a style sheet have a browser choose one."""
    if len(text) > _MOST_WITH_SETS or "-set(" not in text.lower():
        return []
    return [value for value, _, in_set in _with_sets(text) if in_set]


def _with_sets(text: str) -> Iterator[tuple[str, FoundAs, bool]]:
    """What `css_links` adds, the strings of an `image-set()` too, and whether it is in one.

    Those in its `type()` are not addresses.
    """
    depth = inside = 0
    for match in _SCAN_SETS(text):
        group = match.lastgroup or ""
        in_set = bool(inside) and depth == inside
        if group in _FOUND_AS:
            yield _value(match[group]), _FOUND_AS[group], in_set
            depth += group != "sheet"
        elif group in {"double", "single"} and in_set:
            yield _value(match[0]), FoundAs.CSS_URL, True
        elif group in {"set", "open"}:
            depth += 1
            inside = depth if group == "set" else inside
        elif group == "close":
            depth = max(0, depth - 1)
            inside = inside if depth >= inside else 0


def _value(token: str) -> str:
    """Take the quotes and the escapes off a string or an unquoted URL."""
    if token[:1] in {'"', "'"}:
        closed = token[-1] == token[0] and len(token) > 1
        token = token[1:-1] if closed else token[1:]
    return _UNESCAPE(_unescaped, token) if "\\" in token else token


def _unescaped(match: re.Match[str]) -> str:
    digits, newline, character = match.groups()
    if digits:
        point = int(digits, 16)
        legal = 0 < point < 0xD800 or 0xDFFF < point < 0x110000
        return chr(point) if legal else "\ufffd"
    if newline:
        return ""
    return character or ""
