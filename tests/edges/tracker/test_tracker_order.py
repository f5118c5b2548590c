"""The order in which pages are finished changes nothing: the same scope and the same hops as a plain search."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tracker_harness import IFRAME, IMG, REDIRECT, A, Tracker, Web, site

from muniment.model.link import Kind
from muniment.model.place import TrackerPlace
from muniment.model.url import host_of
from muniment.rules.scope import FAR, MAX_REQUISITE_HOPS

HOSTS = ("a.example", "b.example", "c.example")
SCOPES = ({}, {"level": 1}, {"level": 3}, {"offsite_links": False}, {"page_only": True}, {"level": 0})


def expected(
    web: Web, starts: Sequence[str], *, level=None, offsite_links=True, page_only=False
) -> dict[str, tuple[int, int]]:
    """The pages in scope with their fewest hops, by walking the relations until nothing gets nearer."""
    link, requisite, hosts = dict.fromkeys(starts, 0), {}, {host_of(url) for url in starts}

    def as_page(url: str) -> bool:
        hops = link.get(url, FAR)
        near = hops < FAR and (level is None or hops <= level)
        return hops == 0 or (near and (offsite_links or host_of(url) in hosts))

    def captured(url: str) -> bool:
        return as_page(url) or requisite.get(url, FAR) <= MAX_REQUISITE_HOPS

    def offer(table: dict[str, int], url: str, hops: int) -> bool:
        if hops >= table.get(url, FAR):
            return False
        table[url] = hops
        return True

    def tell(parent: str, child: str, kind: Kind) -> bool:
        page, changed = as_page(parent), False
        if kind is Kind.REDIRECT:
            if link.get(parent) == 0 and host_of(child) not in hosts:
                hosts.add(host_of(child))
                changed = True
            changed |= page and offer(link, child, link[parent])
            return changed | offer(requisite, child, requisite.get(parent, FAR))
        if kind in {Kind.LINK, Kind.FRAME} and page and host_of(parent) in hosts and not page_only:
            changed |= offer(link, child, link[parent] + 1)
        if kind in {Kind.REQUISITE, Kind.FRAME}:
            changed |= offer(requisite, child, 1 if page else requisite[parent] + 1)
        return changed

    def walk() -> bool:
        told = [(p, child, how.kind) for p, links in web.items() if captured(p) for child, how in links]
        return sum(tell(*one) for one in told) > 0

    while walk():
        pass
    known = {*link, *requisite}
    return {url: (link.get(url, FAR), requisite.get(url, FAR)) for url in known if captured(url)}


class Driver:
    """Finishes a web's pages in an order drawn from a seed: claims, batches, retries, give-backs and restarts."""

    def __init__(self, tracker: Tracker, web: Web, seed: int, most: int) -> None:
        self.tracker, self.web, self.draw, self.most = tracker, web, random.Random(seed), most
        self.held = []
        self.steps = 0

    def run(self) -> None:
        while self.held or self.tracker.frontier.pending() or self.tracker.frontier.updating_depths:
            self.steps += 1
            assert self.steps < 500, "the crawl does not end"
            self.step()

    def step(self) -> None:
        frontier = self.tracker.frontier
        deed = self.draw.randrange(30)
        if deed == 0:
            self.tracker.reopen()
            self.held.clear()
        elif deed == 1 and self.held:
            page = self.held.pop(self.draw.randrange(len(self.held)))
            frontier.release([(page.page_id, page.claim_id)])
        elif deed == 2 and self.held and not self.held[0].last_try:
            self.tracker.finish(self.held.pop(0), status=503, done=False)
        elif deed < 14:
            hosts = sorted(frontier.pending())
            if hosts:
                self.held += frontier.claim([(self.draw.choice(hosts), self.draw.randrange(1, 4))], 0).claims
        elif deed == 14:
            frontier.update_depths()
        elif self.held:
            self.draw.shuffle(self.held)
            size = self.draw.randrange(1, self.most + 1)
            batch, self.held = self.held[:size], self.held[size:]
            self.tracker.finish(batch, self.web)


@st.composite
def webs(draw, *, start_redirects: bool):
    """A web of at most eight pages on three hosts, of which the first one or two are start pages."""
    urls = [site(str(n), draw(st.sampled_from(HOSTS))) for n in range(draw(st.integers(2, 8)))]
    starts = urls[: draw(st.integers(1, 2))]
    kinds = st.lists(st.tuples(st.sampled_from(urls), st.sampled_from([A, IMG, IFRAME])), max_size=4, unique=True)
    web = {}
    for url in urls:
        redirects = draw(st.integers(0, 4)) == 0 and (start_redirects or url not in starts)
        web[url] = [(draw(st.sampled_from(urls)), REDIRECT)] if redirects else draw(kinds)
    return starts, web


def assert_order_does_not_matter(case, scope, seed: int, most: int) -> None:
    starts, web = case
    with tempfile.TemporaryDirectory() as directory:
        tracker = Tracker(TrackerPlace(Path(directory)), *starts, **scope)
        try:
            Driver(tracker, web, seed, most).run()
            found = tracker.standings()
            done = tracker.sums()
        finally:
            tracker.close()
    assert found == expected(web, starts, **scope)
    assert done[0] + done[3] >= len(found)


# shrinking runs hundreds of crawls; a failure here is printed as found, and gets a small test of its own below
ORDERS = settings(
    deadline=None,
    max_examples=40,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
SEEDS = st.integers(0, 1 << 32)


@ORDERS
@given(webs(start_redirects=False), st.sampled_from(SCOPES), SEEDS)
def test_one_page_at_a_time(case, scope, seed):
    assert_order_does_not_matter(case, scope, seed, most=1)


@ORDERS
@given(webs(start_redirects=False), st.sampled_from(SCOPES), SEEDS)
def test_in_batches(case, scope, seed):
    assert_order_does_not_matter(case, scope, seed, most=4)


@ORDERS
@given(webs(start_redirects=True), st.sampled_from(SCOPES), SEEDS)
def test_while_the_site_grows(case, scope, seed):
    assert_order_does_not_matter(case, scope, seed, most=1)


@ORDERS
@given(webs(start_redirects=True), st.sampled_from(SCOPES), SEEDS)
def test_in_batches_while_the_site_grows(case, scope, seed):
    assert_order_does_not_matter(case, scope, seed, most=4)


def test_a_page_that_comes_nearer_in_the_batch_that_finishes_it_tells_its_children(tracker):
    """Both were out together: `near` leads to `page`, which was known by a longer way."""
    start, far, near, page, child = (site(name) for name in ("", "far", "near", "page", "child"))
    web = {start: [(far, A), (near, A)], far: [(site("farther"), A)], site("farther"): [(page, A)], near: [(page, A)]}
    web[page] = [(child, A)]
    job = tracker(start)
    job.finish(job.take(start), web)
    job.finish(job.take(far), web)
    job.finish(job.take(site("farther")), web)
    job.finish(sorted(job.claim(), key=lambda claim: claim.url), web)
    job.frontier.update_depths()
    assert job.hops(page) == (2, FAR)
    assert job.hops(child) == (3, FAR)


def test_a_page_finished_in_the_batch_that_makes_its_host_the_site_is_followed(tracker):
    """Start page `moved` redirects to b.example while b.example/x, found as an offsite page, is out too."""
    start, moved, home, x = site(""), site("moved"), site("", "b.example"), site("x", "b.example")
    web = {start: [(x, A)], moved: [(home, REDIRECT)], x: [(site("y", "b.example"), A)]}
    job = tracker(start, moved)
    job.finish(job.take(start), web)
    job.finish(job.claim(), web)
    job.crawl(web)
    assert job.standings() == expected(web, (start, moved))


def test_a_requisite_captured_offsite_and_linked_after_its_host_became_the_site_is_followed(tracker):
    """Contract: seen first as requisite and later as a page of the site, it is then followed."""
    start, moved, home, frame = site(""), site("moved"), site("", "b.example"), site("frame.html", "b.example")
    web = {start: [(frame, IMG)], moved: [(home, REDIRECT)], home: [(frame, A)], frame: [(site("y", "b.example"), A)]}
    job = tracker(start, moved)
    job.finish(job.take(start), web)
    job.finish(job.take(frame), web)
    job.crawl(web)
    assert job.standings() == expected(web, (start, moved))


def test_a_redirect_chain_ends_after_max_redirects(tracker):
    web = {site(str(n)): [(site(str(n + 1)), REDIRECT)] for n in range(6)}
    job = tracker(site("0"), max_redirects=3)
    job.crawl(web)
    assert sorted(job.standings()) == [site(str(n)) for n in range(4)]
