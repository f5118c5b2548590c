"""The sites that are shown as they were: where each comes from, its first view, and the step to the next one.

Run as a program it builds those of the ordinary run, before tests ask for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.replay.sites.builds import build, debian_folder

__all__ = ["IN_EVERY_RUN", "SITES", "Site"]


@dataclass(frozen=True)
class Site:
    """A site to be captured and shown again."""

    name: str
    root: Callable[[], Path]
    """The folder that is served; asked for, it may be built."""
    shows: str
    """Words of the first view."""
    step: str
    """A script that leads to the next view."""
    then_shows: str
    """Words of the next view, which the first has not."""
    start: str = "/"
    pages: tuple[str, ...] = ()
    """More pages to be captured, which no link of the first leads to within the crawl's bounds."""
    options: tuple[str, ...] = ("--level", "0")
    """Of the crawl."""
    step_is_captured: bool = False
    """The crawl itself does the step, as what it loads is named nowhere."""
    throws: str = ""
    """What a page throws whose service worker is refused, beside the refusal itself."""
    server: str = field(default="try_files $uri $uri/index.html $uri.html =404;", repr=False)
    """Lines of nginx."""


IN_EVERY_RUN = ("vitepress", "storybook", "videojs", "nextjs", "swagger-ui")
"""The sites of the ordinary run: quick to install and to crawl."""

_CARD = """document.querySelector('#parts-card').click();
const looking = setInterval(() => {
  const story = document.querySelector('#parts-card--long');
  if (story) clearInterval(looking) || story.click();
}, 50)"""
"""A click that opens a group, and one on a story in it."""
_NOTEBOOK = """document.querySelector('.jp-DirListing-item[data-file-type=notebook]').dispatchEvent(
  new MouseEvent('dblclick', { bubbles: true }))"""
_NEXT_SLIDE = """document.dispatchEvent(
  new KeyboardEvent('keydown', { key: 'ArrowRight', keyCode: 39, bubbles: true }))"""


def _click(selector: str) -> str:
    return f"document.querySelector({selector!r}).click()"


def _of_debian(package: str, folder: str, shows: str, link: str, then_shows: str, start: str, page: str) -> Site:
    root = partial(debian_folder, package, folder)
    return Site(package, root, shows, _click(f"a[href$='{link}']"), then_shows, start, pages=(page,))


def _linked(name: str, shows: str, link: str, then_shows: str, page: str, **more: str) -> Site:
    """A built site whose step is a link, which the crawl knows as a page."""
    return Site(name, partial(build, name), shows, _click(link), then_shows, pages=(page,), **more)  # type: ignore[arg-type]


def _acted(
    name: str, shows: str, step: str, then_shows: str, start: str = "/", options: tuple[str, ...] = (), throws: str = ""
) -> Site:
    """A built site whose step is done in the crawl, too, as what it loads is named nowhere."""
    options = ("--level", "0", *options)
    root = partial(build, name)
    return Site(name, root, shows, step, then_shows, start, step_is_captured=True, options=options, throws=throws)


_SITES = (
    _of_debian(
        "libsoup-3.0-doc", "libsoup-3.0", "Soup – 3.0", "class.Cache.html", "soup_cache_new",
        start="/index.html", page="/class.Cache.html",
    ),
    _of_debian(
        "python-django-doc", "python-django-doc/html", "Django documentation", "intro/overview.html",
        "Django at a glance", start="/index.html", page="/intro/overview.html",
    ),
    _of_debian(
        "rust-doc", "rust-doc/html", "Optional values", "enum.Option.html", "pub const fn is_some",
        start="/std/option/index.html", page="/std/option/enum.Option.html",
    ),
    _linked("mkdocs-material", "Ten thousand in a box", ".md-button", "Langstroth", "/hives/"),
    _linked("vitepress", "Two lives in one body", "a.VPButton.brand", "lobes, drawn by script", "/guide/forms"),
    _linked(
        "vue-router", "planted in 1904", "li a[href$='/trees/quince']", "Planted in 1931", "/trees/quince",
        server="try_files $uri /index.html;",
    ),
    _linked("docusaurus", "Where boats are tied up", "a[href$='/docs/intro'].button", "Three knots", "/docs/intro"),
    _linked(
        "nextjs", "shown by script", "#north", "Past the skerries", "/journeys/north/",
        server="try_files $uri $uri/index.html =404;",
    ),
    _acted(
        "storybook", "A filled one", _CARD, "One sentence after another", "/?path=/story/parts-button--filled",
        options=("--behaviors", "none"),
    ),
    _acted("swagger-ui", "All lights of a coast", _click("#operations-lights-listLights button"), "Example Value"),
    _acted("revealjs", "Small, green and old", _NEXT_SLIDE, "How they drink"),
    _acted("videojs", "by 360 at 1 s: The box is on the left", _click("#later"), "at 6 s: The box has gone"),
    _acted("leaflet-maplibre", "Islands: ", _click("#nearer"), "Nearer: "),
    _acted("shoelace", "The light is lit", _click("#send"), "It is on its way"),
    _acted("threejs", "a house", _click("#next"), "a bottle"),
    _acted("monaco", "is not assignable to type", _click("#json"), "Trailing comma"),
    _acted(
        "jupyterlite", "tides.ipynb", _NOTEBOOK, "High water twice a day", "/lab/index.html",
        # of a promise that its service worker is ready, which is rejected with nothing
        throws="Uncaught (in promise) ",
    ),
)  # fmt: skip

SITES = {site.name: site for site in _SITES}

if __name__ == "__main__":
    for chosen in IN_EVERY_RUN:
        SITES[chosen].root()
