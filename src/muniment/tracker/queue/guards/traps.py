"""Traps: the families that are set aside, in memory, for the pages that are found and handed out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from msgspec import Struct

from muniment.model.link import FoundAs
from muniment.model.url import host_of, is_web
from muniment.rules.guards.family import BARREN, LOOPS, TRAP, Guard
from muniment.rules.guards.loops import is_loop
from muniment.rules.guards.shape import shape_of
from muniment.rules.scope import FAR
from muniment.settings.option_table import Settings
from muniment.tracker.db.database import Database
from muniment.tracker.stores.families import FamilyRow, FamilyStore, set_aside

__all__ = ["FoundPage", "Leads", "Traps", "guards_of", "is_guarded"]

_LISTED = frozenset({
    FoundAs.START, FoundAs.START_LIST, FoundAs.START_LINE, FoundAs.SITEMAP, FoundAs.SITEMAP_URL, FoundAs.ROBOTS
})  # fmt: skip
_MOST = 20_000
"""Families that may be set aside at once in a job: what is known of each is in memory."""


class FoundPage(Struct, frozen=True):
    """A page that waits since another one led to it first."""

    page_id: int
    host_id: int
    url: str
    link_hops: int
    found_as: int


class Leads:
    """What the pages of a batch were the first to lead to."""

    def __init__(self) -> None:
        self.naming: set[int] = set()
        """Those that name a new file or requisite."""
        self.leading = defaultdict[int, list[FoundPage]](list)
        """By page, what waits since."""

    def begin(self) -> None:
        """Begin with a new batch."""
        self.naming.clear()
        self.leading.clear()

    def add(self, naming: set[int], leading: Iterable[tuple[int, FoundPage]]) -> None:
        """Note what new pages say of those that led to them."""
        self.naming |= naming
        for via, found in leading:
            self.leading[via].append(found)


def guards_of(settings: Settings) -> frozenset[str]:
    """The guards that are on."""
    return frozenset(settings.guards.split(",")) - {"none"}


def is_guarded(found_as: int, link_hops: int) -> bool:
    """Whether guards may set a page aside: start URLs, what a list or a sitemap names and requisites never are."""
    return 0 < link_hops < FAR and found_as not in _LISTED


class Traps:
    """The families of one job that are set aside."""

    def __init__(self, db: Database, job_id: int, families: FamilyStore, guards: frozenset[str]) -> None:
        self._db, self._job_id, self._families = db, job_id, families
        self.guards = guards
        """Those that are on."""
        self._first: list[tuple[str, str]] = []
        self.load()
        db.on_rollback(self.load)

    def load(self) -> None:
        """Read them again: others changed them, or what was known is undone."""
        self._known: dict[tuple[Guard, str], FamilyRow] = {}
        self._changed: dict[bytes, FamilyRow] = {}
        self._first.clear()
        self._hosts: set[str] = set()
        for one in set_aside(self._db, self._job_id):
            self.put(one)

    @property
    def full(self) -> bool:
        """Whether no more can be set aside."""
        return len(self._known) >= _MOST

    def put(self, one: FamilyRow) -> None:
        """Set a family aside."""
        self._known[one.family.guard, one.family.shape] = one
        self._hosts.add(one.family.shape.partition("/")[0])

    def drop(self, one: FamilyRow) -> None:
        """Let a family go on."""
        self._known.pop((one.family.guard, one.family.shape), None)

    def get(self, guard: Guard, shape: str) -> FamilyRow | None:
        """A family that is set aside; None for another."""
        return self._known.get((guard, shape))

    def reason(self, url: str, found_as: int, link_hops: int, page_id: int | None = None) -> str:
        """Why a page is not asked for; empty when it is. `page_id`: that of a page that waits since it was found."""
        if not self._hosts or not is_guarded(found_as, link_hops) or not is_web(url) or host_of(url) not in self._hosts:
            return ""
        guard = LOOPS if LOOPS in self.guards and is_loop(url) else BARREN
        one = self._known.get((guard, shape_of(url))) if guard in self.guards else None
        if one is None or (page_id is not None and page_id > one.family.until_id):
            return ""
        return self.skip(one, url)

    def skip(self, one: FamilyRow, url: str) -> str:
        """Count a page of a family that is set aside; why it is skipped, or empty for a sample."""
        family = one.family
        first = not family.skipped
        self._changed[one.key] = one
        if family.skip():
            return ""
        if first:
            self._first.append((url, family.reason))
        return family.reason

    def take_told(self, skipped: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Those of the skipped pages to be reported: of a family that is set aside, the first alone."""
        first, self._first = self._first, []
        return [one for one in skipped if not one[1].startswith(TRAP)] + first

    def save(self) -> None:
        """Write what was counted, within the caller's transaction."""
        if self._changed:
            changed, self._changed = self._changed, {}
            self._families.save(changed)
