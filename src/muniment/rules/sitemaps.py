"""Where the sitemaps of a site are looked for."""

from __future__ import annotations

from collections.abc import Iterable

from muniment.model.link import FoundAs
from muniment.model.url import directory_of, origin_of, resolve
from muniment.settings.option_table import Settings

__all__ = ["reads_sitemaps", "sitemap_places"]


def reads_sitemaps(settings: Settings) -> bool:
    """Whether a job reads sitemaps: not where nothing that they list could be taken."""
    return settings.sitemaps and not (settings.seed or settings.page_only) and settings.level != 0


def sitemap_places(start: str, named: Iterable[str] | None, *, no_parent: bool) -> list[tuple[str, FoundAs]]:
    """The sitemaps of a start page's site: those its robots.txt names, then the usual place.

    Without a robots.txt that was read (None), it is asked for as a page that names them. `no_parent` keeps to the
    start page's directory: a sitemap from above lists the whole host.
    """
    origin = origin_of(start)
    places = [url for name in named or () if (url := resolve(origin + "/robots.txt", name)) is not None]
    here = directory_of(start) if no_parent else origin + "/"
    places = [url for url in places if not no_parent or url.startswith(here)]
    found = dict.fromkeys([*places, here + "sitemap.xml"], FoundAs.SITEMAP)
    if named is None and not no_parent:
        found[origin + "/robots.txt"] = FoundAs.ROBOTS
    return list(found.items())
