"""The pages of what waits and what was kept: queue, hosts, the effect of a pattern, results."""

from __future__ import annotations

from starlette.responses import Response

from muniment.clock import now_ms
from muniment.model.network.captures import PageArtifacts
from muniment.web.pages.job_pages import ignores_page
from muniment.web.pages.site import PageVisit

__all__ = ["hosts", "queue", "results", "try_ignore"]

_HOSTS = 100


async def queue(visit: PageVisit) -> Response:
    """What is in flight and what comes next."""
    number, pattern = visit.job, visit.given("q")
    card = await visit.site.ask(lambda backend: backend.card(number))
    found = await visit.site.ask(lambda backend: backend.queue(number, pattern))
    return visit.page("queue.html", job=card, rows=found.rows, found=found.found, q=pattern)


async def hosts(visit: PageVisit) -> Response:
    """How each host stands."""
    number, after = visit.job, visit.given("after")
    card = await visit.site.ask(lambda backend: backend.card(number))
    rows = await visit.site.ask(lambda backend: backend.hosts(number, after, _HOSTS))
    names = [one.name for one in rows]
    done = await visit.site.ask(lambda backend: backend.host_sums(number, names))
    following = rows[-1].name if len(rows) == _HOSTS else ""
    return visit.page("hosts.html", job=card, rows=rows, done=done, next=following, now=now_ms())


async def try_ignore(visit: PageVisit) -> Response:
    """What a pattern would take; nothing changes."""
    number, pattern = visit.job, visit.given("pattern")
    card = await visit.site.ask(lambda backend: backend.card(number))
    patterns = await visit.site.ask(lambda backend: backend.ignores(number))
    effect = await visit.site.ask(lambda backend: backend.ignore_effect(number, pattern))
    return ignores_page(visit, card, patterns, pattern, effect)


async def results(visit: PageVisit) -> Response:
    """What the attempts at a URL saved."""
    number, url = visit.job, visit.given("url").strip()
    card = await visit.site.ask(lambda backend: backend.card(number))
    found = await visit.site.ask(lambda backend: backend.results(number, url)) if url else []
    told = [(one, bytes(one.value).decode("utf-8", "replace")) for one in found]
    pages = (await visit.site.ask(lambda backend: backend.pages(number, url))).pages if url else []
    made = await visit.site.look(lambda source: source.made(number, pages[0].url)) if pages else PageArtifacts()
    places = {one.kind: {"file": one.warc_file, "offset": str(one.warc_offset)} for one in made.records}
    return visit.page("results.html", job=card, url=url, results=told, pages=pages, made=made, places=places)
