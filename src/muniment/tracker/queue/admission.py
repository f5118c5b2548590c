"""Admission: outlinks become pages and relations. The hot path of a crawl (about 70 links a page).

For every link: one look into the seen-cache, and a comparison of the hops that its parent offers with those it has.
Only URLs that are new to the job are judged by rules; only pages that come nearer are written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from sqlalchemy import bindparam, select

from muniment.errors import ProtocolError
from muniment.model.link import FoundAs, Kind
from muniment.model.page import LINK_ENTRY, PageResult, PageState, link_keys
from muniment.model.url import url_key
from muniment.rules.rule_engine import Ruleset
from muniment.rules.scope import FAR, Offers, Scope, Standing, urgency
from muniment.rules.session_ids import page_key
from muniment.tracker.db.database import BatchInsert, Database, Lookup, Prepared, Row
from muniment.tracker.queue.guards.traps import Leads, Traps
from muniment.tracker.queue.new_pages import NewPage, NewPages, Offer
from muniment.tracker.queue.page_keys import PageKeys
from muniment.tracker.queue.rejudge import judge_pages
from muniment.tracker.schema.attempt_budget import TRIED
from muniment.tracker.schema.tables import pages, relations, repairs
from muniment.tracker.stores.children import pack_children, packed_words, unpack_children
from muniment.tracker.stores.hosts import Hosts
from muniment.tracker.stores.id_blocks import IdBlocks, last_page
from muniment.tracker.stores.seen_cache import SeenCache, next_unknown, pack, page_of, unknown
from muniment.tracker.stores.tallies import Tallies

__all__ = ["Admission", "AdmittedList", "Parent"]

_KNOWN_PAGE = Lookup(
    select(
        pages.c.id, pages.c.key, pages.c.host_id, pages.c.state, TRIED, pages.c.attempts_remaining,
        pages.c.link_hops, pages.c.requisite_hops, pages.c.redirects, pages.c.on_site, pages.c.included,
        pages.c.in_scope, pages.c.found_as, pages.c.nice, pages.c.tally,
    ),
    pages.c.job_id,
    pages.c.id,
    locks=True,
)  # fmt: skip
_NEARER = Prepared(
    pages.update()
    .where(pages.c.job_id == bindparam("job"), pages.c.id == bindparam("page"))
    .values(
        nice=bindparam("n"),
        link_hops=bindparam("l"),
        requisite_hops=bindparam("r"),
        redirects=bindparam("rd"),
        in_scope=bindparam("scope"),
    ),
    "n", "l", "r", "rd", "scope", "job", "page",
)  # fmt: skip
_CHILDREN = Prepared(
    select(relations.c.children).where(relations.c.job_id == bindparam("job"), relations.c.parent_id == bindparam("p")),
    "job", "p",
)  # fmt: skip
_RELATE = BatchInsert(relations, "job_id", "parent_id", "children", conflict="REPLACE")
_DIRTY = BatchInsert(repairs, "job_id", "page_id", conflict="IGNORE")

_LOWER_HALF = 0xFFFFFFFF
_REQUISITES = re.compile(b"[%s]" % re.escape(bytes(f for f in FoundAs if f.kind is not Kind.LINK)))


class Parent(Struct, frozen=True):
    """A page whose outlinks are taken in."""

    page_id: int
    standing: Standing
    outlinks: bytes
    seed_id: int | None = None
    """In a fetch, the page of the seed line that it is fetched for, when that is another."""


class AdmittedList(Struct, frozen=True):
    """What became of a list of URLs."""

    pending: Counter[int]
    """Pages newly pending, per host number."""
    pages: list[int]
    """The page of each URL, in order."""
    known: int
    """The highest page id before: pages above it are new."""


class Admission:
    """Takes links into one job; every method runs within the caller's transaction."""

    def __init__(
        self,
        db: Database,
        job_id: int,
        scope: Scope,
        ruleset: Ruleset,
        hosts: Hosts,
        tries: int,
        traps: Traps | None = None,
    ) -> None:
        self._db, self._job_id, self._scope, self._hosts = db, job_id, scope, hosts
        self.ruleset = ruleset
        # a list may name the pages of two sessions, and gets them both
        self._key = url_key if scope.listed else page_key
        self.tries = tries
        """Tries of a page that becomes pending."""
        self._offers: dict[Standing, Offers] = {}
        self._skipped: list[tuple[str, str]] = []
        self._shown: Counter[tuple[int, int]] = Counter()
        self._texts: dict[bytes, str] = {}
        self._numbers = IdBlocks(db, job_id, "pages")
        self.keys = PageKeys(db, job_id)
        self.tallies = Tallies(db, job_id, scope, hosts)
        self._traps = traps
        self.leads = Leads()
        """What pages led to first since `Leads.begin`."""
        self._new_pages = NewPages(db, job_id, scope, hosts, self.keys, traps)
        self._begin()
        db.on_rollback(self._begin)

    def _begin(self) -> None:
        self.last_id = last_page(self._db, self._job_id)
        """The highest page id known; alone, that is also how many URLs the job knows."""
        self._numbers.begin(self.last_id)
        self._seen = SeenCache(complete=self.last_id == 0 and not self._db.shared)
        self._batch: dict[bytes, int] = {}
        self._skipped.clear()
        self._shown.clear()
        self.leads.begin()
        self.dirtied = False
        """Whether rows of `repairs` were added that nobody has looked at yet."""

    def expect(self, urls: int) -> None:
        """Prepare for a transaction that may bring so many new URLs; to be called before it."""
        self._numbers.reserve(urls)
        self._hosts.expect(urls)

    def offers(self, standing: Standing) -> Offers:
        """What a page that stands so offers; remembered, because few standings occur."""
        offers = self._offers.get(standing)
        if offers is None:
            if len(self._offers) > 10_000:
                self._offers.clear()
            offers = self._offers[standing] = self._scope.offers(standing)
        return offers

    def add_starts(self, urls: Iterable[str]) -> Counter[int]:
        """Take in start URLs; returns how many pages became pending per host number."""
        return self.add_listed([(url, FoundAs.START) for url in urls]).pending

    def add_listed(self, urls: list[tuple[str, FoundAs]]) -> AdmittedList:
        """Take in URLs that nothing leads to."""
        known = self.last_id
        fresh: list[NewPage] = []
        wanted: dict[int, Offer] = {}
        found = []
        keys = [self._key(url) for url, _ in urls]
        self._recall(keys)
        for (url, found_as), key in zip(urls, keys, strict=True):
            word = self._word(key)
            if word is None:
                word = self._introduce(fresh, key, url, found_as, None)
            page_id = page_of(word)
            found.append(page_id)
            wanted.setdefault(page_id, Offer()).link = 0
        pending, moved = self._apply(fresh, wanted)
        return AdmittedList(pending, [moved.get(page_id, page_id) for page_id in found], known)

    def admit(self, parents: list[Parent], texts: dict[bytes, str]) -> Counter[int]:
        """Take in the outlinks of many pages and keep their relations; returns pages newly pending per host number."""
        self._texts = texts
        fresh: list[NewPage] = []
        links = []
        for parent in parents:
            entries = parent.outlinks
            keys = link_keys(entries)
            links.append((parent, self._seen.words(keys), keys, entries[16::LINK_ENTRY]))
        self._recall([key for _, words, keys, _ in links for key in unknown(words, keys)])
        told = [
            (parent, self._complete(words, keys, kinds, parent, fresh), kinds) for parent, words, keys, kinds in links
        ]
        wanted: dict[int, Offer] = {}
        for parent, words_of, kinds in told:
            self._collect(self.offers(parent.standing), words_of, kinds, wanted)
        pending, moved = self._apply(fresh, wanted)
        rows = [
            (self._job_id, parent.page_id, pack_children(words_of, kinds, moved))
            for parent, words_of, kinds in told
            if words_of
        ]
        self._db.many(_RELATE, rows)
        return pending

    def admit_more(self, parent: Parent, texts: dict[bytes, str]) -> Counter[int]:
        """Take in further outlinks of a page whose links are recorded; returns pages newly pending per host number."""
        known = self._db.rows(_CHILDREN, (self._job_id, parent.page_id))
        pending = self.admit([parent], texts)
        if known:
            # what was just written has the new ones alone
            fresh = self._db.rows(_CHILDREN, (self._job_id, parent.page_id))
            words = [*unpack_children(bytes(known[0][0])), *unpack_children(bytes(fresh[0][0]))]
            self._db.many(_RELATE, [(self._job_id, parent.page_id, packed_words(list(dict.fromkeys(words))))])
        return pending

    def untold(self, pages: Iterable[PageResult], texts: Mapping[bytes, str]) -> dict[int, list[bytes]]:
        """The keys that pages lead to and that neither these texts nor the tracker know, by page."""
        missing: dict[int, list[bytes]] = {}
        for page in pages:
            keys = link_keys(page.outlinks)
            if new := [key for key in unknown(self._seen.words(keys), keys) if key not in texts]:
                missing[page.page_id] = new
        if not missing:
            return {}
        self._recall([key for keys in missing.values() for key in keys])
        left = {page: [key for key in keys if self._word(key) is None] for page, keys in missing.items()}
        return {page: keys for page, keys in left.items() if keys}

    def mark_dirty(self, page_id: int) -> None:
        """Note a page for the next update of depths: its children may come nearer, or its links were never recorded."""
        self._db.many(_DIRTY, [(self._job_id, page_id)])
        self.dirtied = True

    def take_skipped(self) -> list[tuple[str, str]]:
        """URL and reason of the pages skipped since the last call; of a family that is set aside, the first alone."""
        skipped, self._skipped = self._skipped, []
        return self.to_report(skipped)

    def to_report(self, skipped: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Those of some pages that are left out, by URL and reason, of which people hear."""
        return skipped if self._traps is None else self._traps.take_told(skipped)

    def take_shown(self) -> Counter[tuple[int, int]]:
        """New pages since the last call that are nothing but requisites, by the page that led there and by host."""
        shown, self._shown = self._shown, Counter()
        return shown

    def not_shown(self, via_id: int | None, host_id: int) -> None:
        """One page less, which that one led to: it has been captured."""
        if via_id is not None and self._shown.get((via_id, host_id), 0) > 0:
            self._shown[via_id, host_id] -= 1

    def offer_again(self, standing: Standing, children: bytes, wanted: dict[int, Offer]) -> None:
        """Offer the children of a page that came nearer what it offers now."""
        offers = self.offers(standing)
        for word in unpack_children(children):
            found_as = word & 0xFF
            self._merge(wanted, word >> 8, offers.link[found_as], offers.requisite[found_as], offers, found_as)

    def apply(self, wanted: dict[int, Offer]) -> Counter[int]:
        """Write what pages gained; returns pages newly pending per host number."""
        return self._apply([], wanted)[0]

    def _complete(
        self,
        words: list[int | None],
        keys: Sequence[bytes],
        kinds: bytes,
        parent: Parent,
        fresh: list[NewPage],
    ) -> list[int]:
        texts = self._texts
        at = next_unknown(words, 0)
        while at >= 0:
            # a page may link the same new URL as link and as requisite: ask again before introducing it
            found = self._word(keys[at])
            if found is None:
                url = texts.get(keys[at])
                if url is None:
                    raise ProtocolError(f"page {parent.page_id} leads to a URL whose text was not sent")
                found = self._introduce(fresh, keys[at], url, kinds[at], parent)
            words[at] = found
            at = next_unknown(words, at + 1)
        return words  # type: ignore[return-value]

    def _recall(self, keys: list[bytes]) -> None:
        """Read the pages of keys that the cache may have dropped; what is not found is new."""
        self._batch.clear()
        if not self._seen.complete:
            self._read(keys)

    def _read(self, keys: list[bytes]) -> None:
        for key, page_id, hops in self.keys.find(keys):
            self._batch[key] = page_id << 32 | hops
            self._seen.put(key, self._batch[key])

    def _word(self, key: bytes) -> int | None:
        word = self._seen.word(key)
        return self._batch.get(key) if word is None else word

    def _introduce(self, fresh: list[NewPage], key: bytes, url: str, found_as: int, parent: Parent | None) -> int:
        self.last_id = self._numbers.take()
        word = pack(self.last_id, FAR, FAR)
        via_id = seed_id = None
        if parent is not None:
            via_id = parent.page_id
            if self._scope.listed and found_as == FoundAs.REDIRECT:
                seed_id = parent.seed_id or via_id
        fresh.append(NewPage(self.last_id, key, url, found_as, via_id, seed_id))
        self._batch[key] = word
        self._seen.put(key, word)
        return word

    def _collect(self, offers: Offers, words: list[int], kinds: bytes, wanted: dict[int, Offer]) -> None:
        """Note what the children gain; most gain nothing, so they are sifted by one comparison each."""
        link, requisite = offers.link, offers.requisite
        farther = offers.nearest_link << 16 | FAR
        gaining = [at for at, word in enumerate(words) if word & _LOWER_HALF > farther]
        gaining += [match.start() for match in _REQUISITES.finditer(kinds)]
        for at in gaining:
            word, kind = words[at], kinds[at]
            if link[kind] < (word >> 16 & 0xFFFF) or requisite[kind] < (word & 0xFFFF):
                self._merge(wanted, word >> 32, link[kind], requisite[kind], offers, kind)

    @staticmethod
    def _merge(wanted: dict[int, Offer], page: int, link: int, requisite: int, offers: Offers, found_as: int) -> None:
        offer = wanted.get(page)
        if offer is None:
            offer = wanted[page] = Offer()
        if found_as == FoundAs.REDIRECT and min(link, requisite) < min(offer.link, offer.requisite):
            offer.redirects = offers.redirects
        offer.link = min(offer.link, link)
        offer.requisite = min(offer.requisite, requisite)

    def _apply(self, fresh: list[NewPage], wanted: dict[int, Offer]) -> tuple[Counter[int], dict[int, int]]:
        """Write new pages, and what known ones gain; pages newly pending per host number, and which numbers moved."""
        offered = [(page, wanted.pop(page.page_id, None)) for page in fresh]
        written = self._new_pages.write(offered, self.ruleset, self.tries)
        self._skipped += written.skipped()
        self._shown += written.shown()
        if self._traps is not None and self._traps.guards:
            self.leads.add(written.naming(), written.leading())
        moved = {} if written.all_new else self._yield_to_others(offered, wanted)
        if written.all_new:
            for page, offer in offered:
                if offer is not None:
                    self._seen.put(page.key, pack(page.page_id, offer.link, offer.requisite))
        pending = written.pending() + self._bring_nearer(wanted)
        return pending, moved

    def _yield_to_others(self, offered: list[tuple[NewPage, Offer | None]], wanted: dict[int, Offer]) -> dict[int, int]:
        """Take the numbers of those pages that another process brought first, and offer them what ours were offered."""
        self._read([page.key for page, _ in offered])
        moved = {}
        for page, offer in offered:
            page_id = page_of(self._batch[page.key])
            if page_id != page.page_id:
                moved[page.page_id] = page_id
                if offer is not None:
                    wanted[page_id] = offer
        return moved

    def _bring_nearer(self, wanted: dict[int, Offer]) -> Counter[int]:
        pending: Counter[int] = Counter()
        nearer: list[Row] = []
        dirty = []
        # in order, so that two sessions never wait for each other
        ids = sorted(wanted)
        known = {row[0]: row for row in self._db.lookup(_KNOWN_PAGE, self._job_id, ids)}
        for page_id in ids:
            if page_id not in known:
                raise ProtocolError(f"page {page_id} is not in the tracker")
            change = self._improve(known[page_id], wanted[page_id], pending)
            if change is not None:
                nearer.append(change[0])
                if change[1]:
                    dirty.append((self._job_id, page_id))
        self._db.many(_NEARER, nearer)
        if nearer and self.ruleset.by_depth:
            judged = judge_pages(self._db, self._job_id, self.ruleset, [row[-1] for row in nearer])
            self._skipped += judged.skipped
            pending += judged.pending
        self._db.many(_DIRTY, dirty)
        self.dirtied = self.dirtied or bool(dirty)
        return pending

    def _improve(self, row: Row, offer: Offer, pending: Counter[int]) -> tuple[Row, bool] | None:
        """The update of a known page that comes nearer, and whether its children may come nearer, too."""
        page_id, key, host, state, tried, left, link, requisite, redirects, site, included, was, *how = row
        if offer.link >= link and offer.requisite >= requisite:
            return None
        redirects = offer.redirects if min(offer.link, offer.requisite) < min(link, requisite) else redirects
        found_as, nice, tally = how
        nice += urgency(requisite, found_as) - urgency(min(requisite, offer.requisite), found_as)
        link, requisite = min(link, offer.link), min(requisite, offer.requisite)
        standing = Standing(link, requisite, bool(site), bool(included), redirects)
        scope = self._scope.admits(standing)
        self.tallies.nearer(page_id, tally, standing)
        self._seen.put(key, pack(page_id, link, requisite))
        if scope and not was and state == PageState.READY and left > 0:
            pending[host] += 1
        return (nice, link, requisite, redirects, scope, self._job_id, page_id), tried > 0
