"""Requests that wait look again when something wakes them, and not before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from muniment.clock import monotonic
from muniment.web.polls import Poll, Polls


def waited(seconds: float, work: Callable[[Polls, Poll], Awaitable[bool]]) -> tuple[bool, float]:
    """Whether it makes sense to look again, and after how long."""

    async def wait() -> tuple[bool, float]:
        polls = Polls(0.001)
        async with polls.waiting(seconds) as poll:
            poll.look()
            began = monotonic()
            return await work(polls, poll), monotonic() - began

    return asyncio.run(wait())


def test_one_that_nothing_wakes_does_not_look_again() -> None:
    again, seconds = waited(1.5, lambda _, poll: poll.again())
    assert (again, seconds > 1.0) == (False, True)


def test_those_that_began_together_do_not_end_together() -> None:
    """Their clients ask again at once."""

    async def ends() -> list[float]:
        polls, found = Polls(0.001), list[float]()

        async def wait() -> None:
            async with polls.waiting(1.0) as poll:
                await poll.again()
            found.append(monotonic())

        await asyncio.gather(*(wait() for _ in range(50)))
        return found

    times = asyncio.run(ends())
    assert max(times) - min(times) > 0.15


def test_one_that_is_woken_looks_at_once() -> None:
    async def woken(polls: Polls, poll: Poll) -> bool:
        asyncio.get_running_loop().call_later(0.05, polls.wake)
        return await poll.again()

    again, seconds = waited(20, woken)
    assert (again, seconds < 10) == (True, True)


def test_what_happens_after_a_look_is_not_lost() -> None:
    async def woken(polls: Polls, poll: Poll) -> bool:
        polls.wake()
        return await poll.again()

    again, seconds = waited(20, woken)
    assert (again, seconds < 10) == (True, True)


def test_one_that_waits_for_what_is_there_looks_a_moment_later() -> None:
    again, seconds = waited(20, lambda _, poll: poll.again(soon=True))
    assert (again, seconds < 10) == (True, True)


def test_none_looks_again_when_the_server_ends() -> None:
    async def ended(polls: Polls, poll: Poll) -> bool:
        polls.end()
        return await poll.again()

    again, seconds = waited(20, ended)
    assert (again, seconds < 10) == (False, True)
