"""The frontier: pages are claimed, finished and given back. One transaction a batch; a finish counts once.

The order that makes a crash harmless: records are synced before a finish is sent, and a finish changes a page only
while the page still carries the finish's claim.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from operator import itemgetter

from sqlalchemy import bindparam, func, literal_column, null, select

from muniment.model.capture import Capture
from muniment.model.change import Change, ChangeMade
from muniment.model.cookie import Cookie
from muniment.model.page import Claim, Counted, FinishBatch, PageResult, PageState
from muniment.model.queue import RunSums, Totals
from muniment.rules.hosts.politeness import THROTTLED
from muniment.rules.retry import BETWEEN_ROUNDS_MS
from muniment.rules.rule_engine import Ruleset
from muniment.rules.scope import Scope
from muniment.tracker.db.database import BatchUpdate, Database, Row, retrying_transaction
from muniment.tracker.jobs.changes import ChangeResult, amend
from muniment.tracker.jobs.store import any_stashed, load_job, settle
from muniment.tracker.queue.admission import Admission
from muniment.tracker.queue.claims import NO_ORIGINS, Claims, DuePages, LeftAlone, Wanted, told_of_answers
from muniment.tracker.queue.counters import Counters
from muniment.tracker.queue.depth_updates import DepthUpdates
from muniment.tracker.queue.guards.judgement import Judgement
from muniment.tracker.queue.inheritance import SHOWN
from muniment.tracker.queue.locked_pages import FinishReport, LockedPage, finished_before, locked_pages
from muniment.tracker.queue.lost_captures import LostCaptures
from muniment.tracker.queue.payloads import Payloads
from muniment.tracker.queue.redirect_loops import RedirectLoops
from muniment.tracker.queue.rejudge import JUDGED, Rejudging
from muniment.tracker.queue.rounds import begun_round, next_round
from muniment.tracker.queue.sites import Sites
from muniment.tracker.queue.writers import WriterChanges, Writers
from muniment.tracker.schema.tables import CLAIMED, PENDING, pages
from muniment.tracker.stores.attempts import ATTEMPT, attempt_row
from muniment.tracker.stores.cookies import CookieStore
from muniment.tracker.stores.hooks import HookStore
from muniment.tracker.stores.hosts import Hosts
from muniment.tracker.stores.results import ResultStore
from muniment.tracker.stores.robots import RobotsStore

__all__ = ["Frontier"]

_FINISH = BatchUpdate(
    pages.update()
    .where(pages.c.job_id == bindparam("job"))
    .values(
        state=bindparam("s"),
        attempts=literal_column("attempts + 1"),
        attempts_remaining=bindparam("left"),
        ready_at=bindparam("at"),
        claim_id=null(),
        links_told=bindparam("told"),
        counted=bindparam("sum"),
        tally=bindparam("tally"),
        reason=bindparam("why"),
        throttled=pages.c.throttled + bindparam("free"),
        # the others go first from now on: a page that is always refused must not stand in their way
        nice=pages.c.nice + bindparam("later"),
        deaths=literal_column("0"),
    ),
    pages.c.id,
    "s", "left", "later", "at", "told", "sum", "why", "free", "tally", "job", "page",
)  # fmt: skip
_RELEASE = BatchUpdate(
    pages.update()
    .where(pages.c.job_id == bindparam("job"), pages.c.claim_id == bindparam("claim"))
    .values(state=literal_column("'READY'"), claim_id=null()),
    pages.c.id,
    "job", "claim", "page",
)  # fmt: skip

_UNCOUNTED, _NO_SUMS = Counted(0, 0), RunSums()
_READY, _SKIPPED = PageState.READY.value, PageState.SKIPPED.value

_page_of = itemgetter(-1)
"""The page of a row of `_FINISH`: sessions that lock rows in the same order never wait for each other."""


class Frontier:
    """Claims, finishes and releases pages of one job."""

    def __init__(
        self, db: Database, job_id: int, scope: Scope, admission: Admission, sites: Sites, hosts: Hosts, rounds: int
    ) -> None:
        self._db, self._job_id, self._scope = db, job_id, scope
        self.admission, self._sites, self.hosts = admission, sites, hosts
        self.guards: Judgement | None = None
        self.payloads = Payloads(db, job_id)
        self.robots = RobotsStore(db, job_id)
        self.cookies = CookieStore(db, job_id)
        self.results = ResultStore(db, job_id)
        self.hooks: HookStore | None = None
        self._depths = DepthUpdates(db, job_id, scope, admission)
        self._loops = RedirectLoops(db, job_id, self.cookies, hosts, self._depths, scope, admission)
        self._lost = LostCaptures(db, job_id, self._depths, admission.keys, self.payloads)
        self._claims = Claims(db, job_id, scope, rounds)
        self._rounds = rounds
        self.writers = Writers(db, job_id)
        self.counters = Counters(db, job_id)

    @retrying_transaction
    def recover(self) -> int:
        """Give back what a killed run held; returns how many pages that were."""
        with self._db.transaction() as connection:
            given_back = connection.execute(
                # by the range of all claims, or SQLite reads every page of the job
                pages.update()
                .where(pages.c.job_id == self._job_id, CLAIMED, pages.c.claim_id >= 0)
                .values(state=PageState.READY.value, claim_id=None)
            )
            return given_back.rowcount

    @property
    def totals(self) -> Totals:
        """The counters of the job."""
        return self.counters.totals

    def pending(self) -> dict[int, int]:
        """Pages that wait to be claimed, per host number."""
        waiting = pages.c.job_id == self._job_id, PENDING
        counted = select(pages.c.host_id, func.count()).where(*waiting).group_by(pages.c.host_id)
        return {int(host): int(count) for host, count in self._db.connection.execute(counted)}

    def requisites(self) -> list[tuple[int, int]]:
        """Pages that wait and that others are shown with: host number, how many."""
        if self._scope.listed:
            return []
        # the index alone is enough, unless rules give nice values
        shown = SHOWN if self.admission.ruleset.gives_nice else pages.c.nice < 0
        waiting = pages.c.job_id == self._job_id, PENDING, shown
        counted = select(pages.c.host_id, func.count()).where(*waiting).group_by(pages.c.host_id)
        return [(int(host), int(count)) for host, count in self._db.connection.execute(counted)]

    @retrying_transaction
    def claim(self, wanted: Wanted, now: int, after: int | None = None, without: LeftAlone = NO_ORIGINS) -> DuePages:
        """Claim up to `most` pages of each (host number, most) that are due at `now` (Unix ms), in one transaction.

        Pages that a newer version of the rules leaves out are skipped instead. All have the first number after `after`;
        without it, the one after that of the last claims. `without` says by host how the URLs begin of its origins that
        are left alone.
        """
        with self._db.transaction():
            return self.claim_within(wanted, now, after, without)

    def claim_within(self, wanted: Wanted, now: int, after: int | None, without: LeftAlone) -> DuePages:
        """The same, within the caller's transaction."""
        looks = self.writers.asked()
        answers = self._db.several([*looks, *self._claims.asked(wanted, now, without)])
        self._keep_up(self.writers.seen(answers[: len(looks)]))
        claims: list[Claim] = []
        skipped: list[Row] = []
        left_out: list[tuple[int, str, str]] = []
        ruleset = self.admission.ruleset
        self._claims.begin(after)
        self._claims.trace(answers[len(looks) :], ruleset)
        for (host_id, _), due in zip(wanted, answers[len(looks) :], strict=True):
            name = self.hosts.name(host_id)
            for row in due:
                if reason := self._left_out(row, ruleset):
                    skipped.append((_SKIPPED, ruleset.version, reason, self._job_id, row[0]))
                    left_out.append((host_id, row[1], reason))
                    continue
                reads = self.guards is not None and self.guards.reads(host_id, row[0])
                claim = self._claims.claim(row, host_id, name, self.admission.tries, ruleset, reads=reads)
                claims.append(told_of_answers(claim, self.hosts) if claim.last_try else claim)
        self._claims.mark(claims, ruleset.version)
        self._db.many(JUDGED, skipped)
        if skipped and self.guards is not None:
            self.guards.traps.save()
        if ruleset.gives_orders:
            self.results.expect(claims)
        return DuePages(claims, left_out)

    def _left_out(self, row: Row, ruleset: Ruleset) -> str:
        """Why a page that is due is not handed out, by newer rules or since its family was set aside; or empty."""
        page_id, url, version, tried, _, hops, found_as, *_ = row
        if version != ruleset.version and (reason := ruleset.verdict(url, hops, found_as).skipped):
            return reason
        return self.guards.traps.reason(url, found_as, hops, page_id) if self.guards is not None and not tried else ""

    def claimed(self, first: int, last: int) -> list[Claim]:
        """The claims with these numbers again, as far as they hold their pages; within the caller's transaction."""
        self._keep_up(self.writers.look())
        return self._claims.again(first, last, self.hosts, self.admission.tries, self.admission.ruleset)

    def _keep_up(self, seen: WriterChanges) -> None:
        """Read again what other processes changed."""
        if seen.sites:
            self.hosts.look_again()
        if seen.cookies:
            self.cookies.look_again()
        if seen.ruleset is not None:
            self.admission.ruleset, self.admission.tries = seen.ruleset, seen.tries
        if seen.settings is not None and self.guards is not None:
            self.guards.change(seen.settings)

    @retrying_transaction
    def finish(
        self, batch: FinishBatch, worker: int, now: int, added: RunSums = _NO_SUMS, *, checked: bool = False
    ) -> FinishReport:
        """Take in what became of claimed pages: attempts, states, outlinks and counters, in one transaction.

        `checked`: the batch comes from a pipeline. It may be a repeat, lack texts, or name what nobody claimed.
        """
        results = self.results.store(batch.pages)
        self.admission.expect(len(batch.urls))
        with self._db.transaction():
            told = {page.page_id: page for page in batch.pages}
            # locked in order, so that sessions never wait for each other
            held = locked_pages(self._db, self._job_id, sorted(told))
            accepted = [page for at, page in told.items() if at in held and held[at].claim_id == page.claim_id]
            texts, repeated = dict(batch.urls), list[int]()
            untold: dict[int, list[bytes]] = {}
            if checked:
                repeated = self._repeated(told, accepted)
                accepted = [page for page in accepted if held[page.page_id].tried + 1 == page.attempt]
                untold = self.admission.untold(accepted, texts)
                accepted = [page for page in accepted if page.page_id not in untold]
            self.admission.leads.begin()
            starts = [page for page in accepted if page.outlinks and not held[page.page_id].standing.link_hops]
            self._db.take_turns(self._job_id, alone=self._sites.may_grow(starts))
            self._keep_up(self.writers.look())
            pending: Counter[int] = Counter()
            retries: dict[int, int] = {}
            # first: when another page of this batch brings one nearer, it must show that its children are recorded
            finishes = [self._finish(page, held[page.page_id], now, pending, retries) for page in accepted]
            self.counters.add(accepted, batch.exchanges, added)
            self._db.many(_FINISH, sorted(finishes, key=_page_of))
            waiting = dict(pending)
            if not self._scope.listed:
                pending += self._sites.learn(starts, texts)
            parents = [held[p.page_id].parent(p) for p in accepted if p.outlinks]
            pending += self.admission.admit(parents, texts)
            pending += self._depths.work()
            changes = self._judge(accepted, held, pending, now)
            tried = [(page, held[page.page_id].ruleset) for page in accepted if not page.refused]
            self._db.many(ATTEMPT, [attempt_row(self._job_id, page, worker, ruleset) for page, ruleset in tried])
            pending.update(self._loops.came_along(accepted, worker, self.counters))
            if results:
                self.results.keep(results, {page.page_id for page in accepted})
            self.payloads.remember(accepted, batch.payloads)
            if self.hooks is not None and batch.captured:
                self.hooks.queue(page for page in batch.captured if page.page_id in {one.page_id for one in accepted})
            self.hosts.keep_noted()
            self.cookies.keep(batch.cookies)
            pending.update(self._loops.learn(accepted, held, now, self.counters))
            self._save_counters()
            self.counters.write_log(accepted, skipped := self.admission.take_skipped())
        self.counters.told()
        # new pages of a host do not wait for its retries
        due = {host: at for host, at in retries.items() if pending[host] == waiting[host]}
        shown = self.admission.take_shown()
        requisites = [
            (held[page].host_id, host, count) for (page, host), count in shown.items() if page in held and count
        ]
        missing = list({key for keys in untold.values() for key in keys})
        return FinishReport(accepted, dict(pending), due, skipped, requisites, repeated, missing, untold, changes)

    def _judge(
        self, accepted: list[PageResult], held: Mapping[int, LockedPage], pending: Counter[int], now: int
    ) -> list[ChangeMade]:
        """Have guards judge the pages of a finish; what they changed."""
        if self.guards is None:
            return []
        admission = self.admission
        verdicts = self.guards.judge(accepted, held, admission.leads, admission.ruleset.version, admission.last_id, now)
        pending.update(verdicts.pending)
        return verdicts.changes

    def _repeated(self, told: dict[int, PageResult], accepted: list[PageResult]) -> list[int]:
        now = {page.page_id for page in accepted}
        return finished_before(self._db, self._job_id, [page for at, page in told.items() if at not in now])

    def _finish(
        self, page: PageResult, held: LockedPage, now: int, pending: Counter[int], retries: dict[int, int]
    ) -> Row:
        host_id, standing = held.host_id, held.standing
        if page.refused:
            return (_SKIPPED, held.left, 0, 0, False, 0, page.refused, 0, 0, self._job_id, page.page_id)
        if page.done:
            counted, tally = self._count(page, held)
            if not page.followed and self._scope.follows(standing.on_site):
                # the host became part of the site while the page was being fetched
                self.admission.mark_dirty(page.page_id)
            return (_READY, 0, 0, 0, page.followed, counted, "", 0, tally, self._job_id, page.page_id)
        free = page.free and page.status in THROTTLED
        left = (held.left if held.tried else self.admission.tries) - (not free)
        at, (counted, tally) = 0, _UNCOUNTED
        if left <= 0 and held.rounds < self._rounds:
            left, at, (counted, tally) = 0, now + BETWEEN_ROUNDS_MS, self._count(page, held)
        else:
            left, at = max(1, left), now + page.retry_after_ms
            retries[host_id] = min(at, retries.get(host_id, at))
            pending[host_id] += 1
        later = int(free and not held.throttled)
        return (_READY, left, later, at, page.followed, counted, "", int(free), tally, self._job_id, page.page_id)

    def _count(self, page: PageResult, held: LockedPage) -> Counted:
        as_page = self._scope.as_page(held.standing)
        tally = self.admission.tallies.ended(page, held.host_id, held.found_as, held.standing)
        return self.counters.count(page, as_page=as_page, start=not held.standing.link_hops, tally=tally)

    def _save_counters(self) -> None:
        self.counters.move(self.admission.tallies.take_moved())
        self.counters.save(self._depths.take_reopened())

    @retrying_transaction
    def release(self, claims: list[tuple[int, int]]) -> None:
        """Give pages back unfetched: (page id, claim id)."""
        with self._db.transaction():
            self._db.many(_RELEASE, [(self._job_id, claim, page) for page, claim in claims])

    @retrying_transaction
    def fetch_again(self, captures: list[Capture]) -> dict[int, int]:
        """Take back captures that were lost, in one transaction; pages newly pending per host number."""
        with self._db.transaction():
            pending = self._lost.fetch_again(captures, self.admission.tries)
            self._save_counters()
        return dict(pending)

    @retrying_transaction
    def lost(self, last: Mapping[str, int], pipeline: str) -> dict[int, int]:
        """Have pages wait again whose last try, made by a pipeline, is lost; newly pending per host number."""
        with self._db.transaction():
            pending = self._lost.of_pipeline(last, pipeline, self.admission.tries)
            self._save_counters()
        return dict(pending)

    def amend(self, change: Change, now: int) -> ChangeResult:
        """Keep a change of the job; new patterns and tries count at once for what comes in and what is claimed."""
        self._keep_up(self.writers.look())
        amended = amend(self._db, load_job(self._db, self._job_id), change, now)
        if amended.ruleset is not None:
            self.admission.ruleset = amended.ruleset
        if amended.settings is not None:
            self.admission.tries = amended.settings.tries
        if self.guards is not None:
            self.guards.change(amended.settings)
        return amended

    def judging(self, only: PageState | None = None) -> Rejudging:
        """Judge all pages that wait or were ignored, or those of one state, by the patterns in force."""
        return Rejudging(self._db, self._job_id, self.admission.ruleset, only)

    @retrying_transaction
    def add_cookies(self, cookies: list[Cookie]) -> None:
        """Take in cookies that came from elsewhere than an answer."""
        with self._db.transaction():
            self.cookies.keep(cookies)

    def look_again(self) -> None:
        """See whether another process found shorter paths that are still to be passed on."""
        self._depths.look_again()

    def next_round(self, waited: Collection[int] = ()) -> list[tuple[int, int, int]]:
        """Take up what else there is, when nothing is left but pages of `waited` hosts."""
        return next_round(self._db, self._job_id, self.admission.tries, self.counters, waited)

    def begun_round(self, now: int) -> tuple[int, int]:
        """How many pages a round has to do that began before, and when it is due; (0, 0) if others wait, or it is."""
        return begun_round(self._db, self._job_id, now)

    def settle(self, now: int) -> str:
        """Bring the job's state in line with its pages; returns it."""
        return settle(self._db, self._job_id, now)

    @retrying_transaction
    def update_depths(self) -> dict[int, int]:
        """Lower the hops of one batch of children whose parents came nearer; returns pages newly pending per host."""
        with self._db.transaction():
            self._db.take_turns(self._job_id, alone=False)
            self._keep_up(self.writers.look())
            pending = self._depths.work()
            self._save_counters()
        return dict(pending)

    @property
    def stashed(self) -> bool:
        """Whether pages are in the stash; looks them up."""
        return any_stashed(self._db, self._job_id)

    @property
    def empty(self) -> bool:
        """Whether the job knows no URL at all."""
        return not self.admission.last_id

    @property
    def updating_depths(self) -> bool:
        """Whether shorter paths are still to be passed on to children; a job is not finished while some are."""
        return self._depths.waiting
