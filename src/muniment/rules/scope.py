"""Scope: which pages a job takes, and what a page offers to the pages it leads to.

A page stands somewhere by the fewest link hops and the fewest requisite hops over all its relations. A relation
*offers* its child hops; a child keeps the fewest. Standing only ever improves, so the order in which pages are
completed does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from muniment.model.link import FoundAs, Kind
from muniment.model.url import path_of

__all__ = [
    "FAR",
    "MAX_REQUISITE_HOPS",
    "NO_PAGES",
    "Offers",
    "Scope",
    "Standing",
    "on_site",
    "site_paths",
    "start_prefix",
    "urgency",
]

FAR = 0xFFFF
"""More hops than any page has: not reached that way. Hops saturate just below."""

MAX_REQUISITE_HOPS = 5

NO_PAGES = frozenset({FoundAs.ROBOTS, FoundAs.SITEMAP, FoundAs.START_LIST})
"""What is neither a page nor a requisite: files that list or forbid."""
_NOT_SHOWN = frozenset({FoundAs.SITEMAP, FoundAs.ROBOTS})
"""Requisites by their scope alone (docs/decisions/urls.md#0030-sitemaps-and-urls): no page is shown with them."""


class Standing(Struct, frozen=True):
    """The distance of a page in its job."""

    link_hops: int
    """Fewest link hops, or FAR."""
    requisite_hops: int
    """Fewest requisite hops, or FAR."""
    on_site: bool
    included: bool
    """Matches an include pattern, or there is none."""
    redirects: int
    """Redirects in a row that led here."""


class Offers(Struct, frozen=True):
    """The hops that a page offers its children by `FoundAs`; FAR where it offers none."""

    link: tuple[int, ...]
    requisite: tuple[int, ...]
    redirects: int
    """Redirects in a row of a child that the page redirects to."""
    nearest_link: int
    """The fewest link hops that it offers along links, frames and redirects."""


class Scope(Struct, frozen=True):
    """The settings that decide scope; they never change within a job."""

    level: int | None
    page_only: bool
    offsite_links: bool
    max_redirects: int
    listed: bool = False
    """A fetch: the pages of a list and where they redirect, nothing else."""

    def as_page(self, standing: Standing) -> bool:
        """Whether link hops alone admit the page."""
        hops = standing.link_hops
        if hops == FAR:
            return False
        if hops == 0:
            return True
        near = self.level is None or hops <= self.level
        return near and standing.included and (standing.on_site or self.offsite_links)

    def admits(self, standing: Standing) -> bool:
        """Whether the page is in scope now, ignore patterns apart."""
        return self.as_page(standing) or standing.requisite_hops <= MAX_REQUISITE_HOPS

    def follows(self, on_site: bool) -> bool:
        """Whether a page's links may ever be followed, so that they are worth telling."""
        return on_site and not self.page_only and not self.listed

    def offers(self, standing: Standing) -> Offers:
        """The hops that the page offers the pages it leads to."""
        page = self.as_page(standing)
        link = min(standing.link_hops + 1, FAR - 1) if page and self.follows(standing.on_site) else FAR
        requisite = 1 if page else min(standing.requisite_hops + 1, FAR)
        redirect = (FAR, FAR)
        # in a fetch, the one beyond the limit is a page too: one that fails with its reason
        if standing.redirects < self.max_redirects + self.listed:
            redirect = (standing.link_hops if page else FAR, standing.requisite_hops)
        by_kind = {
            Kind.LINK: (link, FAR),
            Kind.REQUISITE: (FAR, requisite),
            Kind.FRAME: (link, requisite),
            Kind.REDIRECT: redirect,
            Kind.LISTED: (0 if self.listed else FAR if self.page_only else 1, FAR),
        }
        return Offers(
            nearest_link=min(link, redirect[0]),
            link=tuple(0 if way is FoundAs.START_LINE else by_kind[way.kind][0] for way in FoundAs),
            requisite=tuple(by_kind[found_as.kind][1] for found_as in FoundAs),
            redirects=standing.redirects + 1,
        )


def urgency(requisite_hops: int, found_as: int) -> int:
    """What its relations take from a page's nice value: 1 from that of a requisite, which goes before further pages."""
    return int(requisite_hops <= MAX_REQUISITE_HOPS and found_as not in _NOT_SHOWN)


def start_prefix(url: str, no_parent: bool) -> str:
    """The path prefix that a start URL makes part of the site: everything, or its directory with `--no-parent`."""
    path = path_of(url)
    return path[: path.rfind("/") + 1] if no_parent else "/"


def site_paths(prefixes: Iterable[str]) -> str:
    """A host's prefixes as `on_site` reads them: each once, and `/` alone where it is among them."""
    known = dict.fromkeys(prefixes)
    return "/" if "/" in known else "\n".join(known)


def on_site(url: str, site_paths: str) -> bool:
    """Whether a URL of a host is on the site, given the host's prefixes: one a line, `/` for all, empty for none."""
    if site_paths in {"", "/"}:
        return bool(site_paths)
    path = path_of(url)
    return any(path.startswith(prefix) for prefix in site_paths.split("\n"))
