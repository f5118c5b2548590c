"""The pages of replay: front, search, captures of a URL, what is not there, and licences."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, urlencode

from msgspec import Struct

from muniment.clock import iso_us
from muniment.replay.addresses import STYLE
from muniment.replay.captures.catalog import CatalogTotals, Entry, Search
from muniment.replay.captures.url_keys import full_stamp
from muniment.replay.markup import Markup, document, element
from muniment.replay.plan import ReplayEngine
from muniment.replay.wabac import LICENCE, SOURCE

__all__ = [
    "Missing",
    "at_link",
    "captures_page",
    "front_page",
    "licences_page",
    "missing_page",
    "noted_page",
    "page_link",
    "search_page",
    "timed",
    "told_page",
    "when",
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


def at_link(entry: Entry, kind: str = "at", *, time: str = "", modifier: str = "") -> str:
    """The path of a capture, which names its microsecond so that no other is meant; `time` may be `*` for all."""
    return f"/{kind}/{time or full_stamp(entry.at)}{modifier}/{quote(entry.url, safe=_SAFE)}"


def page_link(url: str, time: str) -> str:
    """The path of a URL at a time."""
    return f"/at/{time}/{quote(url, safe=_SAFE)}"


def _pages(totals: CatalogTotals) -> str:
    """Captured pages of our directories, and what other archives have instead."""
    others = f"{totals.documents:,} HTML answers of other archives"
    return f"{totals.pages:,} captured" + (f", {others}" if totals.documents else "")


def front_page(
    name: str, totals: CatalogTotals, starts: Sequence[Entry], hosts: Sequence[tuple[str, int]], chosen: str = ""
) -> str:
    """The first page; `chosen` says which time is shown in an exact replay."""
    figures = _h(
        "dl",
        _figure("captures", f"{totals.captures:,}"),
        _figure("pages", _pages(totals)),
        _figure("hosts", f"{totals.hosts:,}"),
        _figure("first", _day(totals.first)),
        _figure("last", _day(totals.last)),
        class_="figures",
    )
    links = [
        _h("li", _h("a", one.url, href=at_link(one)), " ", _h("span", when(one.at), class_="dim")) for one in starts
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
        _h("p", _h("a", "Licences", href="/licences"), class_="dim"),
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


def noted_page(entry: Entry, notes: Sequence[str]) -> str:
    """What is to be known of a capture before it is opened where there is no banner."""
    main = _h(
        "main",
        _home(),
        _h("h1", "Before you open it"),
        _h("p", entry.url, class_="url", test="replay-url"),
        _h("p", "archived ", timed(entry.at)),
        [_h("p", note, class_="note", test="replay-note") for note in notes],
        _h("p", _h("a", "Open it", href=entry.url, test="capture-view")),
    )
    return document(f"{entry.url} – archived {when(entry.at)}", main, style=STYLE)


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


def licences_page(version: str, engine: ReplayEngine | None) -> str:
    """The licences of Muniment and of what rewrites pages."""
    rewrites = (
        _h("h2", f"{engine.name} {engine.version}"),
        _h("p", "It rewrites archived pages in your browser. Muniment does not contain it: it is a file of this "
           "machine, which is handed to your browser unchanged."),
        _h("dl", _figure("licence", LICENCE), _figure("source", SOURCE), class_="facts"),
    ) if engine else ()  # fmt: skip
    main = _h(
        "main",
        _home(),
        _h("h1", "Licences"),
        _h("h2", f"Muniment {version}"),
        _h("p", "It keeps the archive, chooses what is shown and serves these pages."),
        _h("dl", _figure("licence", "Apache-2.0"), class_="facts"),
        rewrites,
    )
    return document("Licences – archive", main, style=STYLE)


def _list(entries: Sequence[Entry], home: str) -> Markup:
    # links of a frame cannot leave it: there they are text
    shown = [
        _h("li", one.url if home else _h("a", one.url, href=at_link(one)), " ", _h("span", when(one.at), class_="dim"))
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
        _h("td", when(entry.at), data_label="Time"),
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


def timed(at: int) -> Markup:
    """A moment."""
    return _h("time", when(at), datetime=iso_us(at), test="replay-time")


def _figure(name: str, value: str) -> Markup:
    return _h("div", _h("dt", name), _h("dd", value))


def _home() -> Markup:
    return _h("p", _h("a", "Archive", href="/"))


def when(at: int) -> str:
    """A moment in words, to the second."""
    return f"{iso_us(at)[:10]} {iso_us(at)[11:19]} UTC"


def _day(at: int) -> str:
    return iso_us(at)[:10] if at else "–"
