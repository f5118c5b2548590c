"""Records that a hook prints while it runs take effect at once: links, tags, settings, processes."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec import structs

from muniment.model.process import Process, ProcessEnding
from muniment.procs.hooks.hook_process import HookProcess
from muniment.procs.registry import ProcessRegistry
from muniment.rules.hooks.records import (
    BadRecord,
    BinaryRecord,
    LinkRecord,
    MachineRecord,
    OtherRecord,
    ProcessRecord,
    ResultRecord,
    TagRecord,
    read_line,
)

__all__ = ["HookRecordHandler", "RunSettings"]

_MOST_RECORDS = 100_000
_LINKS_AT_ONCE = 1000
_MOST_BINARIES = 1000
"""Programs of one run that have rows."""
_NOT_OF_A_NAME = re.compile(r"[^A-Za-z0-9]+")
_log = logging.getLogger(__name__)


class RunSettings:
    """Settings that hooks of this run gave to later ones, and the registry of what they report."""

    def __init__(self, registry: ProcessRegistry) -> None:
        self.registry = registry
        self.given: dict[str, str] = {}
        self._warned: set[str] = set()
        self._noted: set[BinaryRecord] = set()

    def found(self, record: BinaryRecord) -> None:
        """A program was found: it has a row, and later hooks get its place, if it can be run."""
        self._note(record)
        path = Path(record.abspath)
        if path.is_absolute() and path.is_file() and os.access(path, os.X_OK):
            self.given[f"{_NOT_OF_A_NAME.sub('_', record.name).upper()}_BINARY"] = record.abspath

    def _note(self, record: BinaryRecord) -> None:
        """A row for each program of a run, once."""
        if record not in self._noted and len(self._noted) < _MOST_BINARIES:
            self._noted.add(record)
            self.registry.found(*structs.astuple(record))

    def warn(self, kind: str) -> None:
        """Say once that a type of record means nothing."""
        if kind not in self._warned and len(self._warned) < 100:
            self._warned.add(kind)
            _log.warning("hooks: records of type %r are passed over", kind)


class HookRecordHandler:
    """The output of one try, line by line."""

    def __init__(self, url: str, send: Callable[[list[str]], Awaitable[None]], settings: RunSettings) -> None:
        self._url, self._send, self._settings = url, send, settings
        self._run: HookProcess | None = None
        self._held: list[str] = []
        self._sending: set[asyncio.Future[None]] = set()
        self.result: ResultRecord | None = None
        self.title = ""
        self.tags: list[str] = []
        self.records = self.bad_lines = self.links = 0

    def attach(self, run: HookProcess) -> None:
        """Name the try that this is the output of."""
        self._run = run

    def heard(self, line: bytes | None) -> None:
        """Take in a line; None for one that is too long."""
        record = BadRecord() if line is None else read_line(line)
        match record:
            case None:
                return
            case BadRecord():
                self.bad_lines += 1
            case ResultRecord():
                self.records += 1
                self.result = record
            case _:
                self.records += 1
                if self.records <= _MOST_RECORDS:
                    self._act(record)

    def _act(self, record: object) -> None:
        match record:
            case LinkRecord(url, title, tags):
                if url == self._url:
                    self.title = title or self.title
                    self.tags += tags
                else:
                    self._link(url)
            case TagRecord(name):
                self.tags.append(name)
            case BinaryRecord():
                self._settings.found(record)
            case MachineRecord(config):
                self._settings.given.update(config)
            case ProcessRecord():
                self._note(record)
            case OtherRecord(kind):
                self._settings.warn(kind)

    def _link(self, url: str) -> None:
        self.links += 1
        self._held.append(url)
        if len(self._held) >= _LINKS_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Send the links that are held."""
        if self._held:
            urls, self._held = self._held, []
            sending = asyncio.ensure_future(self._send(list(dict.fromkeys(urls))))
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)

    async def sent(self) -> None:
        """Wait until all links are on their way."""
        while self._sending:
            await asyncio.gather(*self._sending)

    def _note(self, record: ProcessRecord) -> None:
        row = self._run.row if self._run is not None else None
        if row is not None and self._run is not None and self._run.enters(record.pid):
            self._enter(row, record)

    def _enter(self, row: Process, record: ProcessRecord) -> None:
        began = int((record.started_at or 0) * 1000)
        made = self._settings.registry.seen(row, record.cmd, record.pid or 0, 0, began, pwd=record.pwd)
        if made:
            self._settings.registry.gone(made, ProcessEnding(record.exit_code))
