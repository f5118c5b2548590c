"""Where the sitemaps of a site are looked for."""

from __future__ import annotations

import pytest

from muniment.model.link import FoundAs
from muniment.rules.sitemaps import reads_sitemaps, sitemap_places
from muniment.settings.option_table import Settings

START = "https://a.example:8443/docs/page?q=1"
A = "https://a.example:8443"
USUAL = f"{A}/sitemap.xml"


@pytest.mark.parametrize(
    ("named", "no_parent", "places"),
    [
        ((), False, [USUAL]),
        (("https://b.example/s.xml", "own.xml", "/sitemap.xml", "ftp://x/s", "http://["), False,
         ["https://b.example/s.xml", f"{A}/own.xml", USUAL]),
        (("/docs/s.xml", "/s.xml", "https://b.example/docs/s.xml"), True, [f"{A}/docs/s.xml", f"{A}/docs/sitemap.xml"]),
        (None, True, [f"{A}/docs/sitemap.xml"]),
    ],
)  # fmt: skip
def test_places(named: tuple[str, ...] | None, no_parent: bool, places: list[str]) -> None:
    assert sitemap_places(START, named, no_parent=no_parent) == [(url, FoundAs.SITEMAP) for url in places]


def test_a_robots_txt_that_nobody_reads_is_asked_for() -> None:
    assert sitemap_places(START, None, no_parent=False) == [
        (USUAL, FoundAs.SITEMAP),
        (f"{A}/robots.txt", FoundAs.ROBOTS),
    ]


@pytest.mark.parametrize(
    ("settings", "reads"),
    [
        (Settings(), True),
        (Settings(level=1), True),
        (Settings(level=0), False),
        (Settings(page_only=True), False),
        (Settings(sitemaps=False), False),
    ],
)
def test_where_nothing_could_be_taken_no_sitemap_is_read(settings: Settings, reads: bool) -> None:
    assert reads_sitemaps(settings) is reads
