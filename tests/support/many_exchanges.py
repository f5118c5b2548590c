"""An engine whose pages take thousands of exchanges, and `muniment` with it: `python -m tests.support.many_exchanges`.

A page under `/many` takes `EXCHANGES` of `HOSTS` hosts. While `OUT.hang` exists, the last one of each host hangs.
`OUT.memory` is written when all others have come: the KB that they took.
"""

from __future__ import annotations

import asyncio
import random
import resource
import sys
from functools import partial
from pathlib import Path

import msgspec
from msgspec import structs
from tests.support.exchanges import exchange

from muniment.app.worker import run_worker
from muniment.cli import main
from muniment.crawl.orchestrator import loop
from muniment.crawl.pages import NOTHING, Evaluation
from muniment.crawl.protocol import FromOrchestrator, RenderReport
from muniment.crawl.worker.services import EngineServices
from muniment.model.capture import PageContext
from muniment.model.cookie import Cookie
from muniment.model.link import FoundAs
from muniment.model.page import Claim
from muniment.model.result import Result, ResultKind
from muniment.procs.children import launch

EXCHANGES, HOSTS, BODY = 3_000, 40, 64 << 10


class ManyExchanges:
    """An `Engine` without a network."""

    def __init__(self, services: EngineServices) -> None:
        self._services = services
        self._out = Path(services.setup.out)
        self._bytes = random.Random(26).randbytes(BODY)
        self._before, self._ending = _peak(), 0

    async def visit(self, claim: Claim) -> Evaluation | None:
        """A page with its exchanges, and three results."""
        if "/many" in claim.url:
            await asyncio.gather(*(self._ask_host(claim, host) for host in range(HOSTS)))
        context = PageContext(
            claim.via, claim.depth, FoundAs(claim.found_as).label, claim.attempt, claim.seed_url, claim.meta_json, ""
        )
        values = (ResultKind.STATUS_CODE, 200), (ResultKind.FINAL_URL, claim.url), (ResultKind.OUTLINKS, [claim.url])
        results = tuple(Result(kind.value, msgspec.json.encode(value)) for kind, value in values)
        page = exchange(claim.url, b"a page")
        return Evaluation(claim, page, context, NOTHING, done=True, retry_after_ms=0, results=results)

    async def _ask_host(self, claim: Claim, number: int) -> None:
        host = f"h{number}.example"
        for at in range(EXCHANGES // HOSTS):
            if at == EXCHANGES // HOSTS - 1:
                self._ending += 1
                if self._ending == HOSTS:
                    self._out.with_suffix(".memory").write_text(str(_peak() - self._before))
                if self._out.with_suffix(".hang").exists():
                    await asyncio.get_running_loop().create_future()
            url = f"http://{host}/{at}"
            body = self._bytes + url.encode()
            asked = await self._services.as_guest(url, partial(self._ask, host, url, body))
            assert asked
            await self._services.record(exchange(url, body), claim)

    async def _ask(self, host: str, url: str, body: bytes) -> bool | None:
        return True if self._services.held.start(host, url) else None

    def received(self, message: FromOrchestrator) -> None:
        """Nothing of it matters here."""

    def take_cookies(self) -> list[list[Cookie]]:
        """None are set."""
        return [[]]

    def render_report(self) -> RenderReport:
        """Nothing is rendered."""
        return RenderReport()

    async def end_hooks(self, grace_s: float) -> None:
        """No hook asks here."""

    async def close(self) -> None:
        """There is nothing to end."""

    def forget_old(self, now: int) -> None:
        """Nothing is remembered."""


def _peak() -> int:
    """The most memory that this process had, in KB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _with_this_engine() -> None:
    ours = launch._our_own

    def replaced(label: str, arguments: list[str], environment: dict[str, str]) -> object:
        plan = ours(label, arguments, environment)
        command = (sys.executable, "-m", "tests.support.many_exchanges", *arguments)
        return structs.replace(plan, command=command) if label == "fetcher" else plan

    launch._our_own = replaced  # type: ignore[assignment]
    loop._GRACE_S = 1.0


if __name__ == "__main__":
    if sys.argv[1:] == ["worker"]:
        sys.exit(run_worker(ManyExchanges))
    _with_this_engine()
    main()
