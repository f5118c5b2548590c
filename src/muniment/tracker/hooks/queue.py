"""The hooks of a job that runs: what waits, and what hooks have done, with the links that they found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from muniment.model.hooks.runs import HookBatch, HookPage, PriorTry
from muniment.model.link import FoundAs
from muniment.rules.session_ids import page_key
from muniment.tracker.db.database import Database, retrying_transaction
from muniment.tracker.queue.admission import Admission, Parent
from muniment.tracker.queue.locked_pages import locked_pages
from muniment.tracker.stores.hooks import HookStore

__all__ = ["JobHooks"]


class JobHooks:
    """Hands out pages that wait for their hooks, and keeps what these have done; one process does so."""

    def __init__(self, db: Database, job_id: int, store: HookStore, admission: Admission | None = None) -> None:
        """Without an `admission` the links that hooks find are only counted."""
        self._db, self._job_id, self.store = db, job_id, store
        self._admission = admission
        self._pending: Counter[int] = Counter()
        self._skipped: list[tuple[str, str]] = []

    @property
    def busy(self) -> bool:
        """Whether pages wait for their hooks, or links that hooks found were not reported yet."""
        return self.store.any_waiting or bool(self._pending)

    async def due(self, most: int, held: Iterable[bytes]) -> list[HookPage]:
        """The eldest pages that wait, but for those whose hooks run now."""
        return self.store.due(most, set(held))

    async def prior(self) -> tuple[PriorTry, ...]:
        """The last try of each hook of the crawl."""
        return self.store.prior(b"")

    async def keep(self, batch: HookBatch, page_id: int) -> None:
        """Keep what hooks have done, and take in the links that they found, in one transaction."""
        self._pending += self._keep(batch, page_id)

    @retrying_transaction
    def _keep(self, batch: HookBatch, page_id: int) -> Counter[int]:
        pending: Counter[int] = Counter()
        with self._db.transaction():
            if batch.links and page_id and self._admission is not None:
                pending = self._admit(self._admission, batch.links, page_id)
            self.store.keep_within(batch)
        return pending

    def _admit(self, admission: Admission, links: list[str], page_id: int) -> Counter[int]:
        held = locked_pages(self._db, self._job_id, [page_id])
        if page_id not in held:
            return Counter()
        self._db.take_turns(self._job_id, alone=False)
        texts = {page_key(url): url for url in links}
        packed = b"".join(key + bytes([FoundAs.HOOK]) for key in texts)
        parent = Parent(page_id, held[page_id].standing, packed, held[page_id].seed_id)
        pending = admission.admit_more(parent, texts)
        self._skipped += admission.take_skipped()
        admission.take_shown()
        return pending

    def take_found(self) -> tuple[Counter[int], list[tuple[str, str]]]:
        """Pages newly pending per host number, and those that were left out, since the last call."""
        pending, self._pending = self._pending, Counter()
        skipped, self._skipped = self._skipped, []
        return pending, skipped
