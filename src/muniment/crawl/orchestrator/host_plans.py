"""Plans: what the schedule keeps of each host that has pages or connections. A host with neither is forgotten."""

from __future__ import annotations

__all__ = ["HostPlan", "HostPlans"]

_AGAIN_MS, _MOST_DOUBLED = 250, 7
"""When a host is looked at again, and how often this time is doubled."""


class HostPlan:
    """Pages and permits of one host."""

    __slots__ = (
        "alarm", "gap_ms", "grant", "granted", "held", "hold_until", "host_id", "later_until", "limit", "looks", "name",
        "owner", "pending", "slow_ms", "told", "wake_at",
    )  # fmt: skip

    def __init__(self, host_id: int, name: str) -> None:
        self.host_id, self.name = host_id, name
        # how many permits it may have in all, when that is fewer than others have; the gap between its requests that it
        # asks for, that its throttling asks for; and until when it gets no requests
        self.limit: int | None = None
        # how many of them this run was granted, where a tracker divides them over several
        self.grant: int | None = None
        self.gap_ms = self.slow_ms = self.hold_until = 0
        self.pending = 0
        self.wake_at = 0
        # how often it was found since that it had no page but those of origins that are left alone
        self.looks = 0
        # when it is offered again without another cause; 0 for never
        self.alarm = 0
        # until when others go first, for which it has an alarm of its own; 0 when they do not
        self.later_until = 0
        self.owner: int | None = None
        # The most connections that a worker may have open, and the number last sent to it: the first falls to that
        # only when the worker confirms it.
        self.granted: dict[int, int] = {}
        self.told: dict[int, int] = {}
        self.held: dict[int, int] = {}

    def look_now(self, *, only_again: bool = False) -> None:
        """There may be pages for which there were none a moment ago; `only_again`: if it is looked at less often."""
        if self.looks or not only_again:
            self.wake_at = self.looks = 0

    def look_again(self, now: int, rest_until: int) -> None:
        """Fewer pages were due than wait: look shortly, and less and less often while none of another origin comes.

        `rest_until` is when the first of its origins that rest may be asked, 0 when none does.
        """
        self.wake_at = now + _AGAIN_MS
        if rest_until:
            self.looks += 1
            self.wake_at = min(rest_until, now + (_AGAIN_MS << min(self.looks, _MOST_DOUBLED)))

    @property
    def busy(self) -> bool:
        """Whether pages of it wait or are out."""
        return self.pending > 0 or any(self.held.values())

    def is_bare(self, now: int) -> bool:
        """Whether a new plan would be equal: it has no pages, no connections and no waits."""
        if self.pending or self.granted or self.told or self.later_until or self.slow_ms or self.alarm:
            return False
        return max(self.wake_at, self.hold_until) <= now and not any(self.held.values())


class HostPlans(dict[int, HostPlan]):
    """Plans by host number; a missing host counts as one without pages or permits."""

    def __init__(self) -> None:
        super().__init__()
        self._by_name: dict[str, HostPlan] = {}
        self.busy: dict[int, None] = {}
        """The hosts with pages that wait or are out."""

    def __missing__(self, host_id: int) -> HostPlan:
        return HostPlan(host_id, "")

    def make(self, host_id: int, name: str) -> HostPlan:
        """The plan of a host, a new one if there is none."""
        plan = self.get(host_id)
        if plan is None:
            plan = self[host_id] = self._by_name[name] = HostPlan(host_id, name)
        return plan

    def named(self, name: str) -> HostPlan | None:
        """The plan of the host of that name, if there is one."""
        return self._by_name.get(name)

    def note(self, plan: HostPlan) -> bool:
        """Remember whether a host is busy; returns whether that has changed."""
        was, plan_is = plan.host_id in self.busy, plan.busy
        if plan_is:
            self.busy[plan.host_id] = None
        else:
            self.busy.pop(plan.host_id, None)
        return was != plan_is

    def forget(self, host_id: int) -> None:
        """Drop the plan of a host that has nothing to do."""
        plan = self.pop(host_id, None)
        if plan is not None:
            self._by_name.pop(plan.name, None)
