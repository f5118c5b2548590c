"""Elements of HTML and what each of them refers to, by its own attributes or by those that any element may have."""

from __future__ import annotations

import re
from collections.abc import Callable

import re2
from msgspec import Struct

from muniment.extract.attributes import (
    LATE_TAGS,
    byte_options,
    late_links,
    late_names,
    refresh_target,
    rel_found_as,
    srcset_urls,
)
from muniment.extract.css import css_links
from muniment.extract.link_collector import LinkCollector
from muniment.extract.scripts import ImportMap, click_targets, module_links, read_import_map
from muniment.extract.structured import json_ld_links
from muniment.model.link import FoundAs

__all__ = ["TAGS", "DocumentTraits", "ElementReader", "traits_of"]

Get = Callable[[str], str | None]
_Special = Callable[[Get, LinkCollector], None]

# Looking up elements by tag is the fastest question turbohtml answers, but styles and backgrounds may be anywhere.
TAGS = (
    "a", "amp-anim", "amp-audio", "amp-bodymovin-animation", "amp-iframe", "amp-img", "amp-list", "amp-state",
    "amp-story", "amp-video", "amp-video-iframe", "applet", "area", "audio", "base", "bgsound", "blockquote", "button",
    "del", "embed", "feImage", "form", "frame", "iframe", "image", "img", "input", "ins", "link", "meta", "noframes",
    "object", "param", "q", "script", "source", "style", "track", "use", "video",
)  # fmt: skip
_ANYWHERE = ("style", "background", "onclick")
_PAINTED = (
    "fill",
    "stroke",
    "filter",
    "mask",
    "clip-path",
    "marker",
    "marker-start",
    "marker-mid",
    "marker-end",
    "cursor",
)
_ADDRESS_IN_STYLE = re2.compile(rb"url\(\s*(?:[\"']|&quot;|&#39;)?[^\s\"'#&)]", byte_options()).search
_MOST_LOOKED_AT = 64
"""Such addresses of a document of which it is asked whether an attribute begins with them."""
_IMAGE = (("src", FoundAs.IMG),)
_LONGDESC = (("longdesc", FoundAs.LONGDESC),)
_HREFS = (("href", FoundAs.IMG), ("xlink:href", FoundAs.IMG))
_BACKGROUND = (("background", FoundAs.BACKGROUND),)
_AMP = (("src", FoundAs.AMP),)
_AMP_POSTER = (*_AMP, ("poster", FoundAs.AMP))
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
    **dict.fromkeys(("amp-img", "amp-anim", "amp-list", "amp-state", "amp-bodymovin-animation"), _AMP),
    **dict.fromkeys(("amp-video", "amp-audio"), _AMP_POSTER),
    **dict.fromkeys(("amp-iframe", "amp-video-iframe"), (("src", FoundAs.IFRAME), ("poster", FoundAs.AMP))),
    "amp-story": tuple(
        (name, FoundAs.AMP)
        for name in (
            "poster-portrait-src", "poster-square-src", "poster-landscape-src", "publisher-logo-src", "background-audio"
        )
    ),
    **dict.fromkeys(("body", "table", "thead", "tbody", "tfoot", "tr", "td", "th"), _BACKGROUND),
    **dict.fromkeys(("blockquote", "q", "ins", "del"), (("cite", FoundAs.CITE),)),
}  # fmt: skip
_SETS = {
    "img": FoundAs.SRCSET,
    "source": FoundAs.SRCSET,
    "image": FoundAs.SRCSET,
    "amp-img": FoundAs.AMP,
    "amp-anim": FoundAs.AMP,
}
# Before Python 3.12 an enumeration's member takes longer to name than a local call.
_A, _SRCSET, _ONCLICK, _DATA_HREF = FoundAs.A, FoundAs.SRCSET, FoundAs.ONCLICK, FoundAs.DATA_HREF

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


class DocumentTraits(Struct, frozen=True):
    """What a document has of that which most have not, by its bytes: only then its elements are asked for it."""

    late: tuple[str, ...] = ()
    """The attributes of lazy loading that may be in it."""
    painted: bool = False
    """Whether a `url()` may lead to another document."""


def traits_of(markup: bytes) -> DocumentTraits:
    """The traits of a document."""
    return DocumentTraits(late_names(markup), _is_painted(markup))


def _is_painted(markup: bytes) -> bool:
    at = 0
    for _ in range(_MOST_LOOKED_AT):
        found = _ADDRESS_IN_STYLE(markup, at)
        if found is None:
            return False
        if markup[found.start() - 1 : found.start()] in {b'"', b"'", b"="}:
            return True
        at = found.end()
    return True


class ElementReader:
    """Hands the references of elements to a collector."""

    def __init__(self, found: LinkCollector, traits: DocumentTraits) -> None:
        self.found, self.traits = found, traits
        self._imports = ImportMap()
        self.anywhere = (*_ANYWHERE, *traits.late, *(_PAINTED if traits.painted else ()))
        """Attributes that any element may have."""

    def read(self, tag: str, get: Get) -> None:
        """Take what an element of this tag refers to; `get` gives the value of an attribute."""
        found = self.found
        for name, found_as in _PLAIN.get(tag, ()):
            value = get(name)
            if value:
                found.add(value, found_as)
        if tag in _SETS:
            _add_set(get("srcset"), _SETS[tag], found)
        if self.traits.late:
            self._read_late(tag, get)
        special = _SPECIAL.get(tag)
        if special:
            special(get, found)

    def read_whole(self, tag: str, get: Get) -> None:
        """Take what any element may refer to as well."""
        self.read(tag, get)
        found = self.found
        style = get("style")
        if style:
            css_links(style, found.add)
        script = get("onclick")
        if script:
            for address in click_targets(script):
                found.add(address, _ONCLICK)
        if self.traits.painted:
            for name in _PAINTED:
                css_links(get(name) or "", found.add)

    def holds_more(self, tag: str, get: Get) -> bool:
        """Whether `read_whole` would find more than `read` does, which only elements of `TAGS` get."""
        if "(" in (get("style") or "") or get("background"):
            return True
        script = get("onclick")
        if script and any(True for _ in click_targets(script)):
            return True
        late = self.traits.late
        if late and (tag not in LATE_TAGS or "data-href" in late) and any(map(get, late)):
            return True
        return self.traits.painted and any("(" in (get(name) or "") for name in _PAINTED)

    def read_script(self, kind: str, text: str) -> None:
        """Take what a script of this type (lower case) in the document refers to."""
        if kind == "application/ld+json":
            json_ld_links(text, self.found.add)
        elif kind == "importmap":
            # the first one counts for a name
            self._imports.imports = read_import_map(text, self.found.add) | self._imports.imports
        elif kind == "module":
            module_links(text, self.found.add, self._imports)

    def _read_late(self, tag: str, get: Get) -> None:
        for name in self.traits.late:
            value = get(name)
            if not value:
                continue
            if name == "data-href":
                how = rel_found_as(get("rel") or "", _DATA_HREF) if tag == "link" else _DATA_HREF
                if how is not None:
                    self.found.add(value, how)
            elif "url(" in value:
                css_links(value, self.found.add)
            else:
                for url, how in late_links(name, value, certain=tag in LATE_TAGS):
                    self.found.add(url, how)


def _add_set(value: str | None, found_as: FoundAs, found: LinkCollector) -> None:
    if value:
        for url in srcset_urls(value):
            found.add(url, found_as)


def _visit_link(get: Get, found: LinkCollector) -> None:
    found_as = rel_found_as(get("rel") or "", FoundAs.LINK)
    if found_as is not None:
        found.add(get("href") or "", found_as)
        _add_set(get("imagesrcset"), _SRCSET, found)


def _visit_meta(get: Get, found: LinkCollector) -> None:
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


def _visit_base(get: Get, found: LinkCollector) -> None:
    if found.base is None:
        found.base = get("href")


def _visit_form(get: Get, found: LinkCollector) -> None:
    found.posting = (get("method") or "get").strip().lower() in _NO_LINKS
    if not found.posting:
        found.add(get("action") or "", FoundAs.FORM)


def _visit_button(get: Get, found: LinkCollector) -> None:
    """A button's own address, as a form's: it may say another method than the form that it is in."""
    action = get("formaction")
    if action:
        method = get("formmethod")
        if not (method.strip().lower() in _NO_LINKS if method else found.posting):
            found.add(action, FoundAs.FORM)


def _visit_input(get: Get, found: LinkCollector) -> None:
    _visit_button(get, found)
    if (get("type") or "").strip().lower() == "image":
        found.add(get("src") or "", FoundAs.IMG)


def _visit_param(get: Get, found: LinkCollector) -> None:
    if (get("name") or "").strip().lower() in {"movie", "src", "filename", "url"}:
        found.add(get("value") or "", FoundAs.OBJECT)


def _visit_applet(get: Get, found: LinkCollector) -> None:
    for archive in (get("archive") or "").split(","):
        found.add(archive.strip(), FoundAs.OBJECT)


def _visit_svg_anchor(get: Get, found: LinkCollector) -> None:
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
