"""Judgement: what finished pages say of their families, and which of these are set aside or go on by it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct, structs
from sqlalchemy import select

from muniment.model.change import GUARDIAN, ChangeMade
from muniment.model.page import PageResult, PageState
from muniment.model.url import host_of, is_web
from muniment.rules.guards.family import BARREN, DUPLICATES, LOOPS, Family, Guard
from muniment.rules.guards.shape import pattern_of, shape_of
from muniment.rules.retry import is_failed
from muniment.rules.scope import FAR
from muniment.settings.option_table import Settings
from muniment.tracker.db.database import Database, Lookup, Row
from muniment.tracker.jobs.audit import note
from muniment.tracker.queue.guards.traps import FoundPage, Leads, Traps, guards_of, is_guarded
from muniment.tracker.queue.locked_pages import LockedPage
from muniment.tracker.queue.rejudge import JUDGED
from muniment.tracker.schema.tables import pages
from muniment.tracker.stores.families import FamilyRow, FamilyStore, family_key, family_of, pages_released
from muniment.tracker.stores.seen_text import SeenText, words_of

__all__ = ["Judgement", "Verdicts"]

_VIA = Lookup(select(pages.c.id, pages.c.url), pages.c.job_id, pages.c.id)
_WATCHING = frozenset({BARREN, LOOPS, DUPLICATES})
_OK = 200
_CLEAN, _FEW, _MOST_HOSTS = 100, 8, 10_000
"""After so many pages of a host that were not barren, one in eight is read, until one is barren."""
_MOST_ALIKE = 20
"""From so many pages of a host with one text on, the links of more of them are not followed."""


class Verdicts(Struct, frozen=True):
    """What a batch of finished pages changed."""

    pending: Counter[int]
    """Pages newly pending, or fewer, per host number."""
    changes: list[ChangeMade]
    """Families set aside, or let go on."""


class _Judged(Struct, frozen=True):
    """A page that its text was read of."""

    page: PageResult
    held: LockedPage
    new: bool
    """It has something that its host did not show before."""


class Judgement:
    """Judges the finished pages of one job, within the caller's transaction."""

    def __init__(self, db: Database, job_id: int, families: FamilyStore, traps: Traps, settings: Settings) -> None:
        self._db, self._job_id, self._families, self.traps = db, job_id, families, traps
        self._budget = settings.barren
        self._seen = SeenText(db, job_id)
        self._clean: dict[int, int] = {}
        """By host number, how many of its pages in a row were not barren."""

    def reads(self, host_id: int, page_id: int) -> bool:
        """Whether the text of a page is to be read: of a host without barren pages, that of a few."""
        return self.on and (self._clean.get(host_id, 0) < _CLEAN or not page_id % _FEW)

    @property
    def on(self) -> bool:
        """Whether any guard that watches families is."""
        return bool(self.traps.guards & _WATCHING)

    def change(self, settings: Settings | None) -> None:
        """See what an operator or another process changed of the job; `settings` are those in force, if new."""
        if settings is not None:
            self.traps.guards, self._budget = guards_of(settings), settings.barren
        self.traps.load()

    def judge(
        self,
        finished: Sequence[PageResult],
        held: Mapping[int, LockedPage],
        leads: Leads,
        version: int,
        last_id: int,
        now: int,
    ) -> Verdicts:
        """Take in finished pages whose links were admitted, with what they led to first.

        `version` is that of the rules, `last_id` the highest number of a page.
        """
        if not self.on:
            return Verdicts(Counter(), [])
        naming, leading = leads.naming, leads.leading
        batch = _Batch(self._db, self._job_id, self.traps, version, last_id, now)
        self._seen.look_again()
        judged = [
            _Judged(page, held[page.page_id], self._is_new(page, page.page_id in naming))
            for page in finished
            if _is_judged(page, held[page.page_id])
        ]
        if judged:
            via = {one.held.via_id for one in judged if one.held.via_id is not None}
            urls = {row[0]: row[1] for row in self._db.lookup(_VIA, self._job_id, sorted(via))}
            self._look_up(batch, judged, urls)
            for one in judged:
                self._note_clean(one)
                self._judge_one(batch, one, urls.get(one.held.via_id or 0, ""), leading)
        self._seen.save()
        self._families.save(batch.changed)
        self.traps.save()
        note(self._db, self._job_id, GUARDIAN, batch.changes, now)
        return Verdicts(batch.pending, batch.changes)

    def _is_new(self, page: PageResult, names: bool) -> bool:
        read = page.read
        assert read is not None
        if page.status >= 400:
            return False
        # what is no text is new unless it was captured before
        text = self._seen.add(words_of(read.blocks)) if read.is_text else bool(page.payload)
        return text or names

    def _note_clean(self, one: _Judged) -> None:
        """Note whether a host shows new things alone; redirects and what is missing say nothing of that."""
        if one.page.status != _OK:
            return
        if len(self._clean) > _MOST_HOSTS:
            self._clean.clear()
        host = one.held.host_id
        self._clean[host] = self._clean.get(host, 0) + 1 if one.new else 0

    def _look_up(self, batch: _Batch, judged: list[_Judged], urls: Mapping[int, str]) -> None:
        loops = LOOPS in self.traps.guards
        keys = set()
        for one in judged:
            url, text = one.held.url, one.page.read
            keys.add(family_of(url, loops=loops)[0])
            if via := urls.get(one.held.via_id or 0):
                keys.add(family_of(via, loops=loops)[0])
            if text is not None and text.digest and not one.new:
                keys.add(_text_key(url, text.digest))
        found = self._families.find(keys)
        # of what is set aside, the one that counts what is found
        batch.known = {key: self.traps.get(one.family.guard, one.family.shape) or one for key, one in found.items()}

    def _judge_one(self, batch: _Batch, one: _Judged, via: str, leading: Mapping[int, list[FoundPage]]) -> None:
        page, held = one.page, one.held
        loops = LOOPS in self.traps.guards
        key, shape, guard = family_of(held.url, loops=loops)
        if is_guarded(held.found_as, held.standing.link_hops):
            self._count(batch, key, shape, guard, one)
        if one.new:
            batch.release_named(DUPLICATES, shape)
        if one.new and via:
            parent, *_ = family_of(via, loops=loops)
            if parent != key and parent in batch.known:
                batch.credit(batch.known[parent])
        read = page.read
        if not one.new and read is not None and read.digest and DUPLICATES in self.traps.guards:
            self._count_text(batch, one, key, read.digest, leading.get(page.page_id, []))

    def _count(self, batch: _Batch, key: bytes, shape: str, guard: Guard, one: _Judged) -> None:
        row = batch.known.get(key)
        if row is None:
            if one.new:
                return  # a family is of interest from its first barren page on
            row = batch.known[key] = FamilyRow(key, Family(shape, guard))
        family = row.family
        family.add(one.page.page_id, barren=not one.new)
        batch.changed[key] = row
        if family.since and one.new:
            batch.release(row)
        elif guard in self.traps.guards and family.is_spent(self._budget) and not self.traps.full:
            batch.set_aside(row, one.held.url)

    def _count_text(self, batch: _Batch, one: _Judged, key: bytes, digest: bytes, found: list[FoundPage]) -> None:
        text = _text_key(one.held.url, digest)
        row = batch.known.get(text)
        if row is None:
            row = batch.known[text] = FamilyRow(text, Family(host_of(one.held.url), DUPLICATES))
        row.family.add(one.page.page_id, barren=True)
        batch.changed[text] = row
        own = batch.known.get(key)
        if row.family.barren >= _MOST_ALIKE - 1 and not (own is not None and own.family.led):
            batch.leave_out(found, self._families)


class _Batch:
    """What is known of the families of a batch, and what it changed."""

    def __init__(self, db: Database, job_id: int, traps: Traps, version: int, last_id: int, now: int) -> None:
        self._db, self._job_id, self._traps = db, job_id, traps
        self._version, self._last_id, self._now = version, last_id, now
        self.known: dict[bytes, FamilyRow] = {}
        self.changed: dict[bytes, FamilyRow] = {}
        self.pending: Counter[int] = Counter()
        self.changes: list[ChangeMade] = []

    def set_aside(self, row: FamilyRow, url: str) -> None:
        """Have no more pages of a family be asked for."""
        row.family.set_aside(self._now, self._last_id)
        made = self._keep(structs.replace(row, re=pattern_of(url)))
        self._traps.put(made)
        self.changes.append(ChangeMade("trap", "", made.re))

    def _keep(self, row: FamilyRow) -> FamilyRow:
        self.known[row.key] = self.changed[row.key] = row
        return row

    def release(self, row: FamilyRow, *, leads: bool = False) -> None:
        """Have the pages of a family wait again."""
        aside = self._traps.get(row.family.guard, row.family.shape) or row
        self.pending += pages_released(self._db, self._job_id, row.family)
        self._traps.drop(row)
        row.family.release(leads=leads)
        self._keep(row)
        self.changes.append(ChangeMade("trap", aside.re, ""))

    def release_named(self, guard: Guard, shape: str) -> None:
        """Have the pages of a family wait again, if it is set aside."""
        if (row := self._traps.get(guard, shape)) is not None:
            self.release(row)

    def credit(self, row: FamilyRow) -> None:
        """Note that a page of a family led first to one that is not barren."""
        row.family.led += 1
        if row.family.since:
            self.release(row, leads=True)
        else:
            row.family.barren = 0
            self._keep(row)

    def leave_out(self, found: list[FoundPage], families: FamilyStore) -> None:
        """Skip what a page led to first whose text many others have."""
        skipped: list[Row] = []
        by_key = defaultdict[bytes, list[FoundPage]](list)
        for page in found:
            if is_web(page.url) and is_guarded(page.found_as, page.link_hops):
                by_key[family_key(DUPLICATES, shape_of(page.url))].append(page)
        known = families.find([key for key in by_key if key not in self.known])
        for key, alike in by_key.items():
            row = self.known.get(key) or known.get(key)
            if row is None:
                row = FamilyRow(key, Family(shape_of(alike[0].url), DUPLICATES))
            if row.family.freed:
                continue
            if not row.family.since:
                self.set_aside(row, alike[0].url)
            row = self.known[key] if key in self.known else self._keep(row)
            for page in alike:
                if reason := self._traps.skip(row, page.url):
                    skipped.append((PageState.SKIPPED.value, self._version, reason, self._job_id, page.page_id))
                    self.pending[page.host_id] -= 1
        self._db.many(JUDGED, skipped)


def _is_judged(page: PageResult, held: LockedPage) -> bool:
    """Whether a page is one, and was answered for good."""
    answered = page.done and not page.refused and page.status and not is_failed(page.status, page.error)
    return bool(answered) and page.read is not None and held.standing.link_hops != FAR and is_web(held.url)


def _text_key(url: str, digest: bytes) -> bytes:
    return family_key(DUPLICATES, f"{host_of(url)} {digest.hex()}")
