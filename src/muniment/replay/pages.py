"""The pages of replay: front, search, captures of a URL, the banner, and what is not there."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, urlencode

from msgspec import Struct

from muniment.clock import iso_us
from muniment.replay.addresses import STYLE
from muniment.replay.catalog import CatalogTotals, Entry, Search
from muniment.replay.markup import Markup, document, element
from muniment.replay.url_keys import stamp

__all__ = [
    "Missing",
    "at_link",
    "banner_page",
    "captures_page",
    "front_page",
    "missing_page",
    "noted_page",
    "search_page",
    "told_page",
]

_SAFE = "!#$%&'()*+,/:;=?@[]~"
_h = element


class Missing(Struct, frozen=True):
    """What is known of a URL that is not archived."""

    url: str
    captures: Sequence[Entry]
    """Of the URL."""
    elsewhere: Sequence[Entry]
    """With the same path on other hosts."""
    reasons: Sequence[str]
    """What the trackers of the directories know."""


def at_link(entry: Entry, kind: str = "at") -> str:
    """The address of a capture on the front."""
    return f"/{kind}/{stamp(entry.at)}/{quote(entry.url, safe=_SAFE)}"


def front_page(
    name: str, totals: CatalogTotals, starts: Sequence[Entry], hosts: Sequence[tuple[str, int]], chosen: str = ""
) -> str:
    """The first page; `chosen` says which time is shown in an exact replay."""
    figures = _h(
        "dl",
        _figure("captures", f"{totals.captures:,}"),
        _figure("pages", f"{totals.pages:,}"),
        _figure("hosts", f"{totals.hosts:,}"),
        _figure("first", _day(totals.first)),
        _figure("last", _day(totals.last)),
        class_="figures",
    )
    links = [
        _h("li", _h("a", one.url, href=at_link(one)), " ", _h("span", _when(one.at), class_="dim")) for one in starts
    ]
    of_hosts = [
        _h("li", _h("a", host, href=f"/search?{urlencode({'host': host})}"), " ", _h("span", f"{n:,}", class_="dim"))
        for host, n in hosts
    ]
    main = _h(
        "main",
        _h("h1", name),
        figures,
        _h("p", chosen, test="replay-time") if chosen else "",
        _search_form(Search()),
        _h("h2", "Start pages"),
        _h("ul", links, class_="links") if links else _h("p", "No HTML page was captured whole; search for what was."),
        _h("h2", "Hosts"),
        _h("ul", of_hosts, class_="links"),
        test="replay-front",
    )
    return document(f"{name} – archive", main, style=STYLE)


def search_page(wanted: Search, found: Sequence[Entry], *, more: bool, query: dict[str, str]) -> str:
    """The captures that a search found."""
    count = f"{len(found):,} captures" if not more else f"the newest {len(found):,} captures; there are more"
    following = _h("a", "Next page", href=f"/search?{urlencode({**query, 'page': str(wanted.page + 1)})}",
                   test="next-page") if more else ""  # fmt: skip
    main = _h(
        "main",
        _home(),
        _h("h1", "Captures"),
        _search_form(wanted),
        _table(found, count) if found else _h("p", "Nothing matches. Try a shorter part of the URL.", class_="empty"),
        _h("p", following),
    )
    return document("Captures – archive", main, style=STYLE)


def captures_page(url: str, found: Sequence[Entry]) -> str:
    """All captures of one URL."""
    main = _h(
        "main",
        _home(),
        _h("h1", "All captures"),
        _h("p", url, class_="url", test="replay-url"),
        _h("div", _table(found, f"{len(found):,} captures, oldest first"), test="replay-captures"),
    )
    return document(f"{url} – all captures", main, style=STYLE)


def banner_page(entry: Entry, content: str, others: int, notes: Sequence[str]) -> str:
    """A capture below a banner that says what it is."""
    label = "1 capture" if others == 1 else f"{others:,} captures"
    banner = _h(
        "header",
        _h("a", "Archive", href="/", test="replay-front", class_="home"),
        _h("span", entry.url, class_="url", test="replay-url", title=entry.url),
        _h("span", "archived ", _time(entry.at), class_="when"),
        _h("nav",
           _h("a", label, href=f"/at/*/{quote(entry.url, safe=_SAFE)}", test="replay-captures"), " ",
           _h("a", "raw", href=at_link(entry, "raw")), " ", _h("a", "record", href=at_link(entry, "record"))),
        [_h("p", note, class_="note", test="replay-note") for note in notes],
        class_="banner",
    )  # fmt: skip
    frame = _h(
        "iframe",
        src=f"{content}/at/{stamp(entry.at)}mp_/{quote(entry.url, safe=_SAFE)}",
        title=f"Archived page {entry.url}",
        test="replay-frame",
        # no way to the window, to new windows, or out of the frame
        sandbox="allow-scripts allow-forms allow-same-origin allow-modals",
        referrerpolicy="no-referrer",
    )
    return document(f"{entry.url} – archived {_when(entry.at)}", banner, frame, style=STYLE, body_class="framed")


def noted_page(entry: Entry, notes: Sequence[str]) -> str:
    """What is to be known of a capture before it is opened where there is no banner."""
    main = _h(
        "main",
        _home(),
        _h("h1", "Before you open it"),
        _h("p", entry.url, class_="url", test="replay-url"),
        _h("p", "archived ", _time(entry.at)),
        [_h("p", note, class_="note", test="replay-note") for note in notes],
        _h("p", _h("a", "Open it", href=entry.url, test="capture-view")),
    )
    return document(f"{entry.url} – archived {_when(entry.at)}", main, style=STYLE)


def missing_page(missing: Missing, *, home: str = "") -> str:
    """A URL that is not archived; `home` is the front's address where this is shown elsewhere."""
    parts: list[Markup] = []
    if missing.captures:
        parts += [_h("h2", "Other captures of this URL"), _list(missing.captures, home)]
    if missing.elsewhere:
        parts += [_h("h2", "The same path on other hosts"), _list(missing.elsewhere, home)]
    if missing.reasons:
        parts += [_h("h2", "What the crawl knows of it"), _h("ul", [_h("li", one) for one in missing.reasons])]
    main = _h(
        "main",
        "" if home else _home(),
        _h("h1", "Not in this archive"),
        _h("p", missing.url, class_="url", test="replay-url"),
        parts or _h("p", "Nothing with this path was captured on any host."),
        test="not-archived",
    )
    return document("Not in this archive", main, style=STYLE)


def told_page(title: str, url: str, text: str) -> str:
    """A capture that cannot be shown, and why."""
    parts = _h("h1", title), _h("p", url, class_="url", test="replay-url") if url else "", _h("p", text)
    return document(title, _h("main", *parts, test="replay-problem"), style=STYLE)


def _list(entries: Sequence[Entry], home: str) -> Markup:
    # links of a frame cannot leave it: there they are text
    shown = [
        _h("li", one.url if home else _h("a", one.url, href=at_link(one)), " ", _h("span", _when(one.at), class_="dim"))
        for one in entries[:10]
    ]
    return _h("ul", shown, class_="links")


def _table(entries: Sequence[Entry], caption: str) -> Markup:
    head = _h("tr", [_h("th", name, scope="col") for name in ("Time", "Status", "Type", "URL", "Bytes")])
    return _h(
        "table",
        _h("caption", caption),
        _h("thead", head),
        _h("tbody", [_row(one) for one in entries]),
    )


def _row(entry: Entry) -> Markup:
    kind = entry.kind.partition(";")[0].strip() or "–"
    state = str(entry.status or "–") + ("" if entry.whole else ", incomplete")
    return _h(
        "tr",
        _h("td", _when(entry.at), data_label="Time"),
        _h("td", state, data_label="Status"),
        _h("td", kind, data_label="Type"),
        _h("td", _h("a", entry.url, href=at_link(entry), test="capture-view"), data_label="URL", class_="url"),
        _h("td", _h("a", "raw", href=at_link(entry, "raw"), test="capture-raw"), " ",
           _h("a", "record", href=at_link(entry, "record")), data_label="Bytes"),
        test="search-result",
    )  # fmt: skip


def _search_form(wanted: Search) -> Markup:
    return _h(
        "form",
        _h("label", "URL, or a part of it ", _h("input", name="q", type="search", value=wanted.q, test="search-input")),
        _h("label", "Host ", _h("input", name="host", value=wanted.host)),
        _h("label", "Status ", _h("input", name="status", value=wanted.status, inputmode="numeric", size="4")),
        _h("label", "Type ", _h("input", name="type", value=wanted.type, size="10")),
        _h("button", "Search", type="submit", test="search-submit"),
        action="/search",
        role="search",
    )


def _time(at: int) -> Markup:
    return _h("time", _when(at), datetime=iso_us(at), test="replay-time")


def _figure(name: str, value: str) -> Markup:
    return _h("div", _h("dt", name), _h("dd", value))


def _home() -> Markup:
    return _h("p", _h("a", "Archive", href="/"))


def _when(at: int) -> str:
    return f"{iso_us(at)[:10]} {iso_us(at)[11:19]} UTC"


def _day(at: int) -> str:
    return iso_us(at)[:10] if at else "–"
