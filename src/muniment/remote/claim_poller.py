"""The claims of a pipeline: one question at a time, numbered, for all slots together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from muniment.clock import monotonic
from muniment.errors import RefusedError
from muniment.model.network.sessions import ClaimAnswer, ClaimCall, JobPages, SlotWant
from muniment.remote.connection import Retries, ServerConnection

__all__ = ["WRONG_ASK", "ClaimPoller"]

WRONG_ASK = "ask"
"""The code of an error: the server and the pipeline count questions differently."""

_WAIT_S = 40.0
"""How long the server may wait for pages."""
_ENOUGH_S = 0.25
"""A question that waits for pages is taken back after this when it should have asked for more."""


class ClaimPoller:
    """Asks for pages of one session, for as long as some are wanted."""

    def __init__(
        self,
        connection: ServerConnection,
        epoch: int,
        wants: Callable[[], Sequence[SlotWant]],
        take: Callable[[JobPages], None],
    ) -> None:
        """`wants` returns what the slots want now; `take` receives the pages of an answer."""
        self._connection, self._epoch = connection, epoch
        self._wants, self._take = wants, take
        self.ask = 1
        """The number of the next question."""
        self._changed = asyncio.Event()

    def wake(self) -> None:
        """More is wanted, or less."""
        self._changed.set()

    async def run(self) -> None:
        """Ask until cancelled. Raises a ServerError that is more than a failure for now."""
        while True:
            self._changed.clear()
            wants = list(self._wants())
            if not wants:
                await self._changed.wait()
                continue
            answer = await self._answer(wants)
            if answer is not None and answer.jobs:
                self.ask += 1
                for pages in answer.jobs:
                    self._take(pages)

    async def _answer(self, wants: list[SlotWant]) -> ClaimAnswer | None:
        """The answer to one question; None when another one is better. It has the same number then."""
        asking = asyncio.ensure_future(Retries().until_answered(lambda: self._send(wants)))
        began = monotonic()
        try:
            while not asking.done():
                changed = asyncio.ensure_future(self._changed.wait())
                await asyncio.wait([asking, changed], return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                if asking.done():
                    break
                self._changed.clear()
                if _differs(wants, self._wants()):
                    await asyncio.wait([asking], timeout=max(0.0, began + _ENOUGH_S - monotonic()))
                    if not asking.done():
                        return None
            return asking.result()
        finally:
            asking.cancel()

    async def _send(self, wants: list[SlotWant]) -> ClaimAnswer:
        call = ClaimCall(ask=self.ask, want=wants, wait_s=_WAIT_S)
        answer = await self._connection.ask(
            "POST", f"/v1/session/{self._epoch}/claim", ClaimAnswer, call, wait_s=_WAIT_S
        )
        if answer.ask != self.ask:
            raise RefusedError(f"the server answers question {answer.ask}, not {self.ask}", WRONG_ASK)
        return answer


def _differs(asked: Sequence[SlotWant], now: Sequence[SlotWant]) -> bool:
    """Whether a question should be another one by now: a slot wants pages that wanted none."""
    before = {one.slot for one in asked}
    return any(one.slot not in before for one in now)
