"""Salvage: a file that fails its walk is set aside, and its pages are fetched again.

The order that makes a crash harmless: its pages wait again, then it is told, then the file moves. A kill in between has
the next run begin anew.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice

from muniment.archive.index.repeated_lines import Said
from muniment.archive.recovery.verify import Damage
from muniment.crawl.orchestrator.warc_files import WarcFiles
from muniment.crawl.ports import Events
from muniment.crawl.progress import RunOutcome
from muniment.errors import MunimentError
from muniment.model.event import DamageEvent
from muniment.tracker.queue.frontier import Frontier

__all__ = ["DamagedFiles"]

_BATCH = 1_000
_log = logging.getLogger(__name__)


class DamagedFiles:
    """Acts on what the walks of one run found."""

    def __init__(self, frontier: Frontier, warc_files: WarcFiles, events: Events) -> None:
        self._frontier, self._warc_files, self._events = frontier, warc_files, events

    def step(self) -> dict[int, int]:
        """Set aside what was found since the last call; pages newly pending per host number."""
        pending: Counter[int] = Counter()
        for damage in self._warc_files.take_damaged():
            pending += self._set_aside(damage)
        return dict(pending)

    async def finish(self, outcome: RunOutcome, repeats: Iterable[Said] = ()) -> RunOutcome:
        """Seal what is whole, set the rest aside and join the index; a run with pages to fetch again has not ended.

        `repeats` are the lines of a list whose URL an earlier line has.
        """
        pages = await self._walk_rest()
        await self._warc_files.finish(repeats)
        if not pages or outcome.exit_code:
            return outcome
        return RunOutcome(3, f"a damaged file was set aside, and {pages} of its pages wait to be fetched again")

    async def seal(self) -> None:
        """Seal what is whole after an error, which says more than what may go wrong here; the index is not joined."""
        with suppress(MunimentError):
            await self._walk_rest()

    async def _walk_rest(self) -> int:
        """Have the rest walked and what is damaged set aside; how many pages wait again for it."""
        return sum(self._set_aside(damage).total() for damage in await self._warc_files.walk_rest())

    def _set_aside(self, damage: Damage) -> Counter[int]:
        name, place = damage.name, self._warc_files.place_aside(damage.name)
        pending: Counter[int] = Counter()
        captures = self._warc_files.captures(name)
        while batch := list(islice(captures, _BATCH)):
            pending += self._frontier.fetch_again(batch)
        pages = pending.total()
        self._events.publish(DamageEvent(name, damage.offset, damage.text, place, pages))
        _log.warning(
            "%s is damaged at byte %d (%s): it is kept as %s, and its %d pages are fetched again",
            *(name, damage.offset, damage.text, place, pages),
        )
        self._warc_files.set_aside(name)
        return pending
