"""The hosts of a job in memory: a host of which nothing is left to do costs some 150 bytes."""

from __future__ import annotations

from array import array

from msgspec import Struct

__all__ = ["Host", "HostTable"]


class Host(Struct, frozen=True):
    """A host of a job."""

    host_id: int
    name: str
    site_paths: str
    """Path prefixes that belong to the site, one a line; empty for none."""
    answered: str = ""
    """Which of its origins answered in this job, as `http https:8443`; empty for none."""


class HostTable:
    """Hosts by number and by name. Numbers are small and dense; most hosts differ in nothing but their names."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str | None] = []
        """By number."""
        self._answered = array("I")
        """The same: places in `_texts`."""
        self._texts: list[str] = [""]
        self._places: dict[str, int] = {"": 0}
        self._site_paths: dict[int, str] = {}
        """Of the few hosts that belong to the site."""

    @property
    def highest(self) -> int:
        """The highest number; 0 without any host."""
        return max(0, len(self._names) - 1)

    @property
    def any_answered(self) -> bool:
        """Whether an origin of any host has answered."""
        return len(self._texts) > 1

    def __contains__(self, name: str) -> bool:
        """Whether the host of that name is here."""
        return name in self._numbers

    def put(self, host: Host) -> None:
        """Add a host, or what has changed about one."""
        host_id = host.host_id
        if host_id >= len(self._names):
            more = host_id + 1 - len(self._names)
            self._names.extend([None] * more)
            self._answered.extend([0] * more)
        if self._names[host_id] is None:
            self._names[host_id] = host.name
            self._numbers[host.name] = host_id
        if host.site_paths:
            self._site_paths[host_id] = host.site_paths
        else:
            self._site_paths.pop(host_id, None)
        self.answer(host_id, host.answered)

    def answer(self, host_id: int, answered: str) -> None:
        """Which of a host's origins have answered."""
        place = self._places.get(answered)
        if place is None:
            place = self._places[answered] = len(self._texts)
            self._texts.append(answered)
        self._answered[host_id] = place

    def get(self, name: str) -> Host | None:
        """The host of that name."""
        host_id = self._numbers.get(name)
        return (
            None if host_id is None else Host(host_id, name, self._site_paths.get(host_id, ""), self.answered(host_id))
        )

    def of_site(self, host_id: int) -> bool:
        """Whether some path of a host belongs to the site."""
        return host_id in self._site_paths

    def name(self, host_id: int) -> str | None:
        """The name of a host."""
        return self._names[host_id] if host_id < len(self._names) else None

    def answered(self, host_id: int) -> str:
        """Which of a host's origins have answered."""
        return self._texts[self._answered[host_id]]
