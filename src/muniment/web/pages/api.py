"""The API of local runs: the routes of jobs in `/v1` that look and steer, and those of captures and processes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import structs
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from muniment.control.fleet.backends import JobBackend
from muniment.errors import UsageError
from muniment.model.network.jobs import (
    FailCall,
    IgnoresCall,
    JobPatch,
    JobView,
    NiceCall,
    PatternCall,
    RulesCall,
    StashCall,
    UnstashCall,
)
from muniment.model.network.lists import JobList, ResultList
from muniment.model.network.processes import EndedProcess
from muniment.web.pages.backend import PagesBackend
from muniment.web.pages.site import PageSite, PageVisit, answered
from muniment.web.queries import capture_list, query_of_captures

__all__ = ["api_routes"]

_T = TypeVar("_T")
_MOST_BODY = 4 << 20
_MOST_LISTED = 1_000


class RunSite(PageSite, Protocol):
    """A site over runs, each of which can be asked itself."""

    async def at(self, job: int, action: Callable[[JobBackend], _T]) -> _T:
        """What a run itself answers."""


async def _jobs(visit: PageVisit) -> object:
    state, after, limit = visit.given("state"), _number(visit, "after", 0), _number(visit, "limit", _MOST_LISTED)
    cards = await visit.site.ask(lambda backend: backend.jobs())
    numbers = sorted(card.id for card in cards if card.id > after)
    views = [await visit.site.ask(lambda backend, job=job: backend.view(job)) for job in numbers[:limit]]  # type: ignore[misc]
    found = [one for one in views if state in ("", one.state)]
    return JobList(found, numbers[limit - 1] if len(numbers) > limit else None)


async def _job(visit: PageVisit) -> object:
    return await _asked(visit, lambda backend, job: backend.view(job))


async def _changes(visit: PageVisit) -> object:
    after = _number(visit, "after", 0)
    return await _asked(visit, lambda backend, job: backend.changes(job, after))


async def _pages(visit: PageVisit) -> object:
    url = visit.given("url")
    return await _asked(visit, lambda backend, job: backend.pages(job, url))


async def _results(visit: PageVisit) -> object:
    url = visit.given("url")
    return await _asked(visit, lambda backend, job: ResultList(backend.results(job, url), None))


async def _pause(visit: PageVisit) -> object:
    return await _acted(visit, lambda backend, job: backend.pause(job))


async def _resume(visit: PageVisit) -> object:
    return await _acted(visit, lambda backend, job: backend.resume(job))


async def _abort(visit: PageVisit) -> object:
    return await _acted(visit, lambda backend, job: backend.abort(job))


async def _change(visit: PageVisit) -> object:
    patch, job = await _body(visit, JobPatch), visit.job
    return await visit.site.act(lambda backend: backend.change(job, patch), visit.visitor, job)


async def _ignores(visit: PageVisit) -> object:
    call, job = await _body(visit, IgnoresCall), visit.job
    return await visit.site.act(lambda backend: backend.change_ignores(job, call), visit.visitor, job)


async def _try_ignore(visit: PageVisit) -> object:
    call = await _body(visit, PatternCall)
    return await _asked(visit, lambda backend, job: backend.ignore_effect(job, call.pattern))


async def _captures(visit: PageVisit) -> object:
    wanted = query_of_captures(visit.given)
    return capture_list(await visit.site.look(lambda source: source.captures(wanted)), wanted)


async def _processes(visit: PageVisit) -> object:
    given = [visit.given(name) for name in ("type", "status", "machine", "q")]
    rows, _ = await visit.site.ask(lambda backend: backend.processes(given[0], given[1], given[2], given[3]))
    told = [
        {**msgspec.to_builtins(one.process), "state": one.state, "age_s": one.age_s, "cpu_s": one.cpu_s, "rss": one.rss}
        for one in rows
    ]
    return {"processes": told}


async def _kill(visit: PageVisit) -> object:
    named = str(visit.request.path_params["process"])
    await visit.site.kill(named, visit.visitor)
    return EndedProcess(named)


async def _asked(visit: PageVisit, question: Callable[[PagesBackend, int], _T]) -> _T:
    job = visit.job
    return await visit.site.ask(lambda backend: question(backend, job))


async def _acted(visit: PageVisit, action: Callable[[PagesBackend, int], None]) -> object:
    job = visit.job
    await visit.site.act(lambda backend: action(backend, job), visit.visitor, job)
    return await _job(visit)


def _number(visit: PageVisit, name: str, default: int) -> int:
    text = visit.given(name)
    if not text:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise UsageError(f"{name} is a number, not {text[:40]!r}")
    return min(int(text), _MOST_LISTED) if name == "limit" else int(text)


async def _body(visit: PageVisit, kind: type[_T]) -> _T:
    raw = bytearray()
    async for part in visit.request.stream():
        raw += part
        if len(raw) > _MOST_BODY:
            raise UsageError("the body is too large")
    try:
        return msgspec.json.decode(bytes(raw) or b"{}", type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UsageError(f"the body is not what is taken here: {error}") from None


_Route = tuple[str, str, Callable[[PageVisit], Awaitable[object]], bool]
_ROUTES: tuple[_Route, ...] = (
    ("GET", "/v1/jobs", _jobs, False),
    ("GET", "/v1/jobs/{job:int}", _job, False),
    ("PATCH", "/v1/jobs/{job:int}", _change, True),
    ("GET", "/v1/jobs/{job:int}/changes", _changes, False),
    ("GET", "/v1/jobs/{job:int}/pages", _pages, False),
    ("GET", "/v1/jobs/{job:int}/results", _results, False),
    ("POST", "/v1/jobs/{job:int}/pause", _pause, True),
    ("POST", "/v1/jobs/{job:int}/resume", _resume, True),
    ("POST", "/v1/jobs/{job:int}/abort", _abort, True),
    ("POST", "/v1/jobs/{job:int}/ignores", _ignores, True),
    ("POST", "/v1/jobs/{job:int}/ignores/test", _try_ignore, False),
    ("GET", "/v1/captures", _captures, False),
    ("GET", "/v1/processes", _processes, False),
    ("POST", "/v1/processes/{process}/kill", _kill, True),
)
"""Method, path, handler, and whether it steers."""
_AT_A_RUN: tuple[tuple[str, str, type[Any] | None, Callable[[JobBackend, Any], object], bool], ...] = (
    ("GET", "rules", None, lambda run, _: run.rules(0), False),
    ("PUT", "rules", RulesCall, lambda run, call: run.set_rules(0, call), True),
    ("POST", "rules/dry-run", RulesCall, lambda run, call: run.rules_effect(0, call), False),
    ("POST", "nice", NiceCall, lambda run, call: run.nice(0, call), True),
    ("POST", "fail", FailCall, lambda run, call: run.fail(0, call.reason), True),
    ("POST", "stash", StashCall, lambda run, call: run.stash(0, call), True),
    ("POST", "unstash", UnstashCall, lambda run, call: run.unstash(0, call), True),
)
"""Method, last part of the path, body, what the run is asked, and whether it steers."""


def api_routes(site: RunSite) -> list[StarletteRoute]:
    """The routes of the API over local runs."""
    of_runs: list[_Route] = [
        (method, f"/v1/jobs/{{job:int}}/{name}", partial(_at_a_run, site, body, verb), steers)
        for method, name, body, verb, steers in _AT_A_RUN
    ]
    return [
        StarletteRoute(path, answered(site, _in_json(handler), steers=steers, as_json=True), methods=[method])
        for method, path, handler, steers in (*_ROUTES, *of_runs)
    ]


async def _at_a_run(
    site: RunSite, body: type[Any] | None, verb: Callable[[JobBackend, Any], object], visit: PageVisit
) -> object:
    call = None if body is None else await _body(visit, body)
    answer = await site.at(visit.job, lambda run: verb(run, call))
    return structs.replace(answer, id=visit.job) if isinstance(answer, JobView) else answer


def _in_json(handler: Callable[[PageVisit], Awaitable[object]]) -> Callable[[PageVisit], Awaitable[Response]]:
    async def answer(visit: PageVisit) -> Response:
        value: Any = await handler(visit)
        return Response(msgspec.json.encode(value), media_type="application/json")

    return answer
