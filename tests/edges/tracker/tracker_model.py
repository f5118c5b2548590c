"""The tracker as seed 002 tells it, as small as can be: what the real one is held to.

One host, so that pages go first in first out; pipelines have one slot; links lead to pages of the same job.
"""

from __future__ import annotations

from dataclasses import dataclass, field

LEASE = 60_000
SUSPECT, PROOF = 2, 3


@dataclass
class Page:
    number: int
    state: str = "READY"
    left: int = 2
    tried: int = 0
    deaths: int = 0
    refused: bool = False
    """robots.txt keeps it out, whatever the rules say."""
    holder: tuple[str, int] | None = None
    """Pipeline and the number of its session."""

    @property
    def pending(self) -> bool:
        return self.state == "READY" and self.left > 0


@dataclass
class Job:
    number: int
    nice: int
    tag: str
    concurrency: int | None
    pages: list[Page]
    aborted: bool = False
    skips: frozenset[int] = frozenset()
    """Page numbers that rules leave out."""
    drip: int = 0

    @property
    def state(self) -> str:
        if self.aborted:
            return "ABORTED"
        if any(page.pending for page in self.pages):
            return "ACTIVE"
        return "DRAINING" if any(page.state in {"CLAIMED", "STASHED"} for page in self.pages) else "FINISHED"

    def settle(self) -> None:
        if not self.aborted and not any(page.pending for page in self.pages):
            self.unstash(self.drip)

    def unstash(self, most: int) -> int:
        taken = [page for page in self.pages if page.state == "STASHED"][:most]
        for page in taken:
            page.state = "READY"
        return sum(page.pending for page in taken)

    def find(self, number: int) -> Page:
        """A page that something leads to, made when it is new."""
        for page in self.pages:
            if page.number == number:
                return page
        self.pages.append(Page(number, "SKIPPED" if number in self.skips else "READY"))
        return self.pages[-1]

    def judge(self) -> None:
        for page in self.pages:
            if page.left > 0 and page.state in {"READY", "SKIPPED"} and not page.refused:
                page.state = "SKIPPED" if page.number in self.skips else "READY"


@dataclass
class Pipe:
    tags: frozenset[str]
    matchonly: bool
    session: int = 0
    alive: bool = False
    lease: int = 0
    job: int | None = None
    lock: str = "NONE"


@dataclass
class Model:
    jobs: dict[int, Job] = field(default_factory=dict)
    pipes: dict[str, Pipe] = field(default_factory=dict)
    now: int = 0

    def may_have(self, pipe: Pipe, job: Job) -> bool:
        if job.state != "ACTIVE" or job.concurrency == 0:
            return False
        if job.tag not in pipe.tags if job.tag else pipe.matchonly:
            return False
        others = sum(p.job == job.number for p in self.pipes.values() if p is not pipe and p.alive)
        return job.concurrency is None or others < job.concurrency

    def choose(self, name: str) -> Job | None:
        """Bring the slot in line; the job that it may take pages of."""
        pipe = self.pipes[name]
        here = self.jobs.get(pipe.job or 0)
        if pipe.lock == "NONE" and here and here.state == "DRAINING" and self._has(name, here):
            return None  # its slot stays until the last pages are done
        able = [job for job in self.jobs.values() if self.may_have(pipe, job)]
        if pipe.lock == "NONE":
            best = min(able, key=lambda job: (job.nice, job.number), default=None)
            pipe.job = best.number if best else None
            return best
        locked = self.jobs[pipe.job or 0]
        going = locked.state == "ACTIVE" and locked.concurrency != 0
        # a lock goes before tags and room
        return locked if going else None

    def _has(self, name: str, job: Job) -> bool:
        return any(page in job.pages for page in self.held(name) if page.state == "CLAIMED")

    def held(self, name: str) -> list[Page]:
        holder = (name, self.pipes[name].session)
        return [page for job in self.jobs.values() for page in job.pages if page.holder == holder]

    def claim(self, name: str, most: int) -> list[tuple[int, int]]:
        """Job and number of the pages that a pipeline gets."""
        pipe = self.pipes[name]
        pipe.lease = self.now + LEASE
        job = self.choose(name)
        mine = self.held(name)
        if job is None or any(SUSPECT <= page.deaths < PROOF for page in mine):
            return []
        found = [page for page in job.pages if page.pending][:most]
        # what was held or stashed while the rules changed is judged now
        for page in found:
            page.state = "SKIPPED" if page.number in job.skips else page.state
        found = [page for page in found if page.pending]
        wary = [page for page in found if SUSPECT <= page.deaths < PROOF]
        if wary:
            found = [page for page in found if page not in wary] if mine else wary[:1]
        for page in found:
            page.state, page.holder = "CLAIMED", (name, pipe.session)
        job.settle()
        return [(job.number, page.number) for page in found]

    def end(self, name: str, *, death: bool) -> None:
        pipe = self.pipes[name]
        if not pipe.alive:
            return
        for page in self.held(name):
            page.state, page.holder, page.deaths = "READY", None, page.deaths + death
        pipe.alive = False
        if pipe.lock == "NONE":
            pipe.job = None

    def free_locks(self) -> None:
        for pipe in self.pipes.values():
            if pipe.lock == "UNTIL_FINISHED" and self.jobs[pipe.job or 0].state in {"FINISHED", "ABORTED"}:
                pipe.lock = "NONE"

    def finish(self, job: Job, page: Page, how: str, links: list[int]) -> None:
        page.holder, page.deaths = None, 0
        if how == "refused":
            page.state, page.refused = "SKIPPED", True
            return
        page.state, page.tried = "READY", page.tried + 1
        page.left = 0 if how == "done" else max(1, page.left - 1)
        for number in links if how == "done" else []:
            job.find(number)
