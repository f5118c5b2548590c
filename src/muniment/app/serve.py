"""A server's tracker and its place on the network: found, locked and fit before anybody is answered."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from muniment.app.listener import listener
from muniment.app.processes import CommandRow
from muniment.clock import now_ms
from muniment.control.fleet.trackers import refuse_fleet
from muniment.control.tracker_location import database_url
from muniment.errors import TrackerError, TrackerLostError, UsageError
from muniment.live.address import RedisAddress
from muniment.live.ports import PlaneOptions
from muniment.model.place import TrackerPlace
from muniment.procs.lock import TRACKER_LOCK, lock_directory, make_directory
from muniment.procs.registry import ProcessRegistry
from muniment.settings.environment import processes_directory
from muniment.tracker.connect import tracker_at
from muniment.tracker.fleet.session_leases import tracker_id

if TYPE_CHECKING:
    from muniment.control.fleet.archives import FleetArchives

__all__ = ["PlaneOrder", "ServeOrder", "ServedTracker", "served_tracker"]


class PlaneOrder(Struct, frozen=True, kw_only=True):
    """The Redis that a server shows its jobs in, and how."""

    address: RedisAddress
    password: str
    options: PlaneOptions


class ServeOrder(Struct, frozen=True, kw_only=True):
    """What a server is to do."""

    host: str
    port: int
    """0: any that is free."""
    state: Path | None
    database: str | None
    lease_s: float
    allow_private: bool
    public_url: str = ""
    """What its pages answer to; empty: where it listens."""
    plane: PlaneOrder | None = None
    """Its live plane."""
    archives: tuple[Path, ...] = ()
    """Directories of pipelines whose captures its pages show."""


class ServedTracker(Struct, frozen=True):
    """A tracker that is ready, and the socket where requests will come."""

    order: ServeOrder
    place: TrackerPlace
    socket: socket.socket
    registry: ProcessRegistry = field(default_factory=ProcessRegistry)
    """The rows of its processes."""
    archives: FleetArchives | None = None

    @property
    def on_server(self) -> bool:
        """Whether it is in PostgreSQL, beside other servers perhaps."""
        return bool(self.place.database)

    @property
    def url(self) -> str:
        """Where it is reached."""
        host, port = self.socket.getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"


@contextmanager
def served_tracker(order: ServeOrder, row: CommandRow) -> Iterator[ServedTracker]:
    """Take the address and the tracker; both are given back in the end.

    Raises UsageError for what cannot be served, TrackerLostError when the database is not there.
    """
    with listener(order.host, order.port, "--listen") as bound, _locked(order) as place:
        known = _make_fit(place)
        archives = _archives(order, known)
        row.keep_in(order.state, place.database, "serve")
        row.registry.current()
        yield ServedTracker(order, place, bound, row.registry, archives)


def _archives(order: ServeOrder, tracker_id: str) -> FleetArchives | None:
    if not order.archives:
        return None
    from muniment.control.fleet.archives import FleetArchives  # noqa: PLC0415  (a server without them loads no Arrow)

    return FleetArchives(order.archives, tracker_id)


@contextmanager
def _locked(order: ServeOrder) -> Iterator[TrackerPlace]:
    """The place of the tracker, which is this server's alone in a directory."""
    if order.database is not None:
        # no output directory: what is large is kept where this user's programs keep things
        yield TrackerPlace(processes_directory(), database_url(order.database))
        return
    assert order.state is not None
    make_directory(order.state)
    locks = lock_directory(order.state, TRACKER_LOCK)
    try:
        yield TrackerPlace(order.state)
    finally:
        for lock in locks:
            os.close(lock)


def _make_fit(place: TrackerPlace) -> str:
    """Make the tables, or bring them up to date, while there is somebody who reads why that cannot be done.

    Returns the tracker's id.
    """
    try:
        with tracker_at(place) as db:
            refuse_fleet(db)
            return tracker_id(db, now_ms())
    except TrackerLostError:
        raise
    except TrackerError as error:
        raise UsageError(str(error)) from error
