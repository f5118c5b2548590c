"""The routes of a job's pages: lists of them, its list's lines, its rules, and what goes first or is put aside."""

from __future__ import annotations

from muniment.control.fleet import lines as job_lines
from muniment.control.fleet import pages as job_pages
from muniment.model.network.jobs import (
    ChangesMade,
    LinesAnswer,
    LinesCall,
    NiceCall,
    PagesMoved,
    RulesCall,
    RulesEffect,
    RulesView,
    StashCall,
    UnstashCall,
)
from muniment.model.network.lists import AttemptList, PageList, ResultList
from muniment.model.network.scopes import TokenScope
from muniment.web.bodies import query_of
from muniment.web.job_routes import changed_job, job_route
from muniment.web.queries import AttemptsQuery, PagesQuery, ResultsQuery, RulesQuery, listed
from muniment.web.refusals import busy
from muniment.web.requests import Asked
from muniment.web.state import ServerState

__all__ = ["PAGE_ROUTES"]

_MOST_DRY_RUNS = 20
"""That wait for their turn; more are refused."""
_MOST_ATTEMPT = (1 << 31) - 1


async def pages(server: ServerState, asked: Asked[None]) -> PageList:
    job, query = asked.number("job"), listed(asked.query, PagesQuery)
    return await server.reads.run(
        lambda tracker: job_pages.pages(
            tracker.db, job, url=query.url, state=query.state, after=query.after, limit=query.limit
        )
    )


async def attempts(server: ServerState, asked: Asked[None]) -> AttemptList:
    job, query = asked.number("job"), listed(asked.query, AttemptsQuery)
    return await server.reads.run(
        lambda tracker: job_pages.attempts(tracker.db, job, after=query.after, limit=query.limit)
    )


async def results(server: ServerState, asked: Asked[None]) -> ResultList:
    job, query = asked.number("job"), query_of(asked.query, ResultsQuery)
    attempt = None if query.attempt is None else max(0, min(query.attempt, _MOST_ATTEMPT))
    return await server.reads.run(lambda tracker: job_pages.results(tracker.db, job, url=query.url, attempt=attempt))


async def lines(server: ServerState, asked: Asked[LinesCall]) -> LinesAnswer:
    return await changed_job(server, asked, lambda db, job, _who: job_lines.add_lines(db, job, asked.body))


async def rules(server: ServerState, asked: Asked[None]) -> RulesView:
    job, query = asked.number("job"), query_of(asked.query, RulesQuery)
    return await server.reads.run(lambda tracker: job_pages.rules(tracker.db, job, query.version))


async def set_rules(server: ServerState, asked: Asked[RulesCall]) -> ChangesMade:
    return await changed_job(server, asked, lambda db, job, who: job_pages.set_rules(db, job, asked.body, who))


async def rules_effect(server: ServerState, asked: Asked[RulesCall]) -> RulesEffect:
    job = asked.number("job")
    if server.dry_runs.waiting >= _MOST_DRY_RUNS:
        raise busy()
    await server.reads.run(lambda tracker: job_pages.tried_rules(tracker.db, job, asked.body))
    return await server.dry_runs.effect(job, asked.body)


async def nice(server: ServerState, asked: Asked[NiceCall]) -> PagesMoved:
    return await changed_job(server, asked, lambda db, job, who: job_pages.nice(db, job, asked.body, who))


async def stash(server: ServerState, asked: Asked[StashCall]) -> PagesMoved:
    return await changed_job(server, asked, lambda db, job, who: job_pages.stash(db, job, asked.body, who))


async def unstash(server: ServerState, asked: Asked[UnstashCall]) -> PagesMoved:
    return await changed_job(server, asked, lambda db, job, who: job_pages.unstash(db, job, asked.body, who))


_READ, _SUBMIT, _OPERATE = TokenScope.READ, TokenScope.SUBMIT, TokenScope.OPERATE

PAGE_ROUTES = (
    job_route("GET", "/{job}/pages", _READ, pages, "The pages of a job.", PageList, query=PagesQuery),
    job_route("GET", "/{job}/attempts", _READ, attempts, "The attempts of a job.", AttemptList, query=AttemptsQuery),
    job_route("GET", "/{job}/results", _READ, results, "The results of a page.", ResultList, query=ResultsQuery),
    job_route(
        "POST", "/{job}/lines", _SUBMIT, lines, "Send lines of a job's list.", LinesAnswer, LinesCall, also=(409,)
    ),
    job_route("GET", "/{job}/rules", _READ, rules, "The rules of a job.", RulesView, query=RulesQuery),
    job_route("PUT", "/{job}/rules", _OPERATE, set_rules, "Replace the rules of a job.", ChangesMade, RulesCall),
    job_route("POST", "/{job}/rules/dry-run", _READ, rules_effect, "What rules would do.", RulesEffect, RulesCall),
    job_route("POST", "/{job}/nice", _OPERATE, nice, "Have pages go earlier or later.", PagesMoved, NiceCall),
    job_route("POST", "/{job}/stash", _OPERATE, stash, "Put pages aside.", PagesMoved, StashCall),
    job_route("POST", "/{job}/unstash", _OPERATE, unstash, "Take pages out of the stash.", PagesMoved, UnstashCall),
)
"""What operators call about the pages of a job."""
