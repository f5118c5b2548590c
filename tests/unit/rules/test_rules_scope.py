"""Scope: every kind of relation from every standing, as the contract has it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.model.link import FoundAs, Kind
from muniment.rules.scope import FAR, MAX_REQUISITE_HOPS, Scope, Standing, on_site, site_paths, start_prefix, urgency

LINK, REQUISITE, FRAME, REDIRECT = FoundAs.A, FoundAs.IMG, FoundAs.IFRAME, FoundAs.REDIRECT
LISTED = FoundAs.SITEMAP_URL


def scope(*, level=None, page_only=False, offsite_links=True, max_redirects=20):
    return Scope(level, page_only, offsite_links, max_redirects)


def standing(link=FAR, requisite=FAR, *, site=True, included=True, redirects=0):
    return Standing(link, requisite, site, included, redirects)


def offered(where, how, rules=None):
    offers = (rules or scope()).offers(where)
    return offers.link[how], offers.requisite[how]


START, PAGE, OFFSITE = standing(0), standing(3), standing(1, site=False)
REQUIRED, BOTH = standing(requisite=2), standing(2, 1)


@pytest.mark.parametrize(
    ("where", "how", "link", "requisite"),
    [
        (START, LINK, 1, FAR),
        (START, REQUISITE, FAR, 1),
        (START, FRAME, 1, 1),
        (START, REDIRECT, 0, FAR),
        (PAGE, LINK, 4, FAR),
        (PAGE, REQUISITE, FAR, 1),
        (PAGE, FRAME, 4, 1),
        (PAGE, REDIRECT, 3, FAR),
        (OFFSITE, LINK, FAR, FAR),
        (OFFSITE, REQUISITE, FAR, 1),
        (OFFSITE, FRAME, FAR, 1),
        (OFFSITE, REDIRECT, 1, FAR),
        (REQUIRED, LINK, FAR, FAR),
        (REQUIRED, REQUISITE, FAR, 3),
        (REQUIRED, FRAME, FAR, 3),
        (REQUIRED, REDIRECT, FAR, 2),
        (BOTH, LINK, 3, FAR),
        (BOTH, REQUISITE, FAR, 1),
        (BOTH, FRAME, 3, 1),
        (BOTH, REDIRECT, 2, 1),
        (standing(0, site=False), LINK, FAR, FAR),
        (REQUIRED, LISTED, 1, FAR),
        (BOTH, LISTED, 1, FAR),
        (standing(), LINK, FAR, FAR),
        (standing(), REQUISITE, FAR, FAR),
        (standing(), REDIRECT, FAR, FAR),
    ],
)
def test_what_a_page_offers(where, how, link, requisite):
    assert offered(where, how) == (link, requisite)


@pytest.mark.parametrize("how", [LINK, FRAME, LISTED])
def test_page_only_offers_no_links(how):
    assert offered(START, how, scope(page_only=True))[0] == FAR


def test_page_only_offers_requisites_and_redirects():
    rules = scope(page_only=True)
    assert offered(START, REQUISITE, rules) == (FAR, 1)
    assert offered(START, REDIRECT, rules) == (0, FAR)


def test_a_page_beyond_the_level_offers_nothing_as_page():
    assert offered(standing(3), LINK, scope(level=2)) == (FAR, FAR)
    assert offered(standing(3, 1), REQUISITE, scope(level=2)) == (FAR, 2)
    assert offered(standing(2), LINK, scope(level=2)) == (3, FAR)


def test_a_page_that_is_not_included_offers_no_links_and_stays_a_requisite():
    assert offered(standing(2, 1, included=False), LINK) == (FAR, FAR)
    assert offered(standing(2, 1, included=False), REQUISITE) == (FAR, 2)


def test_redirects_count_and_end():
    rules = scope(max_redirects=2)
    assert rules.offers(standing(1, redirects=1)).redirects == 2
    assert offered(standing(1, redirects=1), REDIRECT, rules) == (1, FAR)
    assert offered(standing(1, 1, redirects=2), REDIRECT, rules) == (FAR, FAR)
    assert offered(standing(1, redirects=2), LINK, rules) == (2, FAR)


@pytest.mark.parametrize(
    ("where", "rules", "admitted"),
    [
        (START, scope(), True),
        (standing(0, site=False), scope(offsite_links=False), True),
        (standing(0, included=False), scope(), True),
        (standing(0), scope(level=0), True),
        (standing(1), scope(level=0), False),
        (standing(1), scope(level=1), True),
        (standing(2), scope(level=1), False),
        (OFFSITE, scope(), True),
        (OFFSITE, scope(offsite_links=False), False),
        (standing(1, included=False), scope(), False),
        (standing(requisite=MAX_REQUISITE_HOPS, site=False), scope(offsite_links=False), True),
        (standing(requisite=MAX_REQUISITE_HOPS + 1), scope(), False),
        (standing(requisite=1, included=False), scope(level=0, page_only=True), True),
        (standing(9, 5), scope(level=1), True),
        (standing(), scope(), False),
    ],
)
def test_admission(where, rules, admitted):
    assert rules.admits(where) is admitted


@pytest.mark.parametrize(
    ("site", "page_only", "follows"), [(True, False, True), (False, False, False), (True, True, False)]
)
def test_only_pages_of_the_site_are_followed(site, page_only, follows):
    assert scope(page_only=page_only).follows(site) is follows


def test_every_way_of_finding_has_a_kind_and_offers_as_its_kind():
    like = {
        Kind.LINK: LINK, Kind.REQUISITE: REQUISITE, Kind.FRAME: FRAME, Kind.REDIRECT: REDIRECT, Kind.LISTED: LISTED,
    }  # fmt: skip
    others = [one for one in FoundAs if offered(BOTH, one) != offered(BOTH, like[one.kind])]
    assert others == [FoundAs.START_LINE]  # which is as near as a start URL
    assert offered(START, FoundAs.START_LINE, scope(page_only=True)) == (0, FAR)


@pytest.mark.parametrize(
    "found_as", ["img", "script", "iframe", "frame", "object", "embed", "stylesheet", "icon", "preload", "manifest",
                 "video", "audio", "css-url", "css-import"],
)  # fmt: skip
def test_requisites_of_the_contract(found_as):
    kind = next(f for f in FoundAs if f.label == found_as).kind
    assert kind in {Kind.REQUISITE, Kind.FRAME}


hops = st.integers(0, 9) | st.just(FAR)
standings = st.builds(standing, hops, hops, site=st.booleans(), included=st.booleans(), redirects=st.integers(0, 3))
scopes = st.builds(
    scope,
    level=st.none() | st.integers(0, 5),
    page_only=st.booleans(),
    offsite_links=st.booleans(),
    max_redirects=st.integers(0, 3),
)


@given(scopes, standings, hops, hops, st.sampled_from(FoundAs))
def test_a_page_that_comes_nearer_never_offers_less(rules, where, link, requisite, how):
    """What makes the order of pages irrelevant."""
    nearer = Standing(
        min(link, where.link_hops), min(requisite, where.requisite_hops), where.on_site, where.included, where.redirects
    )
    before, after = offered(where, how, rules), offered(nearer, how, rules)
    assert rules.admits(nearer) >= rules.admits(where)
    assert after[0] <= before[0]
    assert after[1] <= before[1]


@given(scopes, st.integers(FAR - 3, FAR), st.integers(FAR - 3, FAR), st.sampled_from(FoundAs))
def test_hops_saturate_below_far(rules, link, requisite, how):
    assert all(0 <= hops <= FAR for hops in offered(standing(link, requisite), how, rules))


@pytest.mark.parametrize(
    ("url", "no_parent", "prefix"),
    [
        ("https://a.example/docs/index.html", False, "/"),
        ("https://a.example/docs/index.html", True, "/docs/"),
        ("https://a.example/docs/", True, "/docs/"),
        ("https://a.example/docs", True, "/"),
        ("https://a.example/", True, "/"),
        ("https://a.example/d/x?p=/a/b/", True, "/d/"),
    ],
)
def test_start_prefix(url, no_parent, prefix):
    assert start_prefix(url, no_parent) == prefix


@pytest.mark.parametrize(
    ("path", "prefixes", "inside"),
    [
        ("/x", "", False),
        ("/x", "/", True),
        ("/docs/a", "/docs/", True),
        ("/docs", "/docs/", False),
        ("/docsx/a", "/docs/", False),
        ("/wiki/a", "/docs/\n/wiki/", True),
        ("/?/docs/", "/docs/", False),
    ],
)
def test_on_site(path, prefixes, inside):
    assert on_site("https://a.example:8443" + path, prefixes) is inside


@pytest.mark.parametrize(
    ("prefixes", "paths"),
    [((), ""), (("/a/",), "/a/"), (("/a/", "/b/", "/a/"), "/a/\n/b/"), (("/a/", "/", "/b/"), "/"), (("/", "/"), "/")],
)
def test_the_prefixes_of_a_host_are_kept_once_and_the_whole_host_alone(prefixes, paths):
    assert site_paths(prefixes) == paths


def test_requisites_are_urgent_within_their_hops_but_no_lists_for_robots():
    for found_as in FoundAs:
        listed = found_as in {FoundAs.SITEMAP, FoundAs.ROBOTS}
        found = [urgency(hops, found_as.value) for hops in (1, MAX_REQUISITE_HOPS, MAX_REQUISITE_HOPS + 1, FAR)]
        assert found == ([0, 0, 0, 0] if listed else [1, 1, 0, 0]), found_as
