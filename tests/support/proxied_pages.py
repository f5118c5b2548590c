"""`muniment` whose pages have clients of the recording proxy: `python -m tests.support.proxied_pages`.

For each page whose URL has `/page`, the program `OUT.client` runs with the port and the certificate file as arguments.
What the page's owner is told is written to `OUT.told`, a JSON line each; the program's output to `OUT.output`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from uuid import uuid4

import msgspec
from msgspec import structs

from muniment.app.worker import run_worker
from muniment.cli import main
from muniment.crawl.pages import Page, Refusal
from muniment.crawl.worker.http_engine import HttpEngine
from muniment.crawl.worker.services import EngineServices
from muniment.model.page import Claim
from muniment.procs.children import launch
from muniment.proxy.events import PageOwner, ProxyEvent
from muniment.proxy.page_proxy import PageProxy


class ProxiedPages(HttpEngine):
    """An `Engine` that has a client ask for more, once a page is fetched."""

    def __init__(self, services: EngineServices) -> None:
        super().__init__(services)
        self._out = Path(services.setup.out)
        self._proxy: PageProxy | None = None

    async def visit(self, claim: Claim) -> Page | None:
        """A page, after its client has ended."""
        page = await super().visit(claim)
        if page is not None and not isinstance(page, Refusal) and "/page" in claim.url:
            await self._open(claim)
        return page

    async def _open(self, claim: Claim) -> None:
        if self._proxy is None:
            self._proxy = self.page_proxy()
            self._out.with_suffix(".pem").write_bytes(self._proxy.authority.pem)
        owner = PageOwner(
            page_id=str(uuid4()), url=claim.url, host=claim.host, depth=claim.depth, attempt=claim.attempt,
            engine="hook" if "hook" in claim.url else "browser",
        )  # fmt: skip
        with self._out.with_suffix(".told").open("a") as told, self._out.with_suffix(".output").open("ab") as output:

            def tell(event: ProxyEvent) -> None:
                print(json.dumps({"kind": type(event).__name__, **msgspec.to_builtins(event)}), file=told)

            port = await self._proxy.open(owner, tell)
            client = self._out.with_suffix(".client")
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, str(client), port.address, str(self._out.with_suffix(".pem")), claim.url),
                stdout=output,
                stderr=output,
            )
            await process.wait()
            await port.close(1.0)


def _with_this_engine() -> None:
    ours = launch._our_own

    def replaced(label: str, arguments: list[str], environment: dict[str, str]) -> object:
        plan = ours(label, arguments, environment)
        command = (sys.executable, "-m", "tests.support.proxied_pages", *arguments)
        return structs.replace(plan, command=command) if label == "fetcher" else plan

    launch._our_own = replaced  # type: ignore[assignment]


if __name__ == "__main__":
    if sys.argv[1:] == ["worker"]:
        sys.exit(run_worker(ProxiedPages))
    _with_this_engine()
    main()
