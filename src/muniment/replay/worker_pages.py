"""Pages of the content's origin about its worker: it starts, there is none, the replay is over."""

from __future__ import annotations

from muniment.replay.addresses import STYLE
from muniment.replay.markup import document, element

__all__ = ["over_page", "starting_page"]

_OVER = """\
localStorage.clear();
sessionStorage.clear();
indexedDB.databases?.().then((all) => all.forEach(({ name }) => indexedDB.deleteDatabase(name)));
"""


def starting_page(url: str, front: str, time: str) -> str:
    """What a browser gets that has no worker of ours yet: it starts one, or says how the page can be seen without."""
    h = element
    ways = (
        h("li", "in a browser window that is not private, or with service workers switched on;"),
        h("li", "exactly as it was, in a Chromium of its own: ", h("code", "muniment replay PATH --exact"), ";"),
        h("li", "as one file for other programs: ", h("code", "muniment export PATH --wacz FILE"), ";"),
        h("li", "its bytes as they were recorded: ", h("code", f"{front}/raw/{time}/{url}")),
    )
    without = h(
        "section",
        h("h1", "This page needs a service worker"),
        h("p", url, class_="url"),
        h("p", "Archived pages are shown by a service worker, and it cannot run: ", h("span", data_reason=True), "."),
        h("p", "The page can be seen"),
        h("ul", ways),
        test="no-worker",
        hidden=True,
    )
    starting = h("p", "Opening the archived page …", id="starting", class_="dim")
    unscripted = h(
        "noscript", h("p", "Archived pages need JavaScript and service workers, which are switched off here.")
    )
    guard, script = h("script", src="/before.js"), h("script", src="/start.js", defer=True)
    return document(f"{url} – archived", guard, h("main", starting, unscripted, without), script, style=STYLE)


def over_page() -> str:
    """What a page shows whose replay has ended; it clears what archived pages have stored."""
    text = element(
        "main", element("h1", "This replay has ended"), element("p", "Start it again with: muniment replay PATH")
    )
    return document("This replay has ended", text, style="data:,").replace(
        "</body>", f"<script>{_OVER}</script></body>"
    )
