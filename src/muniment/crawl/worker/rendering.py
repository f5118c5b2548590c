"""What a rendered page leaves: its records, its results and its links. No waits, no files."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

import msgspec
from msgspec import structs

from muniment.browser.faults import BrowserError
from muniment.browser.rendered import RenderedPage
from muniment.clock import iso_us, new_record_urn
from muniment.crawl.pages import NOTHING, Evaluation, ResolvedLinks
from muniment.crawl.worker.evaluate import ReadPolicy, retry_wait
from muniment.crawl.worker.outlinks import Outlinks
from muniment.extract.media_type import media_type
from muniment.model.exchange import RequestEnded
from muniment.model.failure import Failure, failure_of
from muniment.model.link import FoundAs, Kind
from muniment.model.page import LINK_ENTRY, Claim
from muniment.model.result import PageResource, Result, ResultKind, ResultStatus
from muniment.model.url import MOST_URL, normalise, normalise_page, route_of, url_key, without_route
from muniment.rules.rendering.needs_browser import is_document
from muniment.rules.retry import is_last, retryable

__all__ = ["lost_page", "rendered_page"]

_PNG, _JPEG = "image/png", "image/jpeg"
_PICTURES = {"view": _PNG, "thumbnail": _JPEG, "fullPage": _PNG, "customJs": _PNG}
_NAMES = {"fullPage": "full"}
_FOUND = {found_as.label: found_as for found_as in FoundAs}
_PART = 206
_SHOWN = frozenset({"stylesheet", "image", "media", "font", "script", "texttrack"})
"""The types of requests for what a page is shown with."""
_LEADS = frozenset({"a", "area", "form"})
_MOST_LISTED = 10_000
"""Links and requests that a result names."""


def rendered_page(
    page: Evaluation, rendered: RenderedPage, page_id: str, outlinks: Outlinks, policy: ReadPolicy
) -> Evaluation:
    """A page with what a browser made of it."""
    resources = list(_resources(page, rendered, page_id))
    results = (*page.results, *_results(page, rendered, resources))
    found = page.found if policy.listed else _links(page.claim, page.found, rendered, outlinks)
    made = structs.replace(
        _of_browser(page, page_id), found=found, resources=tuple(resources), results=_latest(results)
    )
    made = structs.replace(made, context=structs.replace(made.context, outlinks=found.lines))
    script = rendered.script
    if script is not None and not script.done:
        return _failed(made, Failure("browser", f"custom_js: {msgspec.json.decode(script.value)}"), policy)
    return made


def lost_page(page: Evaluation, fault: BrowserError, page_id: str, policy: ReadPolicy, url: str) -> Evaluation:
    """A page over which a browser was lost at a URL: its exchanges are recorded, and what it asked for is listed."""
    lost = RenderedPage(state="failed", url=url, final_url=url, chains=fault.chains)
    made = structs.replace(_of_browser(page, page_id), resources=(_info_resource(page, lost, page_id),))
    return _failed(made, Failure("browser", fault.kind), policy)


def _failed(page: Evaluation, failure: Failure, policy: ReadPolicy) -> Evaluation:
    """It is tried again where that may help, and is done after the last try."""
    status = page.exchange.status
    done = not retryable(status, failure) or is_last(page.claim, status, failure)
    wait = 0 if done else retry_wait(page.claim, policy.tries, status)
    return structs.replace(page, failure=failure, done=done, retry_after_ms=wait)


def _of_browser(page: Evaluation, page_id: str) -> Evaluation:
    context = structs.replace(page.context, page_id=page_id, engine="browser", resource_type="document")
    return structs.replace(page, context=context)


def _latest(results: tuple[Result, ...]) -> tuple[Result, ...]:
    """One result of each kind, the last one."""
    return tuple({result.kind: result for result in results}.values())


# -- records


def _resources(page: Evaluation, rendered: RenderedPage, page_id: str) -> Iterator[PageResource]:
    url = page.claim.url
    texts = [
        ("dom", "text/html; charset=utf-8", rendered.dom),
        ("text", "text/plain; charset=utf-8", rendered.text),
    ]
    pictures = [(name, _PICTURES[name], picture) for name, picture in rendered.pictures.items()]
    for name, content_type, block in (*pictures, *texts):
        if block:
            yield PageResource(f"urn:{name}:{url}", content_type, block, new_record_urn())
    yield _info_resource(page, rendered, page_id)


def _info_resource(page: Evaluation, rendered: RenderedPage, page_id: str) -> PageResource:
    info = msgspec.json.encode(_page_info(page, rendered, page_id))
    return PageResource(f"urn:pageinfo:{page.claim.url}", "application/json", info, new_record_urn())


def _page_info(page: Evaluation, rendered: RenderedPage, page_id: str) -> dict[str, Any]:
    exchange = page.exchange
    urls: dict[str, dict[str, Any]] = {
        exchange.url: {
            "status": exchange.status,
            "mime": media_type(exchange.field("content-type")).essence,
            "type": "document",
        }
    }
    for request in (one for chain in rendered.chains for one in chain):
        urls.setdefault(request.url, _told(request))
    info: dict[str, Any] = {
        "pageid": page_id,
        "url": rendered.url,
        "ts": iso_us(exchange.started_at),
        "finalUrl": rendered.final_url,
        "title": rendered.title,
        "status": exchange.status,
        "state": rendered.state,
        "urls": urls,
        "counts": {"jsErrors": rendered.script_errors},
    }
    if rendered.script is not None:
        info["custom_js"] = {
            "status": "done" if rendered.script.done else "failed",
            "value": msgspec.Raw(rendered.script.value),
        }
    return info


def _told(request: RequestEnded) -> dict[str, Any]:
    told: dict[str, Any] = {"status": request.status, "mime": request.mime, "type": request.type}
    if request.method != "GET":
        told["method"] = request.method
    if request.refused or request.error:
        told["error"] = request.refused or request.error
    if request.from_cache:
        told["fromCache"] = True
    return told


# -- results


def _results(page: Evaluation, rendered: RenderedPage, resources: list[PageResource]) -> Iterator[Result]:
    yield _result(ResultKind.STATUS_CODE, page.exchange.status)
    yield _result(ResultKind.FINAL_URL, rendered.final_url)
    yield _result(ResultKind.TITLE, rendered.title)
    yield _result(ResultKind.UA, rendered.agent)
    leads = dict.fromkeys(url for url, how in rendered.links if how in _LEADS)
    yield _result(ResultKind.OUTLINKS, [*leads][:_MOST_LISTED])
    chains = [[_listed(request) for request in chain] for chain in rendered.chains]
    yield _result(ResultKind.REQUISITES, chains[:_MOST_LISTED])
    yield _result(ResultKind.CONSOLE, [structs.asdict(line) for line in rendered.console])
    names = {one.uri.split(":", 2)[1]: one.record_id for one in resources}
    shown = {_NAMES.get(name, name): names[name] for name in _PICTURES if name in names}
    yield _result(ResultKind.SCREENSHOT, shown)
    script = rendered.script
    if script is not None:
        status = ResultStatus.DONE if script.done else ResultStatus.FAILED
        yield Result(ResultKind.CUSTOM_JS.value, script.value, status.value)


def _result(kind: ResultKind, value: object) -> Result:
    return Result(kind.value, msgspec.json.encode(value))


_LISTED = ("url", "method", "status", "mime", "type", "size", "from_cache")


def _listed(request: RequestEnded) -> dict[str, Any]:
    told = {name: getattr(request, name) for name in _LISTED}
    return {**told, "error": request.refused or request.error}


# -- links


def _links(claim: Claim, first: ResolvedLinks, rendered: RenderedPage, outlinks: Outlinks) -> ResolvedLinks:
    """The links of the answer and of the rendered page; what the browser had got is not asked for again."""
    leads = [(url, _FOUND[how]) for url, how in rendered.links if how in _FOUND]
    # of what it got in parts, the whole is wanted: parts are not replayed
    leads += [(url, FoundAs.VIDEO) for url in _partly_had(rendered)]
    # its own frames can be looked into, and not the style sheets of others
    leads += [(url, FoundAs.CSS_URL) for chain in rendered.chains for one in chain for url in one.offers]
    # where its scripts went before it had settled: as after a redirect
    followed = {outlinks.key(url): (url, FoundAs.FOLLOWED) for url in _followed(claim, rendered)}
    anchors = [url for url, found_as in leads if found_as is FoundAs.A]
    others = [link for link in leads if link[1] is not FoundAs.A]
    base = without_route(rendered.final_url) or claim.url
    more = outlinks.resolve(base, [*others, *followed.values()], anchors, follow=claim.follow)
    had = {outlinks.key(url): way for url, way in _had(rendered)}
    entries = dict.fromkeys((*_entries(first.entries), *_entries(more.entries)))
    kept = [one for one in entries if one[:-1] not in had or _is_wanted(one, had[one[:-1]], followed)]
    lines = dict.fromkeys((*first.lines.splitlines(keepends=True), *more.lines.splitlines(keepends=True)))
    along = outlinks.resolve(base, _brought(rendered, outlinks, followed), follow=claim.follow)
    routes = outlinks.routes(_routes(rendered)) if claim.follow else NOTHING
    return ResolvedLinks(
        b"".join(kept) + along.entries + routes.entries,
        b"".join(lines) + routes.lines,
        (*first.news, *more.news, *along.news, *routes.news),
        first.dropped + more.dropped,
        first.unfollowed,
    )


def _routes(rendered: RenderedPage) -> Iterator[str]:
    """The URLs to which the page leads by a route."""
    for url, _ in rendered.links:
        if "#" in url and route_of(url) and (page := normalise_page(url)) is not None and page != rendered.url:
            yield page


def _is_wanted(entry: bytes, way: FoundAs | None, followed: Container[bytes]) -> bool:
    """Whether a link to what the browser had stays one: to a page of the crawl, whatever scripts fetched of it."""
    found_as = FoundAs(entry[-1])
    if entry[:-1] in followed:
        return found_as is FoundAs.FOLLOWED
    return found_as.kind is Kind.LINK and way is not FoundAs.REQUISITE


def _brought(rendered: RenderedPage, outlinks: Outlinks, followed: Container[bytes]) -> list[tuple[str, FoundAs]]:
    """What the browser got that other pages may lead to: the tracker has it done with this page."""
    found = {}
    for chain in rendered.chains:
        for url, way in _had_of(chain):
            # a URL with the id of a session is not the one that the tracker has for its page
            same = len(url) <= MOST_URL and outlinks.key(url) == url_key(url) not in followed
            if way is not None and same and not any(one.from_cache for one in chain):
                found[url] = way
    return list(found.items())


def _had(rendered: RenderedPage) -> Iterator[tuple[str, FoundAs | None]]:
    for chain in rendered.chains:
        yield from _had_of(chain)


def _had_of(chain: list[RequestEnded]) -> Iterator[tuple[str, FoundAs | None]]:
    """The URLs that the browser got, and what it made of them; None for what only its scripts can say."""
    last = chain[-1]
    way: FoundAs | None = None
    if 200 <= last.status < 300 and not last.error:
        shows = is_document(last.status, last.mime, "")
        way = FoundAs.REQUISITE if last.type in _SHOWN and not shows else None
        way = FoundAs.SUBDOCUMENT if last.type == "document" else way
    for request in chain:
        url = normalise(request.url) if request.method == "GET" and _is_whole(request) else None
        if url is not None:
            yield url, way


def _is_whole(request: RequestEnded) -> bool:
    """Whether it has an answer that another try would not better."""
    if request.from_cache:
        return True
    if request.status in (0, _PART):
        return False
    return not retryable(request.status, failure_of(request.error) if request.error else None)


def _followed(claim: Claim, rendered: RenderedPage) -> Iterator[str]:
    """The documents that the page was sent to, as far as they were captured."""
    got = {one.url for chain in rendered.chains for one in chain if one.method == "GET" and 200 <= one.status < 300}
    for document in rendered.documents:
        url = normalise(document)
        if document.partition("#")[0] in got and url is not None and url != claim.url:
            yield url


def _partly_had(rendered: RenderedPage) -> Iterator[str]:
    for request in (one for chain in rendered.chains for one in chain):
        if request.method == "GET" and request.status == _PART:
            yield request.url


def _entries(packed: bytes) -> list[bytes]:
    return [packed[at : at + LINK_ENTRY] for at in range(0, len(packed), LINK_ENTRY)]
