"""What is remembered of references means the same as the parser says, whatever was met before."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.crawl.worker.outlinks import Outlinks
from muniment.extract.link_collector import cleaned
from muniment.model.url import resolve

BASES = [
    "http://a.de/",
    "http://a.de/x/",
    "http://a.de/x/y/z.html?q=/1",
    "https://h:8443/a//b/c",
    "http://[::1]:81/q/w",
    "http://a.de/p/..;/x",
    "http://a.de//e/f",
]
PIECES = [
    "../",
    "..",
    "a",
    "b.c",
    "/",
    "~x",
    "?",
    "x=1",
    "%20",
    "%2e",
    "//",
    "./",
    ".h",
    ":",
    "x:y",
    "http",
    ";",
    "\\",
    "#",
    "é",
]
HREFS = st.lists(st.sampled_from([*PIECES, "http://a.de/", " "]), min_size=1, max_size=5).map("".join)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(BASES), HREFS), max_size=40))
def test_memory_never_changes_what_a_reference_means(met: list[tuple[str, str]]) -> None:
    outlinks = Outlinks()
    for base, href in met:
        found = outlinks.resolve(base, [], [href], follow=True)
        expected = resolve(base, href) if cleaned(href) else None
        assert found.lines.decode() == (f"outlink: {expected} a\r\n" if expected else "")
