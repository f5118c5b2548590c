"""Harvest: redirects, links, content codings, and which tries are the last."""

from __future__ import annotations

import gzip
import hashlib
import zlib

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.exchanges import exchange
from tests.support.pages import claim

from muniment.archive.warc.records import outlink_line
from muniment.crawl.pages import Refusal
from muniment.crawl.worker.evaluate import ReadPolicy, evaluate, finished, refused
from muniment.crawl.worker.outlinks import Outlinks
from muniment.extract.link_collector import MOST_LINKS
from muniment.model.capture import EarlierCapture
from muniment.model.failure import Failure
from muniment.model.link import FoundAs
from muniment.model.seed import Prior

URL = "https://site.example/d/page"
HTML = (("Content-Type", "text/html"),)
BODY = b'<a href="next">n</a><img src=/i.png>'
NEXT, IMAGE = ("https://site.example/d/next", "a"), ("https://site.example/i.png", "img")


def harvested(body=BODY, *, status="200 OK", headers=HTML, failure=None, no_head=False, url=URL, **page):
    made = exchange(url, body, status_line=f"HTTP/1.1 {status}", headers=headers, failure=failure, no_head=no_head)
    return evaluate(claim(url, **page), made, Outlinks(), ReadPolicy(3))


def lines(*links):
    return b"".join(outlink_line(url, label) for url, label in links)


def told(page):
    return finished(page, payload=b"", record_id=b"")


def test_links_of_a_page():
    page = harvested()
    assert page.done
    assert page.context.outlinks == lines(IMAGE, NEXT)
    assert page.found.entries


def test_links_are_looked_for_in_the_first_32_mib():
    assert harvested(BODY + b" " * (32 << 20)).context.outlinks == lines(IMAGE, NEXT)
    assert harvested(b" " * (32 << 20) + BODY).context.outlinks == b""


@pytest.mark.parametrize("store", [False, True])
def test_what_its_seed_line_knows_need_not_be_stored(store):
    known = claim(URL, prior=Prior(hashlib.sha1(BODY).hexdigest(), '"a"', "", 5))
    page = evaluate(known, exchange(URL, BODY), Outlinks(), ReadPolicy(3, store_unchanged=store))
    assert page.unchanged
    assert page.earlier == (None if store else EarlierCapture(URL, 5))
    assert bool(ReadPolicy(3, store_unchanged=store).conditions(known)) is not store
    other = evaluate(known, exchange(URL, b"other"), Outlinks(), ReadPolicy(3, store_unchanged=store))
    assert (other.unchanged, other.earlier) == (False, None)


def test_a_304_to_a_request_without_conditions_is_an_answer():
    known = claim(URL, prior=Prior(etag='"a"'))
    for store in (False, True):
        answer = exchange(URL, b"", status_line="HTTP/1.1 304 Not Modified")
        page = evaluate(known, answer, Outlinks(), ReadPolicy(3, store_unchanged=store))
        assert page.unchanged is not store


def test_links_beyond_the_limit_are_counted_where_they_would_be_followed():
    many = b"".join(b"<a href=%d>" % number for number in range(MOST_LINKS + 7))
    page = harvested(many)
    assert (page.found.dropped, told(page).dropped) == (7, 7)
    assert harvested(many, follow=False).found.dropped == 0
    assert harvested(BODY).found.dropped == 0
    answer = exchange(URL, many, headers=(*HTML, ("X-Robots-Tag", "noarchive")))
    unkept = evaluate(claim(URL), answer, Outlinks(), ReadPolicy(3, heard=frozenset({"noarchive"})))
    assert isinstance(unkept, Refusal)
    assert refused(unkept).dropped == 7


def test_lines_of_a_sitemap_beyond_the_limit_are_counted():
    many = b"".join(b"https://site.example/%d\n" % number for number in range(MOST_LINKS + 7))
    answer = exchange(URL, many, headers=(("Content-Type", "text/plain"),))
    page = evaluate(claim(URL, found_as=FoundAs.SITEMAP), answer, Outlinks(), ReadPolicy(3, listed=True))
    assert told(page).dropped == 7


def headed(*headers, body=BODY, **page):
    return harvested(body, headers=(*HTML, *headers), **page)


def test_headers_lead_on_from_the_page_whatever_its_base():
    page = headed(("Link", "<next2>; rel=next"), ("Refresh", "3; url=soon"), body=b"<base href=/b/><img src=i.png>")
    urls = [line.split()[1] for line in page.context.outlinks.decode().splitlines()]
    assert urls == [f"https://site.example/{path}" for path in ("d/next2", "d/soon", "b/i.png")]


@pytest.mark.parametrize("href", ["", "#f", "javascript:x", "http://["])
def test_headers_that_lead_nowhere(href):
    assert headed(("Link", f"<{href}>"), ("Refresh", f"3; url={href}"), body=b"x").context.outlinks == b""


def test_headers_count_without_a_document_too():
    page = harvested(b"PNG", headers=(("Content-Type", "image/png"), ("Link", "</s.css>; rel=stylesheet")))
    assert page.context.outlinks == b"outlink: https://site.example/s.css stylesheet\r\n"


def test_what_comes_beside_the_links_is_told_first_and_to_all():
    made = exchange(URL, BODY, headers=HTML)
    sitemap = ("https://site.example/sitemap.xml", FoundAs.SITEMAP)
    page = evaluate(claim(URL, follow=False), made, Outlinks(), ReadPolicy(3), [sitemap])
    assert page.found.entries[16] == FoundAs.SITEMAP
    assert page.context.outlinks.startswith(b"outlink: https://site.example/sitemap.xml sitemap\r\n")


@pytest.mark.parametrize("found_as", [FoundAs.SITEMAP, FoundAs.ROBOTS])
def test_a_sitemap_that_moved_is_read_where_it_is(found_as):
    page = headed(("Location", "/to"), status="301 Moved", found_as=found_as)
    assert page.context.redirect_to == "https://site.example/to"
    assert page.found.entries[16] == found_as


ASKS = (("X-Robots-Tag", "noarchive, nofollow"),)


@pytest.mark.parametrize("heard", [(), ("nofollow",), ("noarchive",), ("nofollow", "noarchive")])
@pytest.mark.parametrize("status", ["200 OK", "503 Busy", "302 Found"])
def test_directives_are_obeyed_as_far_as_asked_for(heard, status):
    made = exchange(URL, BODY, status_line=f"HTTP/1.1 {status}", headers=(*HTML, *ASKS, ("Location", "/to")))
    page = evaluate(claim(URL), made, Outlinks(), ReadPolicy(3, heard=frozenset(heard)))
    assert isinstance(page, Refusal) == ("noarchive" in heard)
    kinds = {FoundAs(entry) for entry in page.found.entries[16::17]}
    followed = {FoundAs.IMG} if "nofollow" in heard else {FoundAs.IMG, FoundAs.A}
    assert kinds == {"200 OK": followed, "503 Busy": set(), "302 Found": {FoundAs.REDIRECT}}[status]
    if isinstance(page, Refusal):
        done = refused(page)
        assert (done.outlinks, done.done) == (page.found.entries, status != "503 Busy")
        assert done.refused == ("" if status == "503 Busy" else page.reason)


def test_a_page_that_is_not_followed_lists_all_and_tells_requisites():
    page = harvested(follow=False)
    assert page.context.outlinks == lines(IMAGE, NEXT)
    assert len(page.found.entries) == 17
    assert not told(page).followed


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See", "307 T", "308 P"])
def test_a_redirect_leads_to_its_location_alone(status):
    page = harvested(status=status, headers=(*HTML, ("Location", "../to#x")))
    assert page.context.redirect_to == "https://site.example/to"
    assert page.context.outlinks == lines(("https://site.example/to", "redirect"))


@pytest.mark.parametrize("status", ["200 OK", "201 Created", "300 Choices", "304 Same", "404 Not Found"])
def test_a_location_of_another_status_is_no_redirect(status):
    page = harvested(status=status, headers=(*HTML, ("Location", "/to")))
    assert page.context.redirect_to == ""


@pytest.mark.parametrize("location", ["", "mailto:x@a.example", "http://[", "javascript:1"])
def test_a_redirect_that_leads_nowhere_gives_the_links_of_its_body(location):
    page = harvested(status="302 Found", headers=(*HTML, ("Location", location)))
    assert page.context.redirect_to == ""
    assert page.context.outlinks == lines(IMAGE, NEXT)


@pytest.mark.parametrize(
    ("raw", "path"),
    [("/ü".encode(), "/%C3%BC"), ("/ü".encode("latin-1"), "/%C3%BC"), (b"/%C3%BC", "/%C3%BC"), (b"/a b", "/a%20b")],
)
def test_a_location_in_utf8_or_latin1(raw, path):
    page = harvested(status="302 Found", headers=(("Location", raw.decode("latin-1")),))
    assert page.context.redirect_to == "https://site.example" + path


def test_an_offsite_page_tells_its_redirect():
    page = harvested(status="302 Found", headers=(("Location", "/to"),), follow=False)
    assert list(page.found.entries[16::17]) == [FoundAs.REDIRECT]


CODINGS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "GZIP": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "identity": bytes,
}


@pytest.mark.parametrize("coding", CODINGS)
def test_links_of_a_coded_body(coding):
    page = harvested(CODINGS[coding](BODY), headers=(*HTML, ("Content-Encoding", coding)))
    assert page.context.outlinks == lines(IMAGE, NEXT)


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate", "zstd", "nobody-knows", "gzip, gzip"])
@pytest.mark.parametrize("body", [b"", b"\x1f\x8b", b"nonsense" * 10, gzip.compress(BODY)[:-9]])
def test_a_body_that_is_not_what_its_coding_says_ends_no_crawl(coding, body):
    assert harvested(body, headers=(*HTML, ("Content-Encoding", coding))).done


@pytest.mark.parametrize("kind", ["image/png", "video/mp4", "audio/mpeg", "font/woff2"])
def test_what_cannot_hold_links_is_not_searched(kind):
    assert harvested(headers=(("Content-Type", kind),)).context.outlinks == b""


def test_a_base_that_is_no_web_address_is_not_used():
    page = harvested(b"<base href='mailto:x'><a href=next>n</a>")
    assert page.context.outlinks == lines(NEXT)


def test_a_base_of_the_page_counts():
    page = harvested(b"<base href=/b/><a href=next>n</a>")
    assert page.context.outlinks == lines(("https://site.example/b/next", "a"))


@pytest.mark.parametrize(
    ("status", "again"), [("503 Busy", True), ("429 Slow", True), ("404 No", False), ("501 No", False)]
)
def test_statuses_that_are_tried_again(status, again):
    assert harvested(status=status).done is not again
    assert harvested(status=status, last_try=True).done


def test_links_are_taken_from_the_last_try_only():
    assert harvested(status="503 Busy").context.outlinks == b""
    assert harvested(status="503 Busy").found.entries == b""
    assert harvested(status="503 Busy", last_try=True).context.outlinks == lines(IMAGE, NEXT)


@pytest.mark.parametrize(("code", "again"), [("reset", True), ("cut", True), ("protocol", True), ("too-large", False)])
def test_failures_that_are_tried_again(code, again):
    failure = Failure(code, "why")
    assert harvested(b"", failure=failure, no_head=True).done is not again
    assert harvested(b"", failure=failure, no_head=True, last_try=True).done


def test_a_cut_page_gives_the_links_it_has_with_its_last_try():
    page = harvested(failure=Failure("cut", "short"), last_try=True)
    assert page.context.outlinks == lines(IMAGE, NEXT)
    assert told(page).error == "cut: short"


def test_what_the_tracker_is_told():
    page = harvested(attempt=2, depth=3, page_id=9, claim_id=8)
    result = told(page)
    assert (result.page_id, result.claim_id, result.attempt, result.status) == (9, 8, 2, 200)
    assert (result.error, result.done, result.retry_after_ms, result.body_length) == ("", True, 0, len(BODY))
    assert result.finished_at == page.exchange.started_at // 1000 + page.exchange.duration_ms
    assert (result.outlinks, result.followed) == (page.found.entries, True)


def test_a_try_that_is_not_the_last_waits():
    result = told(harvested(status="503 Busy"))
    assert not result.done
    assert result.retry_after_ms > 0
    assert result.outlinks == b""


def test_the_length_of_a_304_is_nothing():
    assert told(harvested(status="304 Same")).body_length == 0


@given(st.binary(max_size=60), st.text(max_size=12), st.sampled_from(["200 OK", "302 Found"]))
def test_no_body_and_no_header_ends_a_crawl(body, value, status):
    value = value.encode("utf-8", "ignore").decode("latin-1")
    headers = (("Content-Type", value), ("Content-Encoding", value), ("Location", value))
    assert harvested(body, status=status, headers=headers).done
