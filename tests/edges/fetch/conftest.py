from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from fetch_servers import settings
from tests.support.raw_server import Certificate, make_certificate

from muniment.fetch.client import Client
from muniment.model.exchange import Exchange

Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """`run(work, **settings)` → what `work(client)` gives, on an event loop like the worker's; the client is closed."""

    def start(
        work: Callable[[Client], Awaitable[Any]], closed: Callable[[str], None] = lambda _: None, **changes: Any
    ) -> Any:
        async def whole() -> Any:
            client = Client(settings(**changes), tmp_path, closed)
            try:
                return await work(client)
            finally:
                await client.close()

        return uvloop.run(whole())

    return start


@pytest.fixture
def fetch(run: Run) -> Callable[..., Exchange]:
    """One fetch by a client of its own."""
    return lambda url, **changes: run(lambda client: client.fetch(url), **changes)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """Self-signed, for localhost and 127.0.0.1."""
    return make_certificate(tmp_path_factory.mktemp("tls"), "good")
