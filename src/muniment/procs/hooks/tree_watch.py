"""What hooks begin: programs that live for a moment have rows, and the memory of each tree is looked at."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from muniment.clock import monotonic
from muniment.model.process import LiveProcess, Process, ProcessEnding
from muniment.procs.platform.identity import everyone, started_at
from muniment.procs.registry import ProcessRegistry

__all__ = ["TreeWatch", "WatchedTree"]

LOOK_S = 0.25
_MOST_ROWS = 256
_MEMORY_EVERY_S = 1.0


class WatchedTree:
    """A hook that runs, with all that it began."""

    def __init__(
        self, row: Process | None, keepers: tuple[int, ...], command: int, most: int, over: Callable[[int], None]
    ) -> None:
        """`over` is called when all of it together has more than `most` bytes of memory; 0: no limit."""
        self.row, self.keepers, self.most, self.over = row, keepers, most, over
        self.entered = {command}
        """Numbers that have a row already: the hook's own, and those that it named itself."""
        self.seen: dict[tuple[int, int], str] = {}
        """Rows by number and start ticks of what it began; empty for one that was seen once."""
        self.rows = 0


class TreeWatch:
    """Looks at all running hooks at once, four times a second while there are any."""

    def __init__(self, registry: ProcessRegistry) -> None:
        self._registry = registry
        self._trees: set[WatchedTree] = set()
        self._task: asyncio.Task[None] | None = None
        self._weigh_at = 0.0

    def add(self, tree: WatchedTree) -> None:
        """Watch a tree from now on."""
        self._trees.add(tree)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def remove(self, tree: WatchedTree) -> None:
        """It has ended, with all that it began."""
        self._trees.discard(tree)
        ids = [row for row in tree.seen.values() if row]
        if ids:
            await asyncio.to_thread(self._gone, ids)

    async def _run(self) -> None:
        while self._trees:
            await asyncio.sleep(LOOK_S)
            if self._trees:
                await asyncio.to_thread(self._look, list(self._trees))

    def _look(self, trees: list[WatchedTree]) -> None:
        living = everyone()
        children: dict[int, list[LiveProcess]] = defaultdict(list)
        for one in living.values():
            children[one.parent].append(one)
        weigh = monotonic() >= self._weigh_at
        if weigh:
            self._weigh_at = monotonic() + _MEMORY_EVERY_S
        for tree in trees:
            members = _below(tree, children)
            if tree.row is not None:
                self._note(tree, tree.row, members)
            used = sum(one.rss for one in members.values())
            if weigh and tree.most and used > tree.most:
                tree.over(used)

    def _note(self, tree: WatchedTree, row: Process, members: Mapping[tuple[int, int], LiveProcess]) -> None:
        """A row for each program that was there at the last look, too; the end of those that are gone."""
        for key, one in members.items():
            if one.pid in tree.entered or tree.rows >= _MOST_ROWS:
                continue
            if key not in tree.seen:
                tree.seen[key] = ""
            elif not tree.seen[key] and (words := _command_of(one.pid)):
                tree.rows += 1
                tree.seen[key] = self._registry.seen(row, words, one.pid, one.start_ticks, started_at(one))
        gone = [key for key in tree.seen if key not in members]
        self._gone([tree.seen.pop(key) for key in gone])

    def _gone(self, rows: list[str]) -> None:
        for row in filter(None, rows):
            self._registry.gone(row, ProcessEnding(None))


def _below(tree: WatchedTree, children: Mapping[int, list[LiveProcess]]) -> dict[tuple[int, int], LiveProcess]:
    """What descends from the shims of a hook, these left out."""
    found: dict[tuple[int, int], LiveProcess] = {}
    waiting = list(tree.keepers)
    while waiting:
        for one in children.get(waiting.pop(), []):
            if (one.pid, one.start_ticks) not in found:
                found[one.pid, one.start_ticks] = one
                waiting.append(one.pid)
    return {key: one for key, one in found.items() if one.pid not in tree.keepers and not one.ended}


def _command_of(pid: int) -> tuple[str, ...]:
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        return tuple(word.decode("utf-8", "replace") for word in words if words != [b""])
    return ()
