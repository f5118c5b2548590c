"""Dead origins: they never answered, or may not be reached, so that nothing is asked of them in this run any more."""

from __future__ import annotations

from muniment.model.url import host_of, origin_of
from muniment.rules.hosts.politeness import NAME_AGAIN_MS, HostSignal, is_proof

__all__ = ["DeadOrigins"]

_MOST_DEAD = 10_000
"""Maximum of dead origins that are remembered; a forgotten one is found dead again."""
_NONE: dict[str, str] = {}


def _host_of(origin: str) -> str:
    """The host of an origin, or of a name."""
    return host_of(origin) if "://" in origin else origin


class DeadOrigins(dict[str, str]):
    """Origin, or name without an address that may be reached → why it is dead, as `code: text`."""

    def __init__(self) -> None:
        super().__init__()
        self._failures: dict[str, int] = {}
        """Failures in a row of origins that never answered and are not dead yet."""
        self._nameless: dict[str, int] = {}
        """Names that were not found, and when this was taken in first (Unix ms)."""
        self._by_host: dict[str, dict[str, str]] = {}

    def of(self, host: str) -> dict[str, str]:
        """Those that are of a host, by its name; the name itself is one."""
        return self._by_host.get(host, _NONE)

    def is_nameless(self, host: str) -> bool:
        """Whether a name was not found when it was asked for last; one that is dead by this is one still."""
        return host in self._nameless

    def fails(self, signal: HostSignal, now: int, *, heard: bool) -> str:
        """Count a failure of an origin; returns why it is dead if this failure made it so, or an empty text.

        `heard`: its host has answered.
        """
        if signal.origin in self:
            return ""
        if signal.kind == "barred":
            return self._die(signal.origin, signal.text)
        if signal.kind == "nameless":
            first = self._nameless.setdefault(signal.origin, now)
            return self._give_up(signal, 2) if signal.asked_at >= first + NAME_AGAIN_MS else ""
        failures = self._failures[signal.origin] = self._failures.get(signal.origin, 0) + 1
        return self._give_up(signal, failures) if is_proof(failures, heard=heard) else ""

    def _give_up(self, signal: HostSignal, failures: int) -> str:
        return self._die(signal.origin, f"dead-host: given up after {failures} failures, the last one {signal.text}")

    def _die(self, origin: str, reason: str) -> str:
        self._failures.pop(origin, None)
        if len(self) >= _MOST_DEAD:
            self._forget(next(iter(self)))
        host = _host_of(origin)
        self._by_host[host] = {**self.of(host), origin: reason}
        self[origin] = reason
        return reason

    def _forget(self, origin: str) -> None:
        del self[origin]
        self._nameless.pop(origin, None)
        host = _host_of(origin)
        left = {one: reason for one, reason in self._by_host.pop(host).items() if one != origin}
        if left:
            self._by_host[host] = left

    def answers(self, url: str) -> None:
        """The origin of a URL has answered."""
        self._begin_anew(origin_of(url))
        self._begin_anew(host_of(url))

    def _begin_anew(self, origin: str) -> None:
        self._failures.pop(origin, None)
        self._nameless.pop(origin, None)

    def begin_anew(self) -> None:
        """The failures so far were not the fault of the hosts."""
        self._failures.clear()
        self._nameless.clear()
