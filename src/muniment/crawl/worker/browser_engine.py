"""The browser engine: a page is fetched as by the HTTP engine, and its answer is then rendered where that is wanted."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from uuid import uuid4

from msgspec import structs

from muniment.browser.cookies import from_browser, to_browser
from muniment.browser.faults import BrowserError
from muniment.browser.options import BrowserSetup, RenderOptions
from muniment.browser.pool import BrowserPool
from muniment.browser.ports import PageAnswer, Processes, RenderRequest
from muniment.browser.program import BrowserProgram
from muniment.browser.user_agent import BrowserAgent, browser_agent, named_agent, page_headers
from muniment.crawl import protocol
from muniment.crawl.pages import Evaluation, Page
from muniment.crawl.worker.documents import markup, markup_text, shows_document
from muniment.crawl.worker.http_engine import HttpEngine
from muniment.crawl.worker.outlinks import Outlinks
from muniment.crawl.worker.page_recording import PageRecording
from muniment.crawl.worker.rendering import lost_page, rendered_page
from muniment.crawl.worker.services import EngineServices
from muniment.errors import MunimentError
from muniment.http.user_agent import agent_text
from muniment.model.event import RenderSums
from muniment.model.link import FoundAs
from muniment.model.page import Claim
from muniment.model.url import route_of
from muniment.proxy.events import PageOwner
from muniment.rules.rendering.needs_browser import reason_to_render, wanted_engine

__all__ = ["BrowserEngine"]

_log = logging.getLogger(__name__)


class BrowserEngine(HttpEngine):
    """An `Engine` that renders pages."""

    def __init__(self, services: EngineServices, setup: BrowserSetup, processes: Processes) -> None:
        super().__init__(services)
        self._setup, self._processes = setup, processes
        self._program = BrowserProgram(setup.path, setup.version)
        self._proxy = self.page_proxy()
        self._options = RenderOptions.of(self._settings, setup)
        self._job_agent = browser_agent(self._settings.user_agent, self._settings.contact, self._program.major)
        self._rendered = self._failed = 0
        self._pool = BrowserPool(
            processes,
            self._program,
            Path(services.setup.out) / "parts",
            self._proxy.authority.spki_sha256,
            sandbox=setup.sandbox,
            memory=self._settings.browser_memory,
            tabs=services.setup.tabs,
            agent=self._job_agent.text,
        )

    async def visit(self, claim: Claim) -> Page | None:
        """What became of a page; None when its host may not be asked now."""
        page = await super().visit(claim)
        if not isinstance(page, Evaluation):
            return page
        if page.context.redirect_to and (route := route_of(claim.url)):
            return _led_on(page, self._outlinks, route)
        return await self._render(page, claim.url) if self._is_to_be_rendered(page) else page

    def received(self, message: protocol.FromOrchestrator) -> None:
        """Take what the orchestrator sends beside claims."""
        if isinstance(message, protocol.InflightShare):
            self._pool.set_tabs(message.tabs)
            return
        super().received(message)
        if isinstance(message, protocol.SettingsUpdate):
            self._options = RenderOptions.of(self._settings, self._setup)

    def render_report(self) -> protocol.RenderReport:
        """What is open in the browsers, and what they have done so far."""
        return protocol.RenderReport(self._pool.tabs(), RenderSums(self._rendered, self._failed, self._pool.replaced))

    async def close(self) -> None:
        """End its browsers."""
        await self._pool.close()
        await self._proxy.close()

    def _engine_of(self, claim: Claim) -> str:
        return wanted_engine(self._settings.engine, claim.orders.engine) if claim.depth >= 0 else "http"

    def _headers(self, claim: Claim) -> tuple[tuple[str, str], ...]:
        headers = super()._headers(claim)
        if self._engine_of(claim) == "http":
            return headers
        given = {name.lower() for name, _ in headers}
        agent = self._agent_of(claim)
        own = page_headers(agent, claim.url, came_from=bool(claim.via))
        return (*(pair for pair in own if pair[0].lower() not in given), *headers)

    def _agent_of(self, claim: Claim) -> BrowserAgent:
        return named_agent(agent_text(claim.orders.ua)) if claim.orders.ua else self._job_agent

    def _is_to_be_rendered(self, page: Evaluation) -> bool:
        claim, exchange = page.claim, page.exchange
        engine = self._engine_of(claim)
        if engine == "http" or not page.done or exchange.failure is not None or page.context.redirect_to:
            return False
        return shows_document(exchange) and (engine == "browser" or bool(reason_to_render(markup_text(exchange))))

    async def _render(self, page: Evaluation, shown: str) -> Evaluation:
        """The page as a browser shows it at a URL, its own or a route of it."""
        claim, page_id = page.claim, str(uuid4())
        owner = PageOwner(
            page_id=page_id,
            url=claim.url,
            host=claim.host,
            depth=claim.depth,
            attempt=claim.attempt,
            seed_url=claim.seed_url,
            meta_json=claim.meta_json,
        )
        try:
            rendered = await self._pool.render(partial(self._order, page, owner, shown))
        except BrowserError as fault:
            if fault.kind == "start":
                raise MunimentError(f"the browser {self._setup.path} cannot be started: {fault}") from None
            _log.warning("%s: the browser %s: %s", claim.url, fault.kind, fault)
            return self._counted(lost_page(page, fault, page_id, self._policy, shown))
        self._agent.learn_from_page(from_browser(rendered.cookies, secure=claim.url.startswith("https:")))
        return self._counted(rendered_page(page, rendered, page_id, self._outlinks, self._policy))

    def _counted(self, page: Evaluation) -> Evaluation:
        self._rendered += page.failure is None
        self._failed += page.failure is not None and page.done
        return page

    def _order(self, page: Evaluation, owner: PageOwner, shown: str) -> RenderRequest:
        claim, exchange = page.claim, page.exchange
        scripts = "\n".join(text for text in (claim.orders.custom_js, self._options.custom_js) if text)
        return RenderRequest(
            PageAnswer(shown, exchange.status, exchange.headers, markup(exchange)),
            PageRecording(self._proxy, owner),
            self._options,
            self._agent_of(claim),
            scripts,
            to_browser(self._agent.cookies_of(claim.host)),
        )


def _led_on(page: Evaluation, outlinks: Outlinks, route: str) -> Evaluation:
    """A redirect, behind which a browser keeps the route."""
    _, found = outlinks.redirect(page.claim.url, page.context.redirect_to, FoundAs.REDIRECT, route)
    return structs.replace(page, found=found)
