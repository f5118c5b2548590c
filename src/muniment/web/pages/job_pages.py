"""The pages of jobs: all of them, one with what it does, its log, its ignore patterns; and the forms that steer it."""

from __future__ import annotations

import re
from asyncio import gather
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import FileResponse, Response, StreamingResponse

from muniment.control.runs.start import OWN_OPTIONS
from muniment.errors import NotFoundError, UsageError
from muniment.model.network.dashboard import IgnoreEffect, JobCard, LogText
from muniment.model.network.jobs import IgnoresCall, JobPatch
from muniment.rules.ignore_sets import built_in_names
from muniment.web.pages.ignore_suggestions import suggestions_for
from muniment.web.pages.job_form import job_fields
from muniment.web.pages.plots import plots_of
from muniment.web.pages.site import PageVisit, see_other

__all__ = ["STEERING", "ignores", "ignores_page", "job", "jobs", "log", "log_download", "why"]

_LINES = 200
_MOST_CHANGES = 200
_PER_PAGE = 200
_ENDED = frozenset({"stopped", "aborted", "failed"})
"""States of a job that can go on."""
_COLUMNS = (
    ("State", "state"), ("URL", "url"), ("Done", "done"), ("Queued", "queued"), ("Pages/s", "rate"), ("Bytes", "bytes"),
    ("Errors", "errors"), ("Responses", ""), ("By", "by"), ("Note", "note"), ("Age", "created_at"),
)  # fmt: skip
"""Of the table of jobs: heading, and what it is sorted by."""
_TERMS = frozenset({"max-slots", "nice"})
_NOT_OPTIONS = frozenset({"url", "urls", "explanation"})


async def jobs(visit: PageVisit) -> Response:
    """All jobs, through a filter that its address keeps."""
    text, state, person, sort = (visit.given(name).strip() for name in ("text", "state", "by", "sort"))
    found = await visit.site.ask(lambda backend: backend.jobs())
    shown = _sorted([one for one in found if _fits(one, text.lower(), state, person.lower())], sort)
    begin = _number(visit.given("from")) or 0
    return visit.page(
        "jobs.html",
        jobs=shown[begin : begin + _PER_PAGE],
        count=len(shown),
        all=len(found),
        text=text,
        state=state,
        by=person,
        sort=sort,
        columns=_COLUMNS,
        fields=job_fields(OWN_OPTIONS if visit.site.local else frozenset()),
        next=begin + _PER_PAGE if begin + _PER_PAGE < len(shown) else None,
    )


def _fits(card: JobCard, text: str, state: str, person: str) -> bool:
    told = f"{card.id} {card.url} {card.name} {card.note}".lower()
    return text in told and state in ("", card.state) and person in card.by.lower()


def _sorted(cards: list[JobCard], sort: str) -> list[JobCard]:
    """The newest first, unless a column is named; with `-` before it, the largest first."""
    name = sort.removeprefix("-")
    if not any(name == key for _, key in _COLUMNS if key):
        return cards
    return sorted(cards, key=lambda card: getattr(card, name), reverse=sort.startswith("-"))


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else None


async def job(visit: PageVisit) -> Response:
    """One job: figures, actions, settings with their history, the end of its log."""
    number, level, pattern, ask = visit.job, visit.given("level"), visit.given("q"), visit.site.ask
    # each of the first two may take half a second of a job with millions of pages
    card, (span, buckets), settings, changes, part = await gather(
        ask(lambda backend: backend.card(number)),
        ask(lambda backend: backend.buckets(number)),
        ask(lambda backend: backend.settings(number)),
        ask(lambda backend: backend.newest_changes(number, _MOST_CHANGES)),
        ask(lambda backend: backend.log(number, level, pattern, None, _LINES)),
    )
    restart = await ask(lambda backend: backend.restart(number)) if card.state in _ENDED else None
    return visit.page(
        "job.html",
        plots=plots_of(span, buckets),
        job=card,
        settings=settings,
        changes=changes,
        restart=restart,
        part=part,
        level=level,
        q=pattern,
    )


async def log(visit: PageVisit) -> Response:
    """The whole log, page by page."""
    number, level, pattern = visit.job, visit.given("level"), visit.given("q")
    before = _number(visit.given("before"))
    part = await visit.site.ask(lambda backend: backend.log(number, level, pattern, before, _LINES))
    card = await visit.site.ask(lambda backend: backend.card(number))
    return visit.page("log.html", job=card, part=part, level=level, q=pattern, before=before)


async def log_download(visit: PageVisit) -> Response:
    """The log as a file."""
    number = visit.job
    path = await visit.site.ask(lambda backend: backend.log_file(number))
    name, kind = f"job-{number}-events.jsonl", "application/octet-stream"
    if path is not None:
        return FileResponse(path, media_type=kind, filename=name)
    first = await visit.site.ask(lambda backend: backend.log_text(number, ""))
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(_log_parts(visit, number, first), 200, headers, kind)


async def _log_parts(visit: PageVisit, job: int, part: LogText) -> AsyncIterator[bytes]:
    yield part.text
    while (after := part.next) is not None:
        part = await visit.site.ask(lambda backend, after=after: backend.log_text(job, after))  # type: ignore[misc]
        yield part.text


async def why(visit: PageVisit) -> Response:
    """What became of a URL, and why."""
    number, url = visit.job, visit.given("url").strip()
    card = await visit.site.ask(lambda backend: backend.card(number))
    found = await visit.site.ask(lambda backend: backend.why(number, url)) if url else None
    return visit.page("why.html", job=card, url=url, found=found, offers=suggestions_for(found.url) if found else [])


async def ignores(visit: PageVisit) -> Response:
    """The ignore patterns in force."""
    number = visit.job
    card = await visit.site.ask(lambda backend: backend.card(number))
    patterns = await visit.site.ask(lambda backend: backend.ignores(number))
    return ignores_page(visit, card, patterns, visit.given("pattern"), None)


def ignores_page(
    visit: PageVisit,
    card: JobCard,
    patterns: list[tuple[str, str]],
    pattern: str,
    effect: IgnoreEffect | None,
    status: int = 200,
) -> Response:
    """The page of ignore patterns: those given by hand, then each set."""
    sets: dict[str, list[str]] = {}
    for name, text in patterns:
        sets.setdefault(name, []).append(text)
    own = sets.pop("", [])
    others = [name for name in built_in_names() if name not in sets]
    return visit.page(
        "ignores.html", status, job=card, own=own, sets=sets, others=others, pattern=pattern, effect=effect
    )


# -- forms


async def begin(visit: PageVisit) -> Response:
    """Begin a job."""
    urls = f"{visit.given('url')}\n{visit.given('urls')}".split()
    note = visit.given("explanation").strip()
    options = [(name, value) for name, value in visit.form if name not in _NOT_OPTIONS]
    made = await visit.site.act(lambda backend: backend.begin(urls, note, options), visit.visitor)
    return see_other(f"/jobs/{made}?done=new")


async def pause(visit: PageVisit) -> Response:
    """Pause a job."""
    number = visit.job
    await visit.site.act(lambda backend: backend.pause(number), visit.visitor, number)
    return see_other(f"/jobs/{number}?done=pause")


async def resume(visit: PageVisit) -> Response:
    """Have a paused or aborted job go on."""
    number = visit.job
    await visit.site.act(lambda backend: backend.resume(number), visit.visitor, number)
    card = await visit.site.ask(lambda backend: backend.card(number))
    return see_other(f"/jobs/{number}?done={'again' if card.state == 'stopped' else 'resume'}")


async def abort(visit: PageVisit) -> Response:
    """End a job."""
    number = visit.job
    await visit.site.act(lambda backend: backend.abort(number), visit.visitor, number)
    return see_other(f"/jobs/{number}?done=abort")


async def change_settings(visit: PageVisit) -> Response:
    """Change settings and the note; what is as before stays as it is."""
    number, given = visit.job, dict(visit.form)
    now = {one.name: one.value for one in await visit.site.ask(lambda backend: backend.settings(number))}
    note = given.pop("explanation", None)
    card = await visit.site.ask(lambda backend: backend.card(number))
    values = {name: value.strip() or "none" for name, value in given.items() if value.strip() != now.get(name)}
    values = {name: value for name, value in values.items() if value != now.get(name)}
    terms: dict[str, Any] = {name.replace("-", "_"): _term(name, values.pop(name)) for name in _TERMS & values.keys()}
    if note is not None and note != card.note:
        terms["explanation"] = note
    if not values and not terms:
        return see_other(f"/jobs/{number}?done=same")
    patch = JobPatch(settings=values, **terms)
    await visit.site.act(lambda backend: backend.change(number, patch), visit.visitor, number)
    return see_other(f"/jobs/{number}?done=settings")


def _term(name: str, value: str) -> int | None:
    """A term of a job in a fleet: a number, or none of most slots."""
    if name == "max-slots" and value == "none":
        return None
    if not re.fullmatch("-?[0-9]{1,9}", value):
        raise UsageError(f"{name} is a number, not {value[:40]!r}")
    return int(value)


async def add_ignore(visit: PageVisit) -> Response:
    """Add an ignore pattern, or a built-in set; what is wrong with it is said beside it."""
    try:
        return await _ignores(visit, IgnoresCall(add=_texts(visit, "pattern"), add_sets=_texts(visit, "set")))
    except NotFoundError:
        raise
    except UsageError as error:
        number = visit.job
        card = await visit.site.ask(lambda backend: backend.card(number))
        patterns = await visit.site.ask(lambda backend: backend.ignores(number))
        wrong = IgnoreEffect(valid=False, error=str(error))
        return ignores_page(visit, card, patterns, visit.given("pattern"), wrong, 422)


async def remove_ignore(visit: PageVisit) -> Response:
    """Remove an ignore pattern, or a set."""
    return await _ignores(visit, IgnoresCall(remove=_texts(visit, "pattern"), remove_sets=_texts(visit, "set")))


def _texts(visit: PageVisit, name: str) -> list[str]:
    return [value for one, value in visit.form if one == name and value]


async def _ignores(visit: PageVisit, call: IgnoresCall) -> Response:
    number = visit.job
    await visit.site.act(lambda backend: backend.change_ignores(number, call), visit.visitor, number)
    return see_other(f"/jobs/{number}/ignores?done=ignores")


STEERING = {
    "/jobs/{job:int}/pause": pause,
    "/jobs/{job:int}/resume": resume,
    "/jobs/{job:int}/abort": abort,
    "/jobs/{job:int}/settings": change_settings,
    "/jobs/{job:int}/ignores": add_ignore,
    "/jobs/{job:int}/ignores/remove": remove_ignore,
}
"""What forms are sent to, and who takes them."""
