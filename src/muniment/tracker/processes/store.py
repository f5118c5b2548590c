"""Rows of machines and processes: each statement once, for SQLite and PostgreSQL alike.

The SQLite store does without SQLAlchemy: a crawl writes the row of its first worker before it loads anything else
(decision 0095). In PostgreSQL the same statements go through SQLAlchemy's engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from muniment.model.process import (
    Machine,
    MachineBinary,
    Output,
    Process,
    ProcessEnding,
    ProcessFilter,
    ProcessOwners,
    ProcessPlace,
)

__all__ = ["COLUMNS", "PROCESSES_REVISION", "ProcessStore", "RowConnection"]

PROCESSES_REVISION = "0003"
"""The migration that `schema/processes.py` and `schema.sql` equal; a contract test holds them together."""

_PLAIN = tuple(name for name in Process.__struct_fields__ if name not in {"stdout", "stderr"})
_OF_OUTPUT = Output.__struct_fields__
COLUMNS = (*_PLAIN, *(f"{stream}_{name}" for stream in ("stdout", "stderr") for name in _OF_OUTPUT))
"""Of the table `processes`, in the order of the fields of `Process`."""

_ALL = ", ".join(f"p.{name}" for name in COLUMNS)
_MACHINE = Machine.__struct_fields__

_QUEUE = f"INSERT INTO processes ({', '.join(COLUMNS)}) VALUES ({', '.join(f':{name}' for name in COLUMNS)})"
_MEET = (
    f"INSERT INTO machines ({', '.join(_MACHINE)}) VALUES ({', '.join(f':{name}' for name in _MACHINE)})"
    " ON CONFLICT (id) DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in _MACHINE if name != "id")
)
_BINARY = MachineBinary.__struct_fields__
_FOUND = (
    f"INSERT INTO binaries ({', '.join(_BINARY)}) VALUES ({', '.join(f':{name}' for name in _BINARY)})"
    " ON CONFLICT (machine_id, name, abspath) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _BINARY[3:])
)
_STARTED = (
    "UPDATE processes SET status = 'running', pid = :pid, start_ticks = :ticks, started_at = :at, beat_at = :at"
    " WHERE id = :id AND status = 'queued'"
)
_ENDED = (
    "UPDATE processes SET status = 'exited', ended_at = :at, "
    + ", ".join(f"{name} = :{name}" for name in (*ProcessEnding.__struct_fields__, *COLUMNS[len(_PLAIN) :]))
    # what is known replaces what a sweep could not know
    + " WHERE id = :id AND (status <> 'exited' OR (exit_code IS NULL AND CAST(:exit_code AS INTEGER) IS NOT NULL))"
)
_BELOW = (
    "WITH RECURSIVE below (id) AS (SELECT CAST(:id AS TEXT) UNION"
    " SELECT c.id FROM processes c JOIN below b ON c.parent_id = b.id)"
    f" SELECT {_ALL} FROM below b JOIN processes p ON p.id = b.id"
)
# UNION drops what was met before, so that a circle of parents ends
_ABOVE = (
    "WITH RECURSIVE above (id) AS (SELECT s.parent_id FROM processes s WHERE s.id = :id UNION"
    " SELECT c.parent_id FROM processes c JOIN above a ON c.id = a.id WHERE c.parent_id IS NOT NULL)"
    f" SELECT {_ALL} FROM above a JOIN processes p ON p.id = a.id"
)
_OVER = (
    "NOT EXISTS (SELECT 1 FROM processes o WHERE o.root_id = r.id AND ((o.status = 'exited' AND o.ended_at >= :before)"
    " OR (o.status <> 'exited' AND o.beat_at >= :silent)))"
)
_WHOSE = " AND ((r.machine_id = :machine AND (r.uid IS NULL OR r.uid = :uid))"
_OR_ELSEWHERE = " OR r.machine_id <> :machine"
_LOOKS = "(p.process_type = 'cli' AND substr(p.label, 1, 8) = 'process ')"
_FAILED = "EXISTS (SELECT 1 FROM processes f WHERE f.root_id = r.id AND (f.exit_code IS NULL OR f.exit_code <> 0))"


class RowConnection(Protocol):
    """The way to a database: what differs between SQLite and PostgreSQL."""

    def read(self, sql: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        """The rows of a select."""

    def write(self, sql: str, rows: Sequence[dict[str, Any]]) -> int:
        """Run a statement for each row, in one transaction; how many rows it changed."""

    def close(self) -> None:
        """Give the connection back."""


class ProcessStore:
    """The rows of machines and processes in one database; every call is one transaction, and may raise TrackerError."""

    def __init__(self, line: RowConnection) -> None:
        self._line = line

    def meet(self, machine: Machine) -> None:
        """Note a machine."""
        self._line.write(_MEET, [msgspec.structs.asdict(machine)])

    def found(self, binary: MachineBinary) -> None:
        """Note a program of a machine."""
        self._line.write(_FOUND, [msgspec.structs.asdict(binary)])

    def binaries(self, machine_id: str) -> list[MachineBinary]:
        """The programs of a machine that hooks found, by name."""
        known = f"SELECT {', '.join(_BINARY)} FROM binaries WHERE machine_id = :machine ORDER BY name, abspath"
        return [MachineBinary(*row) for row in self._line.read(known, {"machine": machine_id})]

    def queue(self, rows: Sequence[Process]) -> None:
        """Add rows; all or none."""
        self._line.write(_QUEUE, [_values(row) for row in rows])

    def started(self, process_id: str, pid: int, start_ticks: int | None, at: int) -> None:
        """Note that a queued process runs."""
        self._line.write(_STARTED, [{"id": process_id, "pid": pid, "ticks": start_ticks, "at": at}])

    def ended(self, process_id: str, ending: ProcessEnding, at: int, stdout: Output, stderr: Output) -> None:
        """Note how a process ended, unless that is known."""
        row = {"id": process_id, "at": at, **msgspec.structs.asdict(ending)}
        self._line.write(_ENDED, [{**row, **_output("stdout", stdout), **_output("stderr", stderr)}])

    def beat(self, process_ids: Sequence[str], at: int) -> None:
        """Note that processes are alive."""
        if process_ids:
            self._line.write(
                "UPDATE processes SET beat_at = :at WHERE id = :id AND status <> 'exited'",
                # in one order, so that two sweeps never wait for each other
                [{"id": one, "at": at} for one in sorted(process_ids)],
            )

    def get(self, process_id: str) -> Process | None:
        """The row of an id."""
        found = self._select("WHERE p.id = :id", id=process_id)
        return found[0] if found else None

    def named(self, text: str) -> list[Process]:
        """Rows whose id begins so, a few at most."""
        return self._select("WHERE p.id >= :low AND p.id < :high ORDER BY p.id LIMIT 3", low=text, high=f"{text}g")

    def by_pid(self, place: ProcessPlace, pid: int) -> list[Process]:
        """Rows of running processes with a number in a place: whole ones before parts, then the newest."""
        return self._select(
            "WHERE p.machine_id = :machine AND p.pid = :pid AND p.status = 'running'"
            " AND p.boot_id = :boot AND p.pid_namespace = :namespace ORDER BY p.depth, p.started_at DESC",
            machine=place.machine_id,
            boot=place.boot_id,
            namespace=place.pid_namespace,
            pid=pid,
        )

    def unended(self, machine_id: str, root_id: str = "") -> list[Process]:
        """Rows of a machine that are not exited; of one tree, or all."""
        if root_id:
            return self._select(
                "WHERE p.root_id = :root AND p.status IN ('queued', 'running') AND p.machine_id = :machine",
                root=root_id,
                machine=machine_id,
            )
        return self._select("WHERE p.status IN ('queued', 'running') AND p.machine_id = :machine", machine=machine_id)

    def living(self, root_id: str) -> int:
        """The number of rows of a tree that are not exited."""
        sql = "SELECT count(*) FROM processes WHERE root_id = :root AND status IN ('queued', 'running')"
        return int(self._line.read(sql, {"root": root_id})[0][0])

    def below(self, process_id: str) -> list[Process]:
        """The row of an id and all its descendants, in no order."""
        return [_process(row) for row in self._line.read(_BELOW, {"id": process_id})]

    def tree(self, root_id: str) -> list[Process]:
        """All rows of a tree, in no order."""
        return self._select("WHERE p.root_id = :root", root=root_id)

    def above(self, process_id: str) -> list[Process]:
        """All ancestors of a process, in no order; in a circle, itself too."""
        return [_process(row) for row in self._line.read(_ABOVE, {"id": process_id})]

    def newest(self, most: int, *, status: str = "", roots_only: bool = False, looks_too: bool = True) -> list[Process]:
        """The rows that were queued last; within a millisecond, what was launched before who launched it.

        `looks_too`: also those of `muniment process`, which look at the others.
        """
        conditions = [
            *([] if looks_too else [f"NOT {_LOOKS}"]),
            *(["p.status = :status"] if status else []),
            *(["p.parent_id IS NULL"] if roots_only else []),
        ]
        where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
        values = {"most": most, **({"status": status} if status else {})}
        return self._select(f"{where}ORDER BY p.queued_at DESC, p.depth DESC, p.id LIMIT :most", **values)

    def fitting(self, most: int, wanted: ProcessFilter, after: tuple[int, int, str] | None = None) -> list[Process]:
        """The rows that were queued last and fit; only those `after` the time, depth and id of the last one known."""
        given = {**msgspec.structs.asdict(wanted), "text": _like(wanted.text)}
        values = {name: value for name, value in given.items() if value}
        conditions = [_FITS[name] for name in values]
        if after is not None:
            conditions.append(_AFTER)
            values |= dict(zip(("at", "depth", "last"), after, strict=True))
        where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
        return self._select(f"{where}ORDER BY p.queued_at DESC, p.depth DESC, p.id LIMIT :most", most=most, **values)

    def children(self, process_ids: Sequence[str]) -> dict[str, int]:
        """How many children processes have, those without any left out."""
        names = {f"p{number}": one for number, one in enumerate(process_ids)}
        if not names:
            return {}
        listed = ", ".join(f":{name}" for name in names)
        sql = f"SELECT parent_id, count(*) FROM processes WHERE parent_id IN ({listed}) GROUP BY parent_id"
        return {str(row[0]): int(row[1]) for row in self._line.read(sql, names)}

    def machines(self) -> list[Machine]:
        """Every machine that is known."""
        return [
            Machine(**dict(zip(_MACHINE, row, strict=True)))
            for row in self._line.read(f"SELECT {', '.join(_MACHINE)} FROM machines ORDER BY hostname", {})
        ]

    def prune(
        self,
        before: int,
        whose: ProcessOwners | None = None,
        *,
        silent_before: int,
        keep_failed: bool = False,
        dry_run: bool = False,
    ) -> list[Process]:
        """Remove trees that ended before a moment, each whole: all, or `whose`; what was removed.

        A row that is not exited counts as ended when its heartbeat is before `silent_before`.
        """
        sql = f"SELECT r.id FROM processes r WHERE r.root_id = r.id AND r.queued_at < :before AND {_OVER}"
        values: dict[str, Any] = {"before": before, "silent": silent_before}
        if keep_failed:
            sql += f" AND NOT {_FAILED}"
        if whose is not None:
            sql += _WHOSE + (_OR_ELSEWHERE if whose.elsewhere_too else "") + ")"
            values |= {"machine": whose.machine_id, "uid": whose.uid}
        roots = [str(row[0]) for row in self._line.read(f"{sql} ORDER BY r.id", values)]
        gone = [row for root in roots for row in self._select("WHERE p.root_id = :root", root=root)]
        if not dry_run and roots:
            self._line.write("DELETE FROM processes WHERE root_id = :root", [{"root": root} for root in roots])
        return gone

    def close(self) -> None:
        """Give the connection back."""
        self._line.close()

    def _select(self, rest: str, **values: Any) -> list[Process]:
        return [_process(row) for row in self._line.read(f"SELECT {_ALL} FROM processes p {rest}", values)]


_SEARCHED = ("cmd", "stdout_head", "stdout_tail", "stderr_head", "stderr_tail")
_HOLDS = "lower(p.{}) LIKE lower(CAST(:text AS TEXT)) ESCAPE '!'"
_FITS = {
    "kind": "p.process_type = :kind",
    "status": "p.status = :status",
    "machine": "p.machine_id = :machine",
    "text": "("
    + " OR ".join(f"lower(p.{name}) LIKE lower(CAST(:text AS TEXT)) ESCAPE '!'" for name in _SEARCHED)
    + ")",
    "root": "p.root_id = :root",
    "parent": "p.parent_id = :parent",
    "since": "p.queued_at >= :since",
}
"""What each field of `ProcessFilter` asks."""
_AFTER = "(p.queued_at < :at OR (p.queued_at = :at AND (p.depth < :depth OR (p.depth = :depth AND p.id > :last))))"


def _like(text: str) -> str:
    """A pattern that finds a text anywhere; empty for none."""
    escaped = text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{escaped}%" if text else ""


def _output(stream: str, output: Output) -> dict[str, Any]:
    return {f"{stream}_{name}": getattr(output, name) for name in _OF_OUTPUT}


def _values(row: Process) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in _PLAIN}
    texts = {name: msgspec.json.encode(values[name]).decode() for name in ("cmd", "env")}
    return {**values, **texts, **_output("stdout", row.stdout), **_output("stderr", row.stderr)}


def _process(row: Sequence[Any]) -> Process:
    plain, of_outputs = row[: len(_PLAIN)], row[len(_PLAIN) :]
    values = dict(zip(_PLAIN, plain, strict=True))
    values["cmd"] = _command(values["cmd"])
    values["env"] = _environment(values["env"])
    values["timed_out"] = bool(values["timed_out"])
    each = len(_OF_OUTPUT)
    return Process(**values, stdout=Output(*of_outputs[:each]), stderr=Output(*of_outputs[each:]))


_words = msgspec.json.Decoder(tuple[str, ...])
_pairs = msgspec.json.Decoder(tuple[tuple[str, str], ...])


def _command(text: str) -> tuple[str, ...]:
    try:
        return _words.decode(text)
    except msgspec.DecodeError:
        return (text,)  # damaged by hand: shown as it is


def _environment(text: str) -> tuple[tuple[str, str], ...]:
    try:
        return _pairs.decode(text)
    except msgspec.DecodeError:
        return ()
