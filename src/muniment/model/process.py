"""Machines and processes: what the store keeps of every operating-system process that Muniment runs."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

__all__ = [
    "LiveProcess",
    "Machine",
    "MachineBinary",
    "Output",
    "Process",
    "ProcessEnding",
    "ProcessFilter",
    "ProcessOwners",
    "ProcessPlace",
    "ProcessType",
    "Status",
]

ProcessType = Literal["cli", "supervisord", "orchestrator", "worker", "hook", "binary"]
Status = Literal["queued", "running", "exited"]


class Machine(Struct, frozen=True, kw_only=True):
    """A host computer."""

    id: str
    """A hash of the operating system's own id for it."""
    hostname: str
    system: str
    """Kernel and architecture."""
    cpus: int
    boot_id: str
    seen_at: int
    """Unix ms of the last process that was begun there."""


class MachineBinary(Struct, frozen=True):
    """A program of a machine, as a hook reported it."""

    machine_id: str
    name: str
    abspath: str
    version: str
    sha256: str
    binprovider: str
    seen_at: int
    """Unix ms."""


class ProcessPlace(Struct, frozen=True):
    """The place in which a process number is unique: a namespace of a machine since its start."""

    machine_id: str
    boot_id: str
    pid_namespace: int


class ProcessOwners(Struct, frozen=True):
    """The processes of a user of a machine, and perhaps all those of other machines."""

    machine_id: str
    uid: int
    elsewhere_too: bool = False


class LiveProcess(Struct, frozen=True):
    """A process as the kernel shows it at one moment."""

    pid: int
    parent: int
    session: int
    state: str
    """The kernel's letter; `Z` has ended and waits to be reaped."""
    start_ticks: int
    """When it began, in clock ticks since boot: with its number, which process it is."""
    cpu_ms: int
    rss: int
    """Bytes of memory now."""

    @property
    def ended(self) -> bool:
        """Whether it runs no more, reaped or not."""
        return self.state in "ZX"


class Output(Struct, frozen=True):
    """The output of a process on one stream, shortened; the whole is in a file."""

    head: str = ""
    tail: str = ""
    """The last of it, as far as it is not in the head."""
    size: int = 0
    sha256: str = ""


class ProcessEnding(Struct, frozen=True):
    """The end of a process."""

    exit_code: int | None
    """None: unknown. Minus the signal's number: killed."""
    timed_out: bool = False
    cpu_ms: int | None = None
    max_rss: int | None = None
    """Bytes."""


class Process(Struct, frozen=True, kw_only=True):
    """One process, queued, running or exited; the fields are the columns of its row."""

    id: str
    parent_id: str | None = None
    root_id: str
    depth: int = 0
    attempt: int = 1
    process_type: ProcessType
    label: str = ""
    """What it does within its type: `orchestrator`, `fetcher`, `index`."""
    status: Status = "queued"
    machine_id: str
    boot_id: str
    pid_namespace: int
    uid: int | None = None
    """The user it runs as; None in rows of an older Muniment."""
    pid: int | None = None
    start_ticks: int | None = None
    """From the kernel; None where the kernel does not have it."""
    cmd: tuple[str, ...]
    """Secrets masked."""
    pwd: str
    env: tuple[tuple[str, str], ...] = ()
    """Variables that say how it ran, secrets masked."""
    directory: str = ""
    """The directory of its own files on its machine; empty without files."""
    timeout: float | None = None
    """Seconds after which it is ended."""
    queued_at: int
    """Unix ms, as all times here."""
    started_at: int | None = None
    ended_at: int | None = None
    beat_at: int
    """When somebody who can judge it last saw it alive."""
    exit_code: int | None = None
    timed_out: bool = False
    cpu_ms: int | None = None
    max_rss: int | None = None
    stdout: Output = Output()
    stderr: Output = Output()

    @property
    def place(self) -> ProcessPlace:
        """The place in which its number is unique."""
        return ProcessPlace(self.machine_id, self.boot_id, self.pid_namespace)


class ProcessFilter(Struct, frozen=True, kw_only=True):
    """Which processes are asked for; what is empty asks nothing."""

    kind: str = ""
    """The type."""
    status: str = ""
    machine: str = ""
    text: str = ""
    """In command or output."""
    root: str = ""
    parent: str = ""
    since: int = 0
    """Queued at this time (Unix ms), or later."""
