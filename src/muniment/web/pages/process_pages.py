"""The pages of processes: a list with filters, the tree around one, its output, and its end."""

from __future__ import annotations

from starlette.responses import Response

from muniment.errors import NotFoundError
from muniment.model.process import ProcessType
from muniment.web.pages.site import PageVisit, see_other

__all__ = ["kill", "process", "processes"]

_FIELDS = ("type", "status", "machine", "q")
_TYPES: tuple[ProcessType, ...] = ("cli", "supervisord", "orchestrator", "worker", "hook", "binary")


async def processes(visit: PageVisit) -> Response:
    """The newest processes that fit."""
    given = {name: visit.given(name).strip() for name in _FIELDS}
    rows, machines = await visit.site.ask(
        lambda backend: backend.processes(given["type"], given["status"], given["machine"], given["q"])
    )
    return visit.page("processes.html", rows=rows, machines=machines, given=given, types=_TYPES)


async def process(visit: PageVisit) -> Response:
    """One process with its tree and its output."""
    named = str(visit.request.path_params["process"])
    found = await visit.site.ask(lambda backend: backend.process(named))
    me = next((one for one in found.tree if one.process.id == found.id), None)
    if me is None:
        raise NotFoundError(f"there is no process {named[:40]}")
    children = sum(one.process.parent_id == found.id for one in found.tree)
    return visit.page(
        "process.html", me=me, tree=found.tree, output=found.output, why_not=found.why_not, children=children
    )


async def kill(visit: PageVisit) -> Response:
    """End a process and all below it."""
    named = str(visit.request.path_params["process"])
    await visit.site.kill(named, visit.visitor)
    return see_other(f"/processes/{named}?done=kill")
