"""References of an HTML document: one parse, one selection in C, and a visit of what it found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from turbohtml import Document, Element, TokenType, parse, tokenize

from muniment.extract.attributes import LAZY, lazy_links, refresh_target, rel_found_as, srcset_urls
from muniment.extract.charset import decode
from muniment.extract.css import css_links
from muniment.extract.link_collector import MOST_LINKS, LinkCollector
from muniment.extract.queries import encode_queries
from muniment.extract.structured import json_ld_links
from muniment.model.link import FoundAs

__all__ = ["html_links"]

_Get = Callable[[str], str | None]
_Special = Callable[[_Get, LinkCollector], None]
_Visit = Callable[[str, _Get, Iterable[str], LinkCollector], None]

# Looking up elements by tag is the fastest question turbohtml answers, but styles and backgrounds may be anywhere.
# So they are asked for first, and only where one of them holds a URL does a slower selection take everything at once,
# to keep document order. Both ways enter <template>, unlike a browser's: a test holds turbohtml to that.
_TAGS = (
    "a", "applet", "area", "audio", "base", "bgsound", "blockquote", "button", "del", "embed", "feImage", "form",
    "frame", "iframe", "image", "img", "input", "ins", "link", "meta", "noframes", "object", "param", "q", "script",
    "source", "style", "track", "use", "video",
)  # fmt: skip
_ANYWHERE = "[style],[background],[data-bg],[data-background-image]"
_LATE = ("data-bg", "data-background-image")
_ALL = ",".join((*_TAGS, _ANYWHERE))
_IMAGE = (("src", FoundAs.IMG),)
_LONGDESC = (("longdesc", FoundAs.LONGDESC),)
_HREFS = (("href", FoundAs.IMG), ("xlink:href", FoundAs.IMG))
_BACKGROUND = (("background", FoundAs.BACKGROUND),)
_PLAIN: dict[str, tuple[tuple[str, FoundAs], ...]] = {
    "a": (("href", FoundAs.A),),
    "area": (("href", FoundAs.AREA),),
    "img": _IMAGE + _LONGDESC,
    # href: in SVG
    "script": (("src", FoundAs.SCRIPT), ("href", FoundAs.SCRIPT), ("xlink:href", FoundAs.SCRIPT)),
    "iframe": (("src", FoundAs.IFRAME), *_LONGDESC),
    "frame": (("src", FoundAs.FRAME), *_LONGDESC),
    "object": (("data", FoundAs.OBJECT),),
    "embed": (("src", FoundAs.EMBED),),
    "bgsound": (("src", FoundAs.EMBED),),
    "video": (("src", FoundAs.VIDEO), ("poster", FoundAs.VIDEO)),
    "audio": (("src", FoundAs.AUDIO),),
    "source": (("src", FoundAs.SOURCE),),
    "track": (("src", FoundAs.TRACK),),
    "image": (*_HREFS, *_IMAGE),
    "use": _HREFS,
    "feImage": _HREFS,
    "feimage": _HREFS,
    **dict.fromkeys(("body", "table", "thead", "tbody", "tfoot", "tr", "td", "th"), _BACKGROUND),
    **dict.fromkeys(("blockquote", "q", "ins", "del"), (("cite", FoundAs.CITE),)),
}
_WITH_SETS = {"img", "source", "image"}
_LAZY_TAGS = {"img", "source", "image", "iframe", "video", "audio", "embed"}
# Before Python 3.12 an enumeration's member takes longer to name than a local call.
_A, _SRCSET, _DATA_SRC = FoundAs.A, FoundAs.SRCSET, FoundAs.DATA_SRC

# What others are to show of a page (Open Graph, Twitter cards), by the name of the meta element.
_SHARED = frozenset(
    {
        *(f"og:{kind}{part}" for kind in ("image", "video", "audio") for part in ("", ":url", ":secure_url")),
        "og:url", "og:see_also", "twitter:image", "twitter:image:src", "twitter:player", "twitter:player:stream",
        "twitter:url", "thumbnail",
    }
)  # fmt: skip
_TILES = frozenset({"msapplication-tileimage", "msapplication-config"}) | {
    f"msapplication-{shape}logo" for shape in ("square70x70", "square150x150", "wide310x150", "square310x310")
}
_NO_LINKS = {"post", "dialog"}
"""Methods of forms whose address is not requested with GET."""
_ASKS = re.compile(r"\b(?:nofollow|noarchive|none)\b", re.IGNORECASE).search
_LONGEST_WISH = 200

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
# The labels of UTF-16 in the Encoding standard, and their codecs here.
_LITTLE = ("utf-16", "utf-16le", "unicode", "csunicode", "iso-10646-ucs-2", "ucs-2", "unicodefeff")
_TWO_BYTE = {**dict.fromkeys(_LITTLE, "utf-16-le"), "utf-16be": "utf-16-be", "unicodefffe": "utf-16-be"}
_XHTML_EMPTY = re.compile(rb"<(script|style|title|textarea|iframe|noscript|noframes)\b([^<>]*+)(?<=/)>")


def html_links(payload: bytes, charset: str | None, found: LinkCollector, *, xhtml: bool = False) -> None:
    """Collect the references of an HTML document, whatever its bytes; `charset` is the header's, if any."""
    two_byte = _TWO_BYTE.get((charset or "").lower())
    if two_byte or payload[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        # The byte tests below read ASCII, so these charsets are turned into UTF-8 first.
        payload, charset = decode(payload, two_byte).encode(), "utf-8"
    if xhtml:
        payload = _XHTML_EMPTY.sub(rb"<\1\2></\1>", payload)
    encoding = None
    most = _MOST_TOKENS // (len(payload) // _MOST_AT_ONCE + 1)
    for part in _slices(payload):
        if len(found.anchors) > _ENOUGH:
            break
        encoding = _visit_slice(part, charset or encoding, found, most) or encoding
    encode_queries(found, encoding)


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
    if _may_explode(part):
        _visit_tokens(decode(part, charset), found, _RAW_LEVELS, most)
        return _parsed(b"", charset).encoding if charset else None
    document = _parsed(part, charset)
    _visit_tree(document, found, _RAW_LEVELS)
    return document.encoding


def _may_explode(payload: bytes) -> bool:
    if len(payload) // 3 * _MOST_OPEN <= _MOST_COPIES:  # a tag has three bytes at least
        return False
    # `count` looks at every byte by itself; `replace` leaps from one to the next, in less than half the time
    tags = len(payload) - len(payload.replace(b"<", b""))
    if tags * min(tags, _MOST_OPEN) <= _MOST_COPIES:
        return False
    opened = sum(1 for _ in _FORMATTING.finditer(payload))
    return tags * max(1, min(opened, _MOST_OPEN)) > _MOST_COPIES


def _parsed(markup: bytes | str, charset: str | None) -> Document:
    try:
        return parse(markup, encoding=charset, positions=False, allow_declarative_shadow_roots=False)
    except LookupError:
        return parse(markup, positions=False, allow_declarative_shadow_roots=False)


def _visit_tree(document: Document, found: LinkCollector, levels: int) -> None:
    elements: Iterable[Element] = document.iter_elements(_TAGS)
    visit: _Visit = _visit
    if any(map(_holds_url, document.select(_ANYWHERE))):
        elements, visit = document.select(_ALL), _visit_with_style
    add_anchor = found.anchors.append
    for element in elements:
        tag = element.tag
        if tag == "a" and visit is _visit:  # most references are these: they skip the calls
            href = element.attr("href")
            if href:
                add_anchor(href)
                continue
        if tag == "style":
            css_links(element.text, found.add)
        elif tag == "noframes":
            if levels:
                _visit_tree(_parsed(element.text, None), found, levels - 1)
        else:
            visit(tag, element.attr, element.attrs, found)
            if tag == "iframe" and levels:
                _visit_text(element.attr("srcdoc") or "", found, levels - 1)
            if tag == "script" and _is_json_ld(element.attr("type")):
                json_ld_links(element.text, found.add)


def _visit_text(markup: str, found: LinkCollector, levels: int) -> None:
    """A document within the document (`srcdoc`), whose tags its own count did not show and whose base is its own."""
    base = found.base
    if _may_explode(markup.encode("utf-8", "replace")):
        _visit_tokens(markup, found, levels)
    elif markup:
        _visit_tree(_parsed(markup, None), found, levels)
    found.base = base


def _is_json_ld(media_type: str | None) -> bool:
    return media_type is not None and media_type.strip().lower() == "application/ld+json"


def _holds_url(element: Element) -> bool:
    return "(" in (element.attr("style") or "") or any(map(element.attr, ("background", *_LATE)))


def _visit_tokens(text: str, found: LinkCollector, levels: int, most: int = _MOST_TOKENS) -> None:
    inside = None
    for token in islice(tokenize(text), most):
        kind = token.type
        if kind is TokenType.TEXT:
            if inside == "style":
                css_links(token.data or "", found.add)
            elif inside == "json-ld":
                json_ld_links(token.data or "", found.add)
            elif inside in _RAW_TEXT and levels:
                _visit_tokens(token.data or "", found, levels - 1)
        elif kind is TokenType.START_TAG:
            inside = token.tag or ""
            _visit_with_style(inside, token.attr, [name for name, _ in token.attrs or ()], found)
            if inside == "iframe" and levels:
                _visit_text(token.attr("srcdoc") or "", found, levels - 1)
            if inside == "script" and _is_json_ld(token.attr("type")):
                inside = "json-ld"
        elif kind is TokenType.END_TAG:
            inside = None


def _visit_with_style(tag: str, get: _Get, names: Iterable[str], found: LinkCollector) -> None:
    _visit(tag, get, names, found)
    style = get("style")
    if style:
        css_links(style, found.add)
    for name in _LATE:
        value = get(name)
        if value and "(" in value:
            css_links(value, found.add)
        elif value:
            found.add(value, _DATA_SRC)


def _visit(tag: str, get: _Get, names: Iterable[str], found: LinkCollector) -> None:
    for name, found_as in _PLAIN.get(tag, ()):
        value = get(name)
        if value:
            found.add(value, found_as)
    if tag in _WITH_SETS:
        _add_set(get("srcset"), _SRCSET, found)
    if tag in _LAZY_TAGS and not LAZY.isdisjoint(names):
        for url in lazy_links(get):
            found.add(url, _DATA_SRC)
    special = _SPECIAL.get(tag)
    if special:
        special(get, found)


def _add_set(value: str | None, found_as: FoundAs, found: LinkCollector) -> None:
    if value:
        for url in srcset_urls(value):
            found.add(url, found_as)


def _visit_link(get: _Get, found: LinkCollector) -> None:
    found_as = rel_found_as(get("rel") or "", FoundAs.LINK)
    if found_as is not None:
        found.add(get("href") or "", found_as)
        _add_set(get("imagesrcset"), _SRCSET, found)


def _visit_meta(get: _Get, found: LinkCollector) -> None:
    content = get("content")
    if not content:
        return
    name = (get("property") or get("name") or "").strip().lower()
    if name in _SHARED:
        found.add(content, FoundAs.OPEN_GRAPH)
    elif name in _TILES:
        found.add(content, FoundAs.ICON)
    elif name and len(content) <= _LONGEST_WISH and _ASKS(content):
        found.directives.append((name, content))
    if (get("http-equiv") or "").strip().lower() == "refresh":
        found.add(refresh_target(content), FoundAs.META_REFRESH)


def _visit_base(get: _Get, found: LinkCollector) -> None:
    if found.base is None:
        found.base = get("href")


def _visit_form(get: _Get, found: LinkCollector) -> None:
    found.posting = (get("method") or "get").strip().lower() in _NO_LINKS
    if not found.posting:
        found.add(get("action") or "", FoundAs.FORM)


def _visit_button(get: _Get, found: LinkCollector) -> None:
    """A button's own address, as a form's: it may say another method than the form that it is in."""
    action = get("formaction")
    if action:
        method = get("formmethod")
        if not (method.strip().lower() in _NO_LINKS if method else found.posting):
            found.add(action, FoundAs.FORM)


def _visit_input(get: _Get, found: LinkCollector) -> None:
    _visit_button(get, found)
    if (get("type") or "").strip().lower() == "image":
        found.add(get("src") or "", FoundAs.IMG)


def _visit_param(get: _Get, found: LinkCollector) -> None:
    if (get("name") or "").strip().lower() in {"movie", "src", "filename", "url"}:
        found.add(get("value") or "", FoundAs.OBJECT)


def _visit_applet(get: _Get, found: LinkCollector) -> None:
    for archive in (get("archive") or "").split(","):
        found.add(archive.strip(), FoundAs.OBJECT)


def _visit_svg_anchor(get: _Get, found: LinkCollector) -> None:
    if get("href") is None:
        found.add(get("xlink:href") or "", _A)


_SPECIAL: dict[str, _Special] = {
    "a": _visit_svg_anchor,
    "link": _visit_link,
    "meta": _visit_meta,
    "base": _visit_base,
    "form": _visit_form,
    "button": _visit_button,
    "input": _visit_input,
    "param": _visit_param,
    "applet": _visit_applet,
}
