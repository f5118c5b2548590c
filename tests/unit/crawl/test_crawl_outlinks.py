"""Outlinks: what is remembered and joined as text means what the URL parser says."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.pages import packed_links

from muniment.crawl.pages import NOTHING
from muniment.crawl.worker.outlinks import Outlinks, join_plain
from muniment.extract.link_collector import cleaned
from muniment.model.link import FoundAs
from muniment.model.url import directory_of, resolve, url_key

BASE = "https://a.example/d/e/page.html?q=1"
A, IMG, REDIRECT = FoundAs.A, FoundAs.IMG, FoundAs.REDIRECT

HREFS = st.text("ab0/.?#&=:%@ \\-~_ü", max_size=12) | st.sampled_from(
    ["", ".", "..", "../..", "../../../../x", "x/../y", "x/./y", "/", "//b.example/x", "http://b.example", "https:x", "HTTP://B",
     "?q", "#f", "x?y#z", "x//y", "/x//y", ".x", "x.", "..x", "x/..", "mailto:x", "javascript:1", "a:b", "x?a=/../b"]
)  # fmt: skip
BASES = st.sampled_from(
    [BASE, "https://a.example/", "http://a.example:8080/x", "http://[::1]/d/", "https://a.example//d//x"]
)


def resolved(*links, base=BASE, follow=True, with_memory=None):
    others = [link for link in links if link[1] is not A]
    anchors = [href for href, found_as in links if found_as is A]
    return (with_memory or Outlinks()).resolve(base, others, anchors, follow=follow)


def listed(found):
    """(URL, label) of each line for the metadata record."""
    return [tuple(line.removeprefix("outlink: ").split(" ")) for line in found.lines.decode().splitlines()]


@settings(deadline=None, max_examples=500)
@given(st.lists(st.tuples(BASES, st.lists(HREFS, max_size=6)), max_size=4))
def test_what_is_remembered_means_what_the_parser_says(pages):
    memory = Outlinks()
    for base, hrefs in pages:
        found = resolved(*((href, A) for href in hrefs), base=base, with_memory=memory)
        expected = dict.fromkeys(url for href in hrefs if cleaned(href) and (url := resolve(base, href)) is not None)
        assert listed(found) == [(url, "a") for url in expected]
        assert found.entries == packed_links([(url, A) for url in expected])


@settings(deadline=None, max_examples=500)
@given(BASES, HREFS)
def test_what_is_joined_as_text_is_what_the_parser_gives(base, href):
    joined = join_plain(directory_of(base), href)
    assert joined is None or joined == resolve(base, href)


@pytest.mark.parametrize("href", ["x", "x/y.html", "../x", "../../../../x", "/x/y", "x?q=1", "/", "x/"])
def test_plain_references_need_no_parser(href):
    joined = join_plain(directory_of(BASE), href)
    assert joined in {resolve(BASE, href), None if href == "/" else joined}
    assert joined == resolve(BASE, href) or href == "/"


def test_a_url_is_told_once_and_its_key_goes_with_every_page():
    memory = Outlinks()
    first = resolved(("x", A), ("y", A), with_memory=memory)
    second = resolved(("x", A), ("z", A), with_memory=memory)
    assert [url for _, url in first.news] == ["https://a.example/d/e/x", "https://a.example/d/e/y"]
    assert [url for _, url in second.news] == ["https://a.example/d/e/z"]
    assert second.entries == packed_links([("https://a.example/d/e/x", A), ("https://a.example/d/e/z", A)])


def test_a_url_spelled_in_many_ways_is_one():
    found = resolved(("x", A), ("./x", A), ("/d/e/x", A), ("https://A.example/d/e/x#part", A))
    assert listed(found) == [("https://a.example/d/e/x", "a")]
    assert found.entries == packed_links([("https://a.example/d/e/x", A)])
    assert len(found.news) == 1


def test_a_url_found_in_two_ways_is_two_entries():
    found = resolved(("x", A), ("x", IMG))
    assert found.entries == packed_links([("https://a.example/d/e/x", IMG), ("https://a.example/d/e/x", A)])
    assert len(found.news) == 1


def test_a_page_that_is_not_followed_lists_links_and_tells_requisites():
    found = resolved(("x", A), ("i.png", IMG), ("moved", REDIRECT), follow=False)
    assert [label for _, label in listed(found)] == ["img", "redirect", "a"]
    assert found.entries == packed_links(
        [("https://a.example/d/e/i.png", IMG), ("https://a.example/d/e/moved", REDIRECT)]
    )
    assert [url for _, url in found.news] == ["https://a.example/d/e/i.png", "https://a.example/d/e/moved"]


def test_a_link_that_was_only_listed_is_told_when_a_followed_page_leads_to_it():
    memory = Outlinks()
    resolved(("x", A), follow=False, with_memory=memory)
    assert [key for key, _ in resolved(("x", A), with_memory=memory).news] == [url_key("https://a.example/d/e/x")]


def test_what_leads_nowhere_is_left_out():
    found = resolved(("mailto:x@a.example", A), ("javascript:1", A), ("http://[", A))
    assert (found.entries, found.lines, found.news) == (b"", b"", ())


@pytest.mark.parametrize("raw", [" x\n", "\x01x", "x\t", "\n/d/e/x"])
def test_an_anchor_is_cleaned_before_it_is_resolved(raw):
    assert listed(resolved((raw, A))) == [("https://a.example/d/e/x", "a")]
    assert listed(resolved((raw, A), ("java\nscript:x", A), (" #x", A))) == [("https://a.example/d/e/x", "a")]


def test_a_query_alone_means_the_page_that_holds_it():
    memory = Outlinks()
    pages = ("https://a.example/d/one", "https://a.example/d/two")
    found = [listed(resolved(("?n", A), ("#top", A), base=page, with_memory=memory)) for page in pages]
    assert found == [[(page + "?n", "a")] for page in pages]


def test_the_url_of_a_redirect_is_what_the_parser_says():
    memory = Outlinks()
    target, found = memory.redirect(BASE, "../x#y", REDIRECT)
    assert target == "https://a.example/d/x"
    assert found.entries == packed_links([(target, REDIRECT)])
    assert listed(found) == [(target, "redirect")]
    assert found.news == ((url_key(target), target),)
    for nowhere in ("mailto:x", "http://[", ""):
        assert memory.redirect(BASE, nowhere, REDIRECT) == ("", NOTHING)


SESSION = "PHPSESSID=0123456789abcdef0123456789abcdef"


def test_routes_are_pages_of_their_own():
    routes = ["https://a.example/#/b", "https://a.example/#/c"]
    found = Outlinks().routes([*routes, routes[0], "https://a.example/#/" + "x" * 9000])
    assert listed(found) == [(url, "fragment-route") for url in routes]
    assert found.news == tuple((url_key(url), url) for url in routes)
    assert found.entries == b"".join(url_key(url) + bytes([FoundAs.FRAGMENT_ROUTE]) for url in routes)
    target, led = Outlinks().redirect(BASE, "/to", REDIRECT, "#/b")
    assert (target, led.news) == ("https://a.example/to#/b", ((url_key(target), target),))


def test_a_page_has_one_key_in_every_session():
    found = resolved((f"x?{SESSION}", A), (f"x?{SESSION[:-1]}0", A), ("x", A))
    assert len(listed(found)) == 3
    assert {key for key, _ in found.news} == {url_key("https://a.example/d/e/x")}


def test_a_redirect_to_itself_with_a_session_is_another_page():
    memory, page = Outlinks(), "https://a.example/d/e/x"
    target, found = memory.redirect(page, f"x?{SESSION}", REDIRECT)
    assert found.news == ((url_key(target), target),)
    target, found = memory.redirect(page, f"y?{SESSION}", REDIRECT)
    assert found.news == ((url_key("https://a.example/d/e/y"), target),)


def test_memory_is_bounded_and_forgetting_changes_nothing():
    memory = Outlinks()
    for n in range(900):
        resolved(*((f"/{n}/{k}", A) for k in range(300)), base=f"https://h{n}.example/", with_memory=memory)
    assert memory._remembered < 300_000
    found = resolved(("/0/0", A), base="https://h0.example/", with_memory=memory)
    assert listed(found) == [("https://h0.example/0/0", "a")]
    assert [url for _, url in found.news] == ["https://h0.example/0/0"]


def test_a_megabyte_of_a_link_on_many_pages_is_told_once_and_in_short():
    memory, long = Outlinks(), "/x" * 500_000
    pages = [resolved((long, A), (f"{long}#f", A), with_memory=memory) for _ in range(20)]
    told = [one for page in pages for one in page.news]
    assert told == [(url_key(f"https://a.example{long}"), f"https://a.example{long}"[:500] + "\u2026(1000017)")]
    assert {len(page.lines) for page in pages} == {len(pages[0].lines)}
    assert len(pages[0].lines) < 600
    assert {page.entries for page in pages} == {packed_links([(f"https://a.example{long}", A)])}


def test_many_megabytes_of_links_are_not_remembered():
    memory = Outlinks()
    tracemalloc.start()
    for number in range(100):
        resolved((f"/{number}/{'x' * 1_000_000}", A), with_memory=memory)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 1_000_000


def test_a_redirect_to_a_url_that_is_too_long_is_told_in_short():
    target, found = Outlinks().redirect(BASE, "/" + "x" * 9_000, REDIRECT)
    assert len(target) == 9_018
    assert found.news == ((url_key(target), target[:500] + "\u2026(9018)"),)
