"""A worker process: its end of the socket, its HTTP engine and the loop."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import uvloop

from muniment.app.run_facts import warc_info
from muniment.archive.durable import archive_error
from muniment.control.privacy import keep_private
from muniment.crawl import protocol
from muniment.crawl.channel import Channel
from muniment.crawl.worker.http_engine import HttpEngine as DefaultEngine
from muniment.crawl.worker.loop import EngineFactory, Worker
from muniment.errors import DiskFullError, MunimentError, UsageError
from muniment.fetch.client import Client
from muniment.fetch.config import FetchConfig
from muniment.http.auth import Account
from muniment.http.user_agent import agent_text
from muniment.procs.children.launch import OUT_OF_MEMORY, die_with_parent, inherited_channel, most_descriptors
from muniment.rules.proxies import ProxyRule, proxy_rules

__all__ = ["run_worker"]


def run_worker(engine: EngineFactory = DefaultEngine) -> int:
    """Serve the orchestrator that launched this process; the exit code."""
    channel = inherited_channel()
    if channel is None:
        raise UsageError("`muniment worker` is started by `muniment crawl`, not by hand")
    die_with_parent()
    return uvloop.run(_serve(channel, engine))


async def _serve(sock: socket.socket, engine: EngineFactory) -> int:
    built: asyncio.Future[Worker] = asyncio.get_running_loop().create_future()
    worker: Worker | None = None

    def received(message: protocol.FromOrchestrator) -> None:
        nonlocal worker
        if worker is not None:
            worker.received(message)
        elif isinstance(message, protocol.Setup):
            # at once: what was sent right after it is for the worker already
            try:
                worker = _build(channel, message, engine)
            except OSError as error:
                trouble = archive_error(error, Path(message.out) / "parts")
                channel.send(protocol.WorkerFailure(isinstance(trouble, DiskFullError), str(trouble)))
                built.set_exception(trouble)
            except Exception as error:
                built.set_exception(error)
            else:
                built.set_result(worker)
        elif isinstance(message, protocol.Stop):
            os._exit(0)

    gone = asyncio.Event()

    def lost() -> None:
        gone.set()
        if worker is None or not worker.ended:
            # the orchestrator is gone: nobody would take a finish, so this process ends at once; one that was given
            # nothing to do, as when the crawl had finished before, has not failed
            os._exit(0 if worker is None else 1)

    asyncio.get_running_loop().set_exception_handler(_gone_wrong)
    channel = Channel(protocol.FromOrchestrator, received, lost)
    await channel.open(sock)
    channel.send(protocol.Hello(os.getpid()))
    code = 0
    try:
        await (await built).run()
    except MunimentError:
        # it has told the orchestrator, who tells the user
        code = 1
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    # the orchestrator closes when it has read the goodbye: closing here, with an answer unread, would reset the socket
    # and lose what was said last
    await gone.wait()
    return code


def _gone_wrong(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What a callback of the event loop raised: without memory nothing goes on, and the orchestrator has the word."""
    if isinstance(context.get("exception"), MemoryError):
        os._exit(OUT_OF_MEMORY)
    loop.default_exception_handler(context)


def _build(channel: Channel, setup: protocol.Setup, engine: EngineFactory) -> Worker:
    if setup.private:
        keep_private()
    settings = setup.settings
    config = FetchConfig(
        user_agent=_agent_of(setup),
        credentials=setup.credentials,
        polite=settings.mode == "polite",
        compression=settings.http_compression,
        connect_timeout=settings.connect_timeout,
        timeout=settings.timeout,
        longest=settings.max_fetch_time,
        max_body=settings.max_body,
        insecure=settings.insecure,
        proxies=tuple(_with_account(rule, setup.credentials.accounts) for rule in proxy_rules(settings.proxy)),
        allowed_classes=frozenset(setup.allowed_classes),
        late_names=frozenset(setup.late_names),
        per_host=settings.per_host,
        most_open=most_descriptors() // 2,
    )
    parts = Path(setup.out) / "parts"
    parts.mkdir(exist_ok=True)
    return Worker(channel, setup, Client(config, parts), _engine_of(setup, engine), warc_info(setup))


def _engine_of(setup: protocol.Setup, engine: EngineFactory) -> EngineFactory:
    if setup.browser is None:
        return engine
    from muniment.app.browsers import browser_engine  # noqa: PLC0415  (a crawl without browsers needs none of it)

    return browser_engine(setup.browser)


def _agent_of(setup: protocol.Setup) -> str:
    """The agent of the whole run: that of the browser, where there is one."""
    settings = setup.settings
    if setup.browser is None:
        return agent_text(settings.user_agent, settings.contact)
    from muniment.browser.user_agent import browser_agent  # noqa: PLC0415  (as above)

    major = int(setup.browser.version.partition(".")[0])
    return browser_agent(settings.user_agent, settings.contact, major).text


def _with_account(rule: ProxyRule, accounts: Mapping[str, Account]) -> ProxyRule:
    """The rule with its proxy's account, when that is in the auth file and not in the URL."""
    parts = urlsplit(rule.url)
    account = accounts.get(parts.hostname or "")
    if account is None or "@" in parts.netloc:
        return rule
    user, password = quote(account.user, ""), quote(account.password, "")
    return ProxyRule(rule.pattern, parts._replace(netloc=f"{user}:{password}@{parts.netloc}").geturl())
