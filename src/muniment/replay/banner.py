"""The banner above an archived page: its URL, time and kind, its other captures, what is missing, and other ways."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from muniment.replay.addresses import BANNER_SCRIPT, STYLE
from muniment.replay.captures.catalog import Entry
from muniment.replay.captures.url_keys import full_stamp
from muniment.replay.markup import Markup, document, element
from muniment.replay.pages import at_link, timed, when
from muniment.replay.timeline import Tick, status_of, ticks_of

__all__ = ["Banner", "banner_page"]

_h = element
_KINDS = (
    ("text/html", "page"),
    ("application/xhtml", "page"),
    ("image/", "image"),
    ("video/", "video"),
    ("audio/", "sound"),
    ("font/", "font"),
    ("text/css", "style sheet"),
    ("text/javascript", "script"),
    ("application/javascript", "script"),
    ("application/pdf", "PDF"),
    ("application/json", "data"),
    ("application/xml", "data"),
    ("text/xml", "data"),
    ("text/", "text"),
)


class Banner(Struct, frozen=True, kw_only=True):
    """A capture below its banner."""

    entry: Entry
    content: str
    """The origin of archived pages."""
    fallback: str
    """The same for browsers that resolve no names below `localhost`."""
    captures: Sequence[Entry]
    """All of the page, the oldest first."""
    notes: Sequence[str]
    shown: int
    """How many documents were shown before."""


def banner_page(banner: Banner) -> str:
    """The page with the banner and the frame; a script keeps its parts with `data-live` true to the frame."""
    entry, content = banner.entry, banner.content
    header = _h(
        "header",
        _identity(entry),
        _h("div", _missing(), _exactly(entry), class_="state"),
        _h("div", [_h("p", note, class_="note", test="replay-note") for note in banner.notes],
           class_="notes", data_live="notes", role="status"),
        _captures(entry, banner.captures),
        _h("div", _another(entry), _bytes(entry), class_="ways"),
        class_="banner",
        data_url=entry.url,
        data_at=full_stamp(entry.at),
    )  # fmt: skip
    frame = _h(
        "iframe",
        src=f"{content}{at_link(entry, modifier='mp_')}",
        data_fallback=banner.fallback,
        data_shown=str(banner.shown),
        title="Archived page",
        test="replay-frame",
        # no way to the window, to new windows, or out of the frame
        sandbox="allow-scripts allow-forms allow-same-origin allow-modals",
        referrerpolicy="no-referrer",
    )
    script = _h("script", src=BANNER_SCRIPT, type="module")
    title = f"{entry.url} – archived {when(entry.at)}"
    return document(title, header, _h("main", frame), script, style=STYLE, body_class="framed")


def kind_of(entry: Entry) -> str:
    """The kind of what was captured, in words, and its status where that says more."""
    sent = entry.kind.strip().lower()
    kind = next((word for begin, word in _KINDS if sent.startswith(begin)), "file" if sent else "answer")
    if entry.redirect_to or 300 < entry.status < 400:
        return f"redirect, status {entry.status}"
    return kind if entry.status in {0, 200} else f"{kind}, status {status_of(entry)}"


def _identity(entry: Entry) -> Markup:
    return _h(
        "div",
        _h("a", "Archive", href="/", test="replay-front", class_="home"),
        _h("p", _h("strong", "Archived"), " ", timed(entry.at), class_="when"),
        _h("p", kind_of(entry), class_="kind", test="replay-kind"),
        _h("p", entry.url, class_="url", test="replay-url", title=entry.url),
        class_="identity",
        data_live="identity",
    )


def _captures(entry: Entry, captures: Sequence[Entry]) -> Markup:
    """The way to the captures before and after, and the timeline."""
    before = [one for one in captures if one.at < entry.at]
    after = [one for one in captures if one.at > entry.at]
    number = f"{len(before) + 1} of {max(len(captures), 1):,}"
    ticks = ticks_of(captures, entry)
    return _h(
        "nav",
        _h("a", "‹ Earlier", href=at_link(before[-1]), test="replay-previous", rel="prev") if before else "",
        _h("a", number, href=at_link(entry, time="*"), test="replay-captures", title="List of all captures"),
        _h("a", "Later ›", href=at_link(after[0]), test="replay-next", rel="next") if after else "",
        _h("ol", [_h("li", _tick(one)) for one in ticks], test="replay-timeline", class_="timeline",
           aria_label="Timeline"),
        data_live="captures",
        aria_label="Captures of this page",
    )  # fmt: skip


def _tick(tick: Tick) -> Markup:
    whole = when(tick.first.at) if tick.captures == 1 else f"{tick.captures:,} captures from {when(tick.first.at)}"
    return _h(
        "a",
        _h("span", tick.label),
        " ",
        _h("small", tick.told),
        href=at_link(tick.first),
        test="replay-tick",
        title=f"{whole}: {tick.told}",
        data_at=full_stamp(tick.first.at),
        data_status=" ".join(tick.statuses),
        aria_current="true" if tick.current else None,
    )


def _another(entry: Entry) -> Markup:
    return _h(
        "form",
        _h("input", name="url", type="text", inputmode="url", test="replay-address", autocomplete="off",
           aria_label="Another address of this archive", placeholder="Another address", required=True),
        _h("button", "Go", type="submit", test="replay-go"),
        _h("span", _h("input", type="hidden", name="at", value=full_stamp(entry.at)), data_live="go-at"),
        action="/go",
        role="search",
    )  # fmt: skip


def _bytes(entry: Entry) -> Markup:
    links = _h("a", "raw", href=at_link(entry, "raw")), " ", _h("a", "record", href=at_link(entry, "record"))
    return _h("span", *links, class_="bytes", data_live="bytes")


def _exactly(entry: Entry) -> Markup:
    return _h(
        "form",
        _h("input", type="hidden", name="url", value=entry.url),
        _h("input", type="hidden", name="at", value=full_stamp(entry.at)),
        _h("button", "Exactly", _h("span", " as it was"), type="submit", test="replay-exact", class_="plain",
           title="Open this page at this time in a browser of its own, with every byte as it was"),
        action="/exact",
        method="post",
        data_live="exact",
    )  # fmt: skip


def _missing() -> Markup:
    """The place for what the page asked for in vain, which scripts alone can know of."""
    return _h(
        "div",
        _h(
            "details",
            _h("summary", "Missing: …", test="replay-missing", data_count="0"),
            _h("ul", aria_label="What is not in the archive"),
        ),
        _h("button", "Outline", type="button", test="replay-outline", aria_pressed="false", class_="plain",
           title="Outline in the page what is missing"),
        class_="missing",
        hidden=True,
    )  # fmt: skip
