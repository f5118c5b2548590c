"""`why`: what became of one URL, in one word and one line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from muniment.archive.index.read import rows_with
from muniment.clock import iso_ms, now_ms
from muniment.control.dropped import dropped_links
from muniment.control.results import document_of
from muniment.errors import UsageError
from muniment.extract.media_type import media_type
from muniment.http.user_agent import robots_agent
from muniment.model.capture import LISTED_AGAIN
from muniment.model.link import FoundAs
from muniment.model.place import TrackerPlace
from muniment.model.rule import Rule
from muniment.model.url import (
    did_you_mean,
    is_web,
    normalise,
    normalise_page,
    origin_of,
    route_of,
    shortened,
    without_route,
)
from muniment.rules.guards.family import TRAP
from muniment.rules.job_rules import Rules, rule_named
from muniment.rules.rendering.needs_browser import reason_to_render, wanted_engine, why_not_rendered
from muniment.rules.retry import is_failed
from muniment.rules.robots.rules import DISALLOWED, RefusingLine, product_token, refusing_line
from muniment.rules.scope import FAR
from muniment.rules.session_ids import page_key
from muniment.settings.option_table import Settings
from muniment.tracker.connect import tracker_to_read
from muniment.tracker.db.database import Database
from muniment.tracker.jobs import store as jobs
from muniment.tracker.jobs.reports import page_urls
from muniment.tracker.queue.page_lookup import PageRecord, Parents, find_page, parents_of
from muniment.tracker.stores.families import named_family
from muniment.tracker.stores.hooks import HookStore
from muniment.tracker.stores.robots import RobotsStore

__all__ = ["CapturePlace", "RobotsRefusal", "RuleMatch", "TrapMatch", "Why", "why"]

_COLUMNS = (
    "url",
    "found_as",
    "status",
    "fetched_at",
    "warc_file",
    "warc_offset",
    "warc_length",
    "error",
    "record_type",
    "content_type",
    "engine",
    "started_at",
)
_ROUTE = FoundAs.FRAGMENT_ROUTE.label
_MOST_ORIGINS = 1000
"""Start hosts on which a path is looked for."""


class CapturePlace(Struct, frozen=True):
    """The place of a record of the URL."""

    warc_file: str
    warc_offset: int
    warc_length: int
    record_type: str
    status: int
    fetched_at: int
    error: str
    content_type: str = ""
    engine: str = "http"
    """Who asked, or rendered it: `http`, `browser` or `hook`."""


class RobotsRefusal(Struct, frozen=True):
    """A robots.txt that keeps the page out."""

    url: str
    line: RefusingLine | None
    """Its line that does, when that can be said for sure."""


class RuleMatch(Struct, frozen=True):
    """A rule of the job that keeps the page out."""

    version: int
    """Of the rules that it was judged by."""
    rule: Rule


class TrapMatch(Struct, frozen=True):
    """The family that a page is set aside with."""

    guard: str
    """`barren`, `loops` or `duplicates`."""
    shape: str
    barren: tuple[str, ...]
    """URLs of its last barren pages, three at most."""


class Why(Struct, frozen=True, kw_only=True):
    """The state of a URL and the reason for it."""

    url: str
    verdict: str
    """`captured`, `failed`, `queued`, `in flight`, `skipped`, `out of scope` or `never seen`."""
    text: str
    page: PageRecord | None = None
    places: tuple[CapturePlace, ...] = ()
    robots: RobotsRefusal | None = None
    rule: RuleMatch | None = None
    trap: TrapMatch | None = None
    links_dropped: int = 0
    """About how many links of the page are not followed, because it has too many."""
    parents: Parents = Parents()
    """The pages that lead to it."""
    rendering: str = ""
    """Whether a browser rendered it, and why; empty in a crawl that renders nothing."""
    hooks_wait: bool = False
    """It waits for its hooks, or they run now."""


def why(out: Path, place: TrackerPlace, text: str, *, parents: bool = True) -> Why:
    """Explain a URL, or a path on a start host, of a job whose tracker is in `place`; raises UsageError for others.

    Without `parents`, the pages that lead to it are not sought, which may take seconds in a job of millions.
    """
    is_path = text.startswith("/") and not text.startswith("//")
    given = "" if is_path else normalise_page(text)
    if given is None:
        raise UsageError(f"{text!r} is not an http or https URL{did_you_mean(text)}")
    with tracker_to_read(place) as db:
        job = jobs.find_job(db)
        url, page = _on_start_hosts(db, job, text) if is_path else (given, _page(db, job, given))
        if page is None or not route_of(page.url):
            url = without_route(url)
        told = shortened(url)
        if job is None or page is None:
            return _no_page(out, told, RobotsStore(db, job.job_id) if job else None)
        settings = jobs.settings_of(job)
        left_out, rule = _left_out(db, job, page)
        robots = _disallowed(RobotsStore(db, job.job_id), page, settings) if page.reason == DISALLOWED else None
        order = _engine_ordered(db, job, page)
        trap = _trap(db, job, page)
        hooks_wait = HookStore(db, job.job_id).waits(page_key(page.url))
        leading = parents_of(db, job.job_id, page.page_id) if parents else Parents()
    places = tuple(_places(out, page.url, [one.started_at for one in page.attempts]))
    verdict, reason = _verdict(page, places, settings, left_out)
    if rule is not None:
        reason += f"; it is `{msgspec.json.encode(rule.rule).decode()}` in version {rule.version} of the rules"
    if robots is not None:
        reason += _by_which_line(robots)
    if trap is not None and trap.barren:
        reason += f"; its last pages with nothing new: {', '.join(trap.barren)}"
    dropped = dropped_links(out).get(page.url, 0)
    if dropped:
        reason += f"; it has too many links: about {dropped:,} are not followed"
    if page.url != told:
        reason = f"as {page.url}, which differs in its session id alone: {reason}"
    return Why(
        url=told,
        verdict=verdict,
        text=reason,
        page=page,
        places=places,
        robots=robots,
        hooks_wait=hooks_wait,
        rule=rule,
        trap=trap,
        links_dropped=dropped,
        parents=leading,
        rendering=_rendering(out, page, places, settings.engine, order),
    )


def _trap(db: Database, job: jobs.Job, page: PageRecord) -> TrapMatch | None:
    if page.state != "SKIPPED" or not page.reason.startswith(TRAP):
        return None
    guard, _, shape = page.reason.removeprefix(TRAP).partition(": ")
    found = named_family(db, job.job_id, guard, shape)
    return TrapMatch(guard, shape, tuple(page_urls(db, job.job_id, found.recent) if found else ()))


def _engine_ordered(db: Database, job: jobs.Job, page: PageRecord) -> str:
    """The engine that a rule says for a page."""
    rules = jobs.rules_of(db, job.job_id, page.ruleset)
    if not rules.in_order:
        return ""
    ruleset = jobs.ruleset_of(db, job.job_id, page.ruleset, rules)
    return ruleset.verdict(page.url, *_found_at(page)).orders.engine


def _found_at(page: PageRecord) -> tuple[int, FoundAs]:
    hops = FAR if page.link_hops is None else page.link_hops
    return hops, FoundAs[page.found_as.upper().replace("-", "_")]


def _rendering(out: Path, page: PageRecord, places: tuple[CapturePlace, ...], engine: str, order: str) -> str:
    """Whether a browser rendered a page that was captured, and why."""
    if not places or (engine == "http" and order != "browser" and places[-1].engine == "http"):
        return ""
    last = places[-1]
    if last.engine != "browser":
        is_page, kind = page.link_hops is not None, media_type(last.content_type).essence
        return f"not rendered: {why_not_rendered(engine, order, last.status, kind, is_page=is_page)}"
    if page.link_hops is None:
        return "asked for by a browser"
    if wanted_engine(engine, order) != "auto":
        return "rendered: " + ("a rule says engine browser" if order else "every page is")
    reason = reason_to_render(document_of(out, last.warc_file, last.warc_offset))
    return f"rendered: {reason}" if reason else "rendered"


def _page(db: Database, job: jobs.Job | None, url: str) -> PageRecord | None:
    return find_page(db, job.job_id, url) if job else None


def _on_start_hosts(db: Database, job: jobs.Job | None, path: str) -> tuple[str, PageRecord | None]:
    """The first URL of a start host with this path that has a page, or that of the first start host."""
    starts = jobs.start_urls(db, job.job_id) if job else ()
    origins = list(dict.fromkeys(map(origin_of, filter(is_web, starts))))[:_MOST_ORIGINS]
    meant = [url for origin in origins if (url := normalise(origin + path))]
    if not meant:
        raise UsageError(f"{path!r} is a path, but the job has no start URL that completes it; give the whole URL")
    found = ((url, _page(db, job, url)) for url in meant)
    return next(((url, page) for url, page in found if page is not None), (meant[0], None))


_ASKED_BY = {
    "browser": "asked for by an open page",
    "hook": "asked for by a hook",
}


def _no_page(out: Path, url: str, robots: RobotsStore | None) -> Why:
    """A URL that is not a page of the crawl, but may have been asked for as a robots.txt or by a page."""
    origin = origin_of(url)
    answer = robots.find(origin) if robots and url == f"{origin}/robots.txt" else None
    places = tuple(_places(out, url))
    if not places and answer is None:
        return Why(url=url, verdict="never seen", text="no page whose links are followed leads to it")
    what = _ASKED_BY.get(places[-1].engine if places else "", "asked for as a robots.txt")
    rules = f"the rules of {origin} come from it" if answer else what
    text = _where(places, answer.status if answer else 0)
    if places and (error := places[-1].error):
        return Why(url=url, verdict="failed", text=f"{error}; {text}; {rules}", places=places)
    return Why(url=url, verdict="captured", text=f"{text}; {rules}", places=places)


def _left_out(db: Database, job: jobs.Job, page: PageRecord) -> tuple[str, RuleMatch | None]:
    """Why a page waits to be skipped, if it does, and the rule that keeps a page out, skipped or about to be."""
    if page.state == "SKIPPED":
        return "", _rule_told(page.ruleset, jobs.rules_of(db, job.job_id, page.ruleset), page.reason)
    if page.state != "READY" or not page.attempts_remaining or not page.in_scope:
        return "", None
    version, rules = jobs.latest_rules(db, job.job_id)
    if version == job.judged:
        return "", None
    reason = jobs.ruleset_of(db, job.job_id, version, rules).verdict(page.url, *_found_at(page)).skipped
    return reason, _rule_told(version, rules, reason)


def _rule_told(version: int, rules: Rules, reason: str) -> RuleMatch | None:
    rule = rule_named(rules, reason)
    return None if rule is None else RuleMatch(version, rule)


def _disallowed(robots: RobotsStore, page: PageRecord, settings: Settings) -> RobotsRefusal:
    """By the text that was kept last."""
    origin = origin_of(page.url)
    kept = robots.find(origin)
    agent = product_token(robots_agent(settings.user_agent))
    return RobotsRefusal(f"{origin}/robots.txt", None if kept is None else refusing_line(kept.text, agent, page.url))


def _by_which_line(robots: RobotsRefusal) -> str:
    line = robots.line
    if line is None:
        return f" ({robots.url})"
    return f": line {line.line} of {robots.url} is `{line.text}`, under `{line.agent_text}` in line {line.agent_line}"


def _places(out: Path, url: str, tried: Sequence[int] = ()) -> list[CapturePlace]:
    """The captures of a URL; of a route those that began when it was tried: its document has the same URL."""
    document = without_route(url)
    return [
        msgspec.convert(row, CapturePlace)
        for row in rows_with(out, "url", [document], _COLUMNS)
        if row["warc_file"]
        and row["found_as"] != LISTED_AGAIN
        and (row["started_at"] // 1000 in tried if document != url else row["found_as"] != _ROUTE)
    ]


def _verdict(  # noqa: PLR0911
    page: PageRecord, places: tuple[CapturePlace, ...], settings: Settings, left_out: str
) -> tuple[str, str]:
    last = page.attempts[-1] if page.attempts else None
    if page.state == "SKIPPED":
        return "skipped", page.reason
    if page.state == "CLAIMED":
        return "in flight", f"try {len(page.attempts) + 1} is under way"
    if last is not None and page.attempts_remaining == 0 and page.ready_at:
        ended = last.error or last.status
        return "queued", f"a later round asks for it when the rest is done; the last try ended with {ended}"
    if last is not None and page.attempts_remaining == 0:
        verdict = "failed" if is_failed(last.status, last.error) else "captured"
        return verdict, last.error or _where(places, last.status)
    if not page.in_scope:
        return "out of scope", _out_of_scope(page, settings)
    if left_out:
        return "queued", f"will be skipped when its turn comes: {left_out}"
    if page.host_until > now_ms():
        return "queued", f"its host is left alone until {iso_ms(page.host_until)}: {page.host_reason}"
    if last is not None:
        wait = max(0, page.ready_at - now_ms()) // 1000
        return (
            "queued",
            f"try {len(page.attempts) + 1} follows in {wait} s; the last one ended with {last.error or last.status}",
        )
    return "queued", "waits for its turn"


def _where(places: tuple[CapturePlace, ...], status: int) -> str:
    if not places:
        return f"status {status}; no row of the index has it, though one may come while the crawl runs"
    place = places[-1]
    return (
        f"status {place.status} at {iso_ms(place.fetched_at)}, {place.record_type} record in {place.warc_file}, "
        f"offset {place.warc_offset}, length {place.warc_length}"
    )


def _out_of_scope(page: PageRecord, settings: Settings) -> str:
    if page.link_hops is None and page.requisite_hops is None:
        return "only pages that are not followed, or too many redirects, lead to it"
    if page.link_hops is not None and settings.level is not None and page.link_hops > settings.level:
        links = "1 link" if page.link_hops == 1 else f"{page.link_hops} links"
        return f"{links} away, more than --level {settings.level}"
    if not page.on_site and not settings.offsite_links:
        return "on another site, with --no-offsite-links"
    if settings.include:
        return "no --include pattern matches it"
    return "more than 5 requisite hops away"
