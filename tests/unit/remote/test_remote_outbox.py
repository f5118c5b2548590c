"""The outbox: batches become messages, and what the server lacks is sent again."""

from __future__ import annotations

import asyncio
import tempfile
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

from msgspec import structs
from tests.support.pages import claim, finished

from muniment.errors import MunimentError, SessionEndedError, TooLargeError
from muniment.model.network.sessions import FinishAnswer, FinishCall
from muniment.model.page import FinishBatch
from muniment.remote.host_cache import HostCache
from muniment.remote.host_shares import HostShares
from muniment.remote.outbox import Outbox
from muniment.tracker.stores.text_file import TextFile

KEY, TEXT = b"k" * 16, "http://a.example/next"
LINK = KEY + b"\x00"


class _Server:
    """Answers in turn, the last answer for ever; keeps what was sent."""

    def __init__(self, *answers: Callable[[FinishCall], FinishAnswer]) -> None:
        self.answers, self.calls = list(answers), list[FinishCall]()

    async def finish(self, call: FinishCall) -> FinishAnswer:
        self.calls.append(call)
        await asyncio.sleep(0)
        return (self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])(call)


def accepts(call: FinishCall) -> FinishAnswer:
    return FinishAnswer(accepted=[page.page_id for page in call.pages], stale=[], untold=[])


def lacks(call: FinishCall) -> FinishAnswer:
    return FinishAnswer(accepted=[], stale=[], untold=[KEY])


def is_stale(call: FinishCall) -> FinishAnswer:
    return FinishAnswer(accepted=[], stale=[page.page_id for page in call.pages], untold=[])


def is_large(call: FinishCall) -> FinishAnswer:
    if len(call.pages) > 1:
        raise TooLargeError("too large")
    return accepts(call)


def has_ended(call: FinishCall) -> FinishAnswer:
    raise SessionEndedError("LAPSED")


def with_outbox(server: _Server, use: Callable[[Outbox], Awaitable[None]]) -> list[MunimentError]:
    failures: list[MunimentError] = []

    async def run() -> None:
        with tempfile.TemporaryDirectory() as directory, closing(TextFile(Path(directory))) as texts:
            box = Outbox(7, server.finish, HostCache(7, HostShares()), texts, failures.append)
            box.open()
            await use(box)
            await asyncio.wait_for(box.drained(), 20)
            box.close()

    asyncio.run(run())
    return failures


def batch(*pages: int, urls: list[tuple[bytes, str]] | None = None) -> FinishBatch:
    return FinishBatch([structs.replace(finished(claim(page_id=page)), outlinks=LINK) for page in pages], urls or [])


def sent(server: _Server) -> list[tuple[list[int], list[tuple[bytes, str]]]]:
    return [([page.page_id for page in call.pages], call.urls) for call in server.calls]


def test_a_text_that_the_server_lacks_is_sent_again_with_the_page() -> None:
    server = _Server(lacks, accepts)
    assert not with_outbox(server, lambda box: box.put(batch(1, urls=[(KEY, TEXT)])))
    assert sent(server) == [([1], [(KEY, TEXT)])] * 2


def test_the_text_of_a_stale_page_is_kept_for_the_next_that_leads_there() -> None:
    server = _Server(is_stale, lacks, accepts)

    async def use(box: Outbox) -> None:
        await box.put(batch(1, urls=[(KEY, TEXT)]))
        await box.drained()
        await box.put(batch(2))

    assert not with_outbox(server, use)
    assert sent(server) == [([1], [(KEY, TEXT)]), ([2], []), ([2], [(KEY, TEXT)])]


def test_texts_that_wait_for_a_page_take_no_memory() -> None:
    """A worker sends a text once: it is kept until a page that leads there is accepted, however long that takes."""
    server = _Server()
    server.answers = [is_stale] * 100 + [lacks, accepts]
    grown: list[int] = []

    async def use(box: Outbox) -> None:
        tracemalloc.start()
        for first in range(100):
            texts = [(n.to_bytes(16), f"http://a.example/{n:080}") for n in range(first * 2000, first * 2000 + 2000)]
            await box.put(batch(first, urls=[(KEY, TEXT), *texts]))
            await box.drained()
            server.calls.clear()
        grown.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        await box.put(batch(200))

    assert not with_outbox(server, use)
    assert sent(server) == [([200], []), ([200], [(KEY, TEXT)])]
    assert grown[0] < 5_000_000


def test_what_cannot_be_sent_is_said_once() -> None:
    server = _Server(lacks)
    failures = with_outbox(server, lambda box: box.put(batch(1)))
    assert [str(error) for error in failures] == ["the server takes 1 pages not in: URLs that they lead to are lost"]
    assert len(server.calls) < 50


def test_a_message_that_is_too_large_is_halved() -> None:
    server = _Server(is_large)
    assert not with_outbox(server, lambda box: box.put(batch(1, 2, 3, urls=[(KEY, TEXT)])))
    assert sorted(page for pages, _ in sent(server) if len(pages) == 1 for page in pages) == [1, 2, 3]


def test_many_batches_are_few_messages_and_none_is_lost() -> None:
    server = _Server(accepts)

    async def use(box: Outbox) -> None:
        for first in range(0, 3000, 10):
            await box.put(batch(*range(first, first + 10)))

    assert not with_outbox(server, use)
    assert sorted(page for pages, _ in sent(server) for page in pages) == list(range(3000))
    assert len(server.calls) < 20


def test_after_its_session_it_sends_nothing_and_holds_up_nobody() -> None:
    server = _Server(has_ended)

    async def use(box: Outbox) -> None:
        for first in range(0, 5000, 100):
            await box.put(batch(*range(first, first + 100)))
            await asyncio.sleep(0)

    assert not with_outbox(server, use)
    assert 1 <= len(server.calls) <= 3
