"""The routes of the pages."""

from __future__ import annotations

from collections.abc import Callable, Collection

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp

from muniment.web.pages import capture_pages, event_stream, job_pages, process_pages, queue_pages
from muniment.web.pages.origin_check import Guard
from muniment.web.pages.render import STATIC, static_file
from muniment.web.pages.site import THEMES, PageSite, PageVisit, answered, nowhere, see_other

__all__ = ["guarded", "page_application"]

_LOOKING = {
    "/": job_pages.jobs,
    "/jobs/{job:int}": job_pages.job,
    "/jobs/{job:int}/log": job_pages.log,
    "/jobs/{job:int}/events.jsonl": job_pages.log_download,
    "/jobs/{job:int}/ignores": job_pages.ignores,
    "/jobs/{job:int}/why": job_pages.why,
    "/jobs/{job:int}/queue": queue_pages.queue,
    "/jobs/{job:int}/hosts": queue_pages.hosts,
    "/jobs/{job:int}/results": queue_pages.results,
    "/jobs/{job:int}/record": capture_pages.record,
    "/jobs/{job:int}/raw": capture_pages.raw,
    "/jobs/{job:int}/picture": capture_pages.picture,
    "/jobs/{job:int}/hook-file": capture_pages.hook_file,
    "/captures": capture_pages.captures,
    "/processes": process_pages.processes,
    "/processes/{process}": process_pages.process,
}


def _page_routes(site: PageSite) -> list[StarletteRoute]:
    """All pages, the forms, the stream and the two files of the site."""
    made = [StarletteRoute(path, answered(site, page), methods=["GET"]) for path, page in _LOOKING.items()]
    for path, form in job_pages.STEERING.items():
        made.append(StarletteRoute(path, answered(site, form, steers=True), methods=["POST"]))
    made += [
        StarletteRoute("/jobs", answered(site, job_pages.begin, submits=True), methods=["POST"]),
        StarletteRoute("/jobs/{job:int}/ignores/test", answered(site, queue_pages.try_ignore), methods=["POST"]),
        StarletteRoute("/processes/{process}/kill", answered(site, process_pages.kill, steers=True), methods=["POST"]),
        StarletteRoute("/jobs/{job:int}/view", answered(site, capture_pages.view), methods=["POST"]),
        StarletteRoute("/theme", answered(site, _theme), methods=["POST"]),
        StarletteRoute("/v1/events", answered(site, event_stream.events, as_json=True), methods=["GET"]),
        StarletteRoute("/login", site.sign_in.log_in, methods=["GET", "POST"]),
        StarletteRoute("/logout", site.sign_in.log_out, methods=["POST"]),
        *(StarletteRoute(f"/static/{name}", _static, methods=["GET"]) for name in STATIC),
    ]
    return made


def page_application(site: PageSite, *others: StarletteRoute) -> Starlette:
    """The pages of a site, and other routes; what is at neither is said on a page."""
    answer = nowhere(site)
    made = Starlette(routes=[*others, *_page_routes(site)], exception_handlers={404: answer, 405: answer})
    made.router.redirect_slashes = False
    return made


def guarded(app: ASGIApp, origins: Callable[[], Collection[str]], *, tokens: bool = False) -> ASGIApp:
    """An application that answers to its own names only; with `tokens`, to whoever has one in the head by any name."""
    return Guard(app, origins, tokens=tokens)


async def _static(request: Request) -> Response:
    name = request.url.path.rpartition("/")[2]
    return Response(static_file(name), media_type=STATIC[name], headers={"Cache-Control": "no-cache"})


async def _theme(visit: PageVisit) -> Response:
    """Choose light or dark."""
    chosen = visit.given("theme")
    back = visit.given("back")
    made = see_other(back if back.startswith("/") and not back.startswith(("//", "/\\")) else "/")
    made.set_cookie("theme", chosen if chosen in THEMES else "system", max_age=365 * 86400, samesite="strict")
    return made
