"""A round of the fleet: pipelines and servers on one PostgreSQL, struck by a script, and judged by what is left.

    python tests/faults/fleet_round.py --rounds 30 --seed 1

Each round has a seed, from which all that happens is drawn. Processes are real, and every network way but the one to
PostgreSQL goes through a relay that can be cut.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
from tests.support.fleet import Fleet, Launch, frozen
from tests.support.maze import write_maze
from tests.support.nginx import Nginx
from tests.support.postgres import Postgres

LEASE_S = 5
MOST_S = 300.0
"""A round that takes longer has failed."""
HOSTS = 6
DATABASE_AWAY = 3
"""How a server ends that begins while its database is not there."""
SECOND_CLOCK_S = 3600
"""One of the servers and one of the pipelines have a clock that goes ahead by so much."""
KINDS = {
    "kill pipeline": 4,
    "freeze pipeline": 2,
    "kill server": 3,
    "freeze server": 2,
    "kill database": 1,
    "freeze database": 1,
    "reset": 3,
    "stall": 2,
    "refuse": 2,
    "cut": 3,
    "repeat": 3,
    "repeat old": 3,
}
"""What a strike may be, with its weight."""


@dataclass(frozen=True)
class Blow:
    """One strike."""

    kind: str
    after: float
    """Share of the pages that are captured before it."""
    whom: int
    lasts_s: float


@dataclass
class Verdict:
    """How a round ended."""

    seed: int
    seconds: float = 0.0
    struck: Counter[str] = field(default_factory=Counter)
    captures: int = 0
    complaints: list[str] = field(default_factory=list)


def draw(seed: int) -> list[Blow]:
    """The strikes of a round; none for seed 0."""
    if not seed:
        return []
    chance = random.Random(seed)
    kinds = chance.choices(list(KINDS), list(KINDS.values()), k=chance.randint(3, 6))
    blows = [_blow(kind, chance) for kind in kinds]
    return sorted(blows, key=lambda blow: blow.after)


def _blow(kind: str, chance: random.Random) -> Blow:
    lasts = chance.uniform(LEASE_S * 1.2, LEASE_S * 1.8) if "freeze" in kind else chance.uniform(0.3, LEASE_S * 1.3)
    return Blow(kind, chance.uniform(0.05, 0.9), chance.randrange(4), lasts)


class ServerSite:
    """One maze that six hosts serve; each host's pages are its own."""

    def __init__(self, root: Path, pages: int) -> None:
        self.root = root
        root.mkdir()
        paths = write_maze(root, pages)
        addresses = [f"127.0.0.{number}" for number in range(1, HOSTS + 1)]
        self.server = Nginx(root, addresses=addresses)
        self._paths = [path for path in paths if path != "index.html"]

    def expected(self) -> dict[str, str]:
        """URL → SHA-1 of the payload, of every page that is reachable from the start pages."""
        digests = {path: hashlib.sha1((self.root / path).read_bytes()).hexdigest() for path in self._paths}
        found = {base: hashlib.sha1((self.root / "index.html").read_bytes()).hexdigest() for base in self.server.urls}
        for base in self.server.urls:
            found.update((base + path, digest) for path, digest in digests.items())
        return found


class FleetRound:
    """One round; `run` gives its verdict."""

    def __init__(
        self,
        seed: int,
        work: Path,
        *,
        pages: int = 800,
        pipelines: int = 4,
        servers: int = 2,
        launch: Launch = subprocess.Popen,
    ) -> None:
        """`launch` starts what needs no clock of its own."""
        self.verdict, self._launch = Verdict(seed), launch
        self._work, self._pages, self._count, self._server_count = work, pages, pipelines, servers
        self._blows = draw(seed)
        self._undo: list[tuple[float, Callable[[], None]]] = []
        self._job = ""

    def run(self) -> Verdict:
        """Do it all."""
        began = time.monotonic()
        with contextlib.ExitStack() as stack:
            self._site = ServerSite(self._work / "site", self._pages)
            stack.enter_context(self._site.server)
            self._postgres = stack.enter_context(Postgres())
            place = ("--database", self._postgres.create("fleet"))
            fleet = Fleet(self._work / "fleet", place, lease_s=LEASE_S, apart_s=SECOND_CLOCK_S, launch=self._launch)
            self._fleet = stack.enter_context(fleet)
            self._begin()
            self._work_through(began)
            self._end_fleet()
            self._judge()
        self.verdict.seconds = time.monotonic() - began
        return self.verdict

    # -- the fleet

    def _begin(self) -> None:
        for _ in range(self._server_count):
            self._fleet.serve()
        for number in range(self._count):
            self._fleet.pipeline("--workers", "1", server=number % self._server_count)
        options = ["--no-robots", "--no-sitemaps", "--per-host", "4", "--tries", "8"]
        self._job = self._fleet.ask("job", "add", *self._site.server.urls, *options)

    # -- the strikes

    def _work_through(self, began: float) -> None:
        waiting = list(self._blows)
        total = (len(self._site.expected())) or 1
        while not self._over():
            if time.monotonic() - began > MOST_S:
                self._complain(f"not over after {MOST_S:.0f} s: {self._state()}")
                break
            self._undo_due()
            share = len(self._site.server.requests()) / total
            while waiting and share >= waiting[0].after:
                self._strike(waiting.pop(0))
            self._start_again()
            time.sleep(0.1)
        self._undo_due(all_of_them=True)

    def _over(self) -> bool:
        with contextlib.suppress(psycopg.Error), self._ask() as connection:
            row = connection.execute("SELECT state FROM jobs WHERE id = %s", (self._job,)).fetchone()
            return row is not None and row[0] in {"FINISHED", "ABORTED"}
        return False

    @contextlib.contextmanager
    def _ask(self) -> Iterator[psycopg.Connection[Any]]:
        host = self._postgres.home
        with psycopg.connect(host=str(host), user="muniment", dbname="fleet", connect_timeout=2) as connection:
            connection.execute("SET statement_timeout = 2000")
            yield connection

    def _state(self) -> str:
        with contextlib.suppress(psycopg.Error), self._ask() as connection:
            states = connection.execute("SELECT state, count(*) FROM pages GROUP BY state").fetchall()
            jobs = connection.execute("SELECT state, outcome FROM jobs").fetchall()
            return f"pages {dict(states)}, jobs {jobs}"
        return "the database does not answer"

    @property
    def _was_away(self) -> bool:
        return any("database" in kind for kind in self.verdict.struck)

    def _strike(self, blow: Blow) -> None:
        self.verdict.struck[blow.kind] += 1
        pipeline = self._fleet.pipelines[blow.whom % len(self._fleet.pipelines)]
        server = self._fleet.servers[blow.whom % len(self._fleet.servers)]
        relay = self._fleet.relays[blow.whom % len(self._fleet.relays)]
        match blow.kind:
            case "kill pipeline":
                pipeline.kill()
            case "kill server":
                server.kill()
            case "freeze pipeline":
                self._freeze(pipeline.frozen(), blow.lasts_s)
            case "freeze server":
                self._freeze(server.frozen(), blow.lasts_s)
            case "kill database":
                self._postgres.stop(kill=True)
                self._later(blow.lasts_s, self._postgres.start)
            case "freeze database":
                process = self._postgres._process
                if process is not None:
                    self._freeze(frozen(process.pid), blow.lasts_s)
            case "reset":
                relay.reset()
            case "stall":
                relay.stall(blow.lasts_s)
            case "refuse":
                relay.away(blow.lasts_s)
            case "cut":
                relay.cut(8)
            case "repeat":
                relay.repeat(blow.lasts_s * 3)
            case "repeat old":
                relay.repeat_old()

    def _freeze(self, freeze: contextlib.AbstractContextManager[None], seconds: float) -> None:
        stack = contextlib.ExitStack()
        stack.enter_context(freeze)
        self._later(seconds, stack.close)

    def _later(self, seconds: float, undo: Callable[[], None]) -> None:
        self._undo.append((time.monotonic() + seconds, undo))

    def _undo_due(self, *, all_of_them: bool = False) -> None:
        now = time.monotonic()
        due = [undo for undo in self._undo if all_of_them or undo[0] <= now]
        self._undo = [undo for undo in self._undo if undo not in due]
        for _, undo in due:
            undo()

    def _start_again(self) -> None:
        """Start what was killed; what ended by itself is a complaint."""
        for name, members in (("server", self._fleet.servers), ("pipeline", self._fleet.pipelines)):
            for number, member in enumerate(members):
                if member.code is None:
                    continue
                # a server that begins while its database is away says so, and is started again
                away = name == "server" and member.code == DATABASE_AWAY and self._was_away
                if member.code != -signal.SIGKILL and not away:
                    self._complain(f"{name} {number} ended with {member.code}: {member.said()}")
                member.start()

    def _end_fleet(self) -> None:
        for number, pipeline in enumerate(self._fleet.pipelines):
            if (code := pipeline.stop()) != 0:
                self._complain(f"pipeline {number} stopped with {code}: {pipeline.said()}")
        for number, server in enumerate(self._fleet.servers):
            if (code := server.stop()) != 0:
                self._complain(f"server {number} stopped with {code}: {server.said()}")

    # -- the verdict

    def _judge(self) -> None:
        rows = [row for number in range(self._count) for row in self._rows(number)]
        complete = [row for row in rows if not row["error"] and row["status"] == 200]
        self.verdict.captures = len(complete)
        expected = self._site.expected()
        found = {row["url"] for row in complete}
        for what, urls in (("missing", set(expected) - found), ("too many", found - set(expected))):
            if urls:
                self._complain(f"{len(urls)} pages {what}: {sorted(urls)[:5]}")
        twice = len(complete) - len(found)
        self._judge_tracker(twice)

    def _rows(self, number: int) -> list[dict[str, Any]]:
        directory = self._fleet.directory(number) / self._job
        if not any(directory.glob("*.warc.gz")):
            return []  # it was never given a page
        checked = subprocess.run(
            [sys.executable, "-m", "muniment", "check", str(directory)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if checked.returncode:
            self._complain(f"check of pipeline {number}: {checked.stdout} {checked.stderr}")
        index = directory / "captures.parquet"
        if not index.exists():
            self._complain(f"pipeline {number} has no index: {sorted(path.name for path in directory.iterdir())}")
            return []
        return list(pq.read_table(index).to_pylist())

    def _judge_tracker(self, twice: int) -> None:
        with self._ask() as connection:
            [in_hand] = connection.execute(IN_HAND).fetchone() or (0,)
            if twice > in_hand:
                self._complain(f"{twice} pages were captured again, and no more than {in_hand} were in hand")
            for question, text in QUESTIONS.items():
                wrong = connection.execute(text).fetchall()
                if wrong:
                    self._complain(f"{question}: {wrong[:5]}")

    def _complain(self, text: str) -> None:
        self.verdict.complaints.append(text)


IN_HAND = """
SELECT COALESCE(SUM(claims - (SELECT COUNT(*) FROM attempts WHERE attempts.session = sessions.epoch)), 0)
FROM sessions WHERE ending <> 'GOODBYE'
"""
"""The pages that sessions had when they were lost."""
QUESTIONS = {
    "the job has not ended as completed": (
        "SELECT id, state, outcome FROM jobs WHERE state <> 'FINISHED' OR outcome <> 'completed'"
    ),
    "pages are still claimed": "SELECT id, url FROM pages WHERE state = 'CLAIMED'",
    "pages are not done": "SELECT id, url, state, attempts_remaining FROM pages WHERE attempts_remaining <> 0 "
    "AND state = 'READY' AND in_scope",
    "pages have more than one good attempt": (
        "SELECT page_id, count(*) FROM attempts WHERE status = 200 AND error = '' GROUP BY page_id HAVING count(*) > 1"
    ),
    "pages have deaths that they did not cause": "SELECT id, url, deaths FROM pages WHERE deaths > 0",
    "pages were given up": "SELECT page_id, error FROM attempts WHERE error LIKE 'limit%'",
}
"""What is wrong when it has an answer."""


def main() -> int:
    """Run the rounds of the command line; 0 when nothing was lost in any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pages", type=int, default=800, help="of each of six hosts")
    given = parser.parse_args()
    failed = 0
    for seed in range(given.seed, given.seed + given.rounds):
        work = Path(tempfile.mkdtemp(prefix=f"muniment-fleet-{seed}-"))
        verdict = FleetRound(seed, work, pages=given.pages).run()
        failed += bool(verdict.complaints)
        print(json.dumps({**verdict.__dict__, "work": str(work) if verdict.complaints else ""}), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
