"""What a server and its PostgreSQL carry: small clients that claim pages and finish them a second later, unfetched.

Each step has more clients than the one before. Prints finished pages per second, the latency of claims and finishes by
percentile, and the CPU time of the servers and of PostgreSQL for a thousand pages. With `--idle`, the clients wait
beside many jobs instead: the share of a core that the server takes, and how long a change takes to reach all of them.
With `--rules`, a thousand rules are tried on the pages of a list and then given, while one client sends heartbeats and
parts of another list: how long that took, and how long the client waited. With `--memory`, the resident memory of the
first server is read every two seconds of each step, and the means of its thirds are printed. `--state` has the tracker
in a file. Of more than 100,000 pages, the others are copies of these by SQL.

Usage: python benchmarks/fleet_scale.py [--clients 10,100,1000] [--servers N] [--seconds S] [--idle] [--jobs N]
                                        [--rules] [--memory] [--pages N] [--state]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import text
from tests.support.fleet import Fleet, wait_for
from tests.support.postgres import Postgres

from muniment.clock import now_ms
from muniment.model.job import JobTerms
from muniment.model.pipeline import Pipeline
from muniment.model.place import TrackerPlace
from muniment.settings.option_table import Settings
from muniment.tracker.connect import tracker_at
from muniment.tracker.db.database import Database
from muniment.tracker.fleet.pipelines import add_pipeline
from muniment.tracker.jobs.terms import change_terms
from muniment.tracker.open import StartPages, submit_job
from muniment.tracker.schema.tables import pages as pages_table

PAGES = 20
"""Of one claim; a client fetches so many in a second."""
HOSTS, LISTED = 4_000, 100_000
PART = 10_000
"""Lines that are sent at once."""
WAIT_S = 40
"""Of questions that wait, as pipelines ask."""
AT_ONCE = 50
"""Clients that greet at a time."""
KEYS_OF_COPIES = """
    INSERT INTO page_keys (job_id, key, page_id) SELECT job_id, key, id FROM pages p
    WHERE NOT EXISTS (SELECT 1 FROM page_keys k WHERE k.job_id = p.job_id AND k.key = p.key) ORDER BY job_id, key
"""


class Client:
    """One connection that speaks HTTP/1.1, and what was asked by it."""

    def __init__(self, port: int, token: str, latencies: dict[str, list[float]]) -> None:
        self._port, self._token, self._latencies = port, token, latencies
        self._stream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.finished = 0
        self.ask_number = 0

    async def ask(self, what: str, method: str, path: str, body: Any = None) -> Any:
        """One request; its time counts below a name, unless that is empty."""
        if self._stream is None:
            self._stream = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._stream
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: s\r\nAuthorization: Bearer {self._token}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        began = time.perf_counter()
        writer.write(head.encode() + content)
        status = int((await reader.readline()).split()[1])
        length = 0
        while (line := await reader.readline()).strip():
            name, _, value = line.decode().partition(":")
            length = int(value) if name.lower() == "content-length" else length
        answer = json.loads(await reader.readexactly(length) or b"null")
        if what:
            self._latencies.setdefault(f"{what} {status}" if status >= 300 else what, []).append(
                time.perf_counter() - began
            )
        return answer if status < 300 else None

    async def greet(self) -> None:
        """Begin a session."""
        greeting = {"instance": "ab", "slots": 1, "version": "scale", "protocol": 1}
        self.epoch = (await self.ask("", "POST", "/v1/session", greeting))["epoch"]

    async def work(self, until: float) -> None:
        """Claim, wait a second, finish, and again."""
        while time.monotonic() < until:
            self.ask_number += 1
            call = {"ask": self.ask_number, "want": [{"slot": 0, "pages": PAGES}], "wait_s": 0}
            answer = await self.ask("claim", "POST", f"/v1/session/{self.epoch}/claim", call)
            if not answer or not answer["jobs"]:
                self.ask_number -= 1
                await asyncio.sleep(1)
                continue
            await asyncio.sleep(1)
            for part in answer["jobs"]:
                pages = [_finished(claim) for claim in part["claims"]]
                call = {"job": part["job"], "pages": pages}
                done = await self.ask("finish", "POST", f"/v1/session/{self.epoch}/finish", call)
                self.finished += len(done["accepted"]) if done else 0

    async def wait_for_pages(self, until: float) -> None:
        """Ask for pages, of which there are none: each question waits."""
        while time.monotonic() < until:
            call = {"ask": self.ask_number + 1, "want": [{"slot": 0, "pages": PAGES}], "wait_s": WAIT_S}
            await self.ask("", "POST", f"/v1/session/{self.epoch}/claim", call)

    async def beat(self, until: float) -> None:
        """Send a heartbeat each ten seconds."""
        while time.monotonic() < until:
            await asyncio.sleep(10)
            await self.ask("heartbeat", "POST", f"/v1/session/{self.epoch}/heartbeat", {})

    async def wait(self, until: float, heard: asyncio.Queue[float]) -> None:
        """Be idle: ask for news; each question waits."""
        known = 0
        while time.monotonic() < until:
            news = await self.ask("", "GET", f"/v1/session/{self.epoch}/news?after={known}&wait_s={WAIT_S}")
            if news and news["news"] > known:
                known = news["news"]
                heard.put_nowait(time.monotonic())

    def close(self) -> None:
        if self._stream is not None:
            self._stream[1].close()


def _finished(claim: dict[str, Any]) -> dict[str, Any]:
    now = now_ms()
    return {
        "page_id": claim["page_id"], "claim_id": claim["claim_id"], "attempt": claim["attempt"], "status": 200,
        "error": "", "done": True, "followed": True, "started_at": now, "finished_at": now, "body_length": 20_000,
        "exchanges": [[claim["url"], 200, "", 20_000, now]],
    }  # fmt: skip


def add_list(fleet: Fleet, work: Path, pages: int) -> None:
    file = work / "list.txt"
    file.write_text("".join(f"http://h{n % HOSTS}.example/{n}\n" for n in range(pages)))
    fleet.run("job", "add", "--fetch", str(file), "--no-robots", "--server", fleet.url(0), seconds=3600)


def copy_pages(db: Database, copies: int) -> None:
    """Have so many pages wait for each one of job 1."""
    keys = {"sqlite": "randomblob(16)", "postgresql": "decode(md5(p.id || ' ' || n), 'hex')"}
    key = keys[db.engine.dialect.name]
    made = {"id": "p.id + n * (SELECT max(id) FROM pages)", "key": key, "url": "p.url || '-' || n"}
    names = [column.name for column in pages_table.columns]
    with db.transaction() as connection:
        for index in pages_table.indexes:
            index.drop(connection)
        copied = connection.execute(
            text(
                f"INSERT INTO pages ({', '.join(names)}) "
                f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {copies - 1}) "
                f"SELECT {', '.join(made.get(name, f'p.{name}') for name in names)} FROM numbers, pages p"
            )
        )
        connection.execute(text(KEYS_OF_COPIES))
        for index in pages_table.indexes:
            index.create(connection)
    print(f"{copied.rowcount:,} copies of pages", flush=True)


def restarted(fleet: Fleet) -> list[psutil.Process]:
    for server in fleet.servers:
        begun = server.said().count("serving http")
        server.stop()
        server.start()
        wait_for(lambda server=server, begun=begun: server.said().count("serving http") > begun, "the server")
    return [psutil.Process(one.process.pid) for one in fleet.servers if one.process]


async def watch(process: psutil.Process) -> None:
    """Print the means of the thirds of a process's resident memory, once this is cancelled."""
    sizes: list[float] = []
    with suppress(asyncio.CancelledError):
        while True:
            sizes.append(process.memory_info().rss / 1e6)
            await asyncio.sleep(2)
    third = max(1, len(sizes) // 3)
    means = [statistics.mean(part) for part in (sizes[:third], sizes[third : -third or None], sizes[-third:])]
    print(f"resident memory: {', '.join(f'{mean:.0f}' for mean in means)} MB; maximum {max(sizes):.0f} MB", flush=True)


def thousand_rules() -> list[dict[str, Any]]:
    """Most are about one host, or a part of one."""
    made: list[dict[str, Any]] = [{"regex": "/[0-9]*7$", "skip": True}, {"prefix": "http://h5", "nice": 9}]
    made += [{"host": f"h{n}.example", "skip": bool(n % 2)} for n in range(500)]
    return made + [{"prefix": f"http://h{n}.example/", "ua": "other"} for n in range(500, 998)]


async def try_rules(fleet: Fleet, work: Path, port: int, token: str) -> None:
    """Try rules on the pages of job 1, and give them."""
    file = work / "rules.json"
    file.write_text(json.dumps(thousand_rules()))
    latencies: dict[str, list[float]] = {}
    [client] = await begun([port], [token], latencies)
    feeder = Client(port, fleet.token, latencies)
    began = time.monotonic()
    trying = asyncio.create_task(
        asyncio.to_thread(
            fleet.run, "job", "rules", "1", str(file), "--dry-run", "--json", "--server", fleet.url(0), seconds=900
        )
    )
    feeding = asyncio.create_task(feed(feeder, trying))
    spent = 0.0
    while not trying.done():
        spent = max([spent, *map(cpu_of_one, tries_of(fleet))])
        await client.ask("heartbeat", "POST", f"/v1/session/{client.epoch}/heartbeat", {})
        await asyncio.sleep(0.1)
    effect, tried = json.loads(await trying), time.monotonic()
    await feeding
    told = [f"{name} {max(values):.2f} s at most of {len(values)}" for name, values in sorted(latencies.items())]
    print(
        f"a dry run of {tried - began:.1f} s, {spent:.1f} CPU-s: {effect['skipped']:,} skipped; {'; '.join(told)}",
        flush=True,
    )
    await asyncio.to_thread(fleet.ask, "job", "rules", "1", str(file))
    given, skipped = time.monotonic(), -1
    while skipped != effect["skipped"] and time.monotonic() < given + 900:
        await asyncio.sleep(1)
        skipped = await skipped_of(feeder)
    print(f"given, {skipped:,} pages were skipped {time.monotonic() - given:.1f} s later", flush=True)
    for one in (client, feeder):
        one.close()


def tries_of(fleet: Fleet) -> list[psutil.Process]:
    """The processes of dry runs."""
    assert fleet.servers[0].process is not None
    with suppress(psutil.NoSuchProcess):
        children = psutil.Process(fleet.servers[0].process.pid).children()
        return [one for one in children if "dry-run" in one.cmdline()]
    return []


async def skipped_of(client: Client) -> int:
    view = await client.ask("", "GET", "/v1/jobs/1")
    return int(view["pages"]["skipped"]) if view else -1


async def feed(client: Client, beside: asyncio.Task[str]) -> None:
    """Send parts of another list as long as something else goes on."""
    job, at = (await client.ask("", "POST", "/v1/jobs", {"list": True, "paused": True}))["id"], 0
    while not beside.done():
        lines = [{"url": f"http://h{n % HOSTS}.example/{n}"} for n in range(at, at + PART)]
        if await client.ask("lines", "POST", f"/v1/jobs/{job}/lines", {"at": at, "lines": lines}):
            at += PART


def cpu_of_one(process: psutil.Process) -> float:
    with suppress(psutil.NoSuchProcess):
        return float(sum(process.cpu_times()[:2]))
    return 0.0


def cpu_of(processes: list[psutil.Process]) -> float:
    total = 0.0
    for process in processes:
        for one in [process, *process.children(recursive=True)]:
            times = one.cpu_times()
            total += times.user + times.system
    return total


def percentiles(values: list[float]) -> str:
    ordered = sorted(values)
    return " ".join(f"p{p} {ordered[min(len(ordered) - 1, len(ordered) * p // 100)] * 1000:.0f}" for p in (50, 95, 99))


async def begun(ports: list[int], tokens: list[str], latencies: dict[str, list[float]]) -> list[Client]:
    clients = [Client(ports[n % len(ports)], token, latencies) for n, token in enumerate(tokens)]
    for at in range(0, len(clients), AT_ONCE):
        await asyncio.gather(*(client.greet() for client in clients[at : at + AT_ONCE]))
    return clients


async def step(
    ports: list[int], tokens: list[str], seconds: float, processes: dict[str, list[psutil.Process]], *, memory: bool
) -> None:
    latencies: dict[str, list[float]] = {}
    clients = await begun(ports, tokens, latencies)
    before, began = {name: cpu_of(some) for name, some in processes.items()}, time.monotonic()
    watching = asyncio.create_task(watch(processes["servers"][0])) if memory else None
    await asyncio.gather(*(client.work(began + seconds) for client in clients))
    if watching is not None:
        watching.cancel()
        await watching
    spent, pages = time.monotonic() - began, sum(client.finished for client in clients)
    told = [f"{len(clients):5} clients {pages / spent:7.0f} pages/s"]
    told += [f"{name} {percentiles(values)} ms" for name, values in sorted(latencies.items())]
    told += [
        f"{name} {(cpu_of(some) - before[name]) / max(1, pages) * 1000:.2f} CPU-s/1000"
        for name, some in processes.items()
    ]
    print("; ".join(told), flush=True)
    for client in clients:
        await client.ask("", "DELETE", f"/v1/session/{client.epoch}")
        client.close()


async def idle(
    fleet: Fleet, ports: list[int], tokens: list[str], seconds: float, servers: list[psutil.Process]
) -> None:
    latencies: dict[str, list[float]] = {}
    clients = await begun(ports, tokens, latencies)
    heard: asyncio.Queue[float] = asyncio.Queue()
    until = time.monotonic() + seconds + 120
    waiting = [asyncio.create_task(client.wait(until, heard)) for client in clients]
    beating, asking = (
        [Client(ports[n % len(ports)], token, latencies) for n, token in enumerate(tokens)] for _ in range(2)
    )
    for one, other, client in zip(asking, beating, clients, strict=True):
        one.epoch = other.epoch = client.epoch
    waiting += [asyncio.create_task(one.beat(until)) for one in beating]
    waiting += [asyncio.create_task(one.wait_for_pages(until)) for one in asking]
    # each takes a slot at a job that has no page for it now
    await asyncio.sleep(5)
    before, began = cpu_of(servers), time.monotonic()
    await asyncio.sleep(seconds)
    share = (cpu_of(servers) - before) / (time.monotonic() - began)
    print(f"{len(clients)} idle sessions: {share:.1%} of a core", flush=True)
    while not heard.empty():
        heard.get_nowait()
    late: list[float] = []
    for name in range(3):
        await asyncio.to_thread(fleet.ask, "pipelines", "stop", f"c{name}")
        answered = time.monotonic()
        late.append(await asyncio.wait_for(heard.get(), 15) - answered)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    beats = percentiles(latencies["heartbeat"])
    print(f"heartbeats {beats} ms; changes heard {max(0, *late):.1f} s after their answers")
    for client in [*clients, *asking, *beating]:
        client.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="small clients of a fleet's server")
    parser.add_argument("--clients", default="10,50,100,200,500,1000")
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--pages", type=int, default=200_000)
    parser.add_argument("--idle", action="store_true")
    parser.add_argument("--rules", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--state", action="store_true", help="a tracker in a file")
    parser.add_argument("--jobs", type=int, default=1000, help="with --idle")
    given = parser.parse_args()
    counts = [int(text) for text in given.clients.split(",")]
    with tempfile.TemporaryDirectory(prefix="bench-scale-") as home, Postgres(on_disk=True) as postgres:
        work = Path(home)
        url = "" if given.state else postgres.create("scale")
        state = work / "state"
        state.mkdir()
        with Fleet(work / "work", ("--database", url) if url else ("--state", str(state))) as fleet:
            for _ in range(given.servers):
                fleet.serve()
            with tracker_at(TrackerPlace(state, url)) as db:
                tokens = [add_pipeline(db, Pipeline(f"c{n}"), now_ms()) for n in range(max(counts))]
                if given.idle:
                    add_jobs(db, given.jobs)
            servers = [psutil.Process(one.process.pid) for one in fleet.servers if one.process]
            ports = [relay.target[1] for relay in fleet.relays]
            if given.idle:
                asyncio.run(idle(fleet, ports, tokens[: counts[-1]], given.seconds, servers))
                return
            add_list(fleet, work, min(given.pages, LISTED))
            if given.pages > LISTED:
                with tracker_at(TrackerPlace(state, url)) as db:
                    copy_pages(db, given.pages // LISTED)
                servers = restarted(fleet)  # a server counts what waits when it begins
            if given.rules:
                asyncio.run(try_rules(fleet, work, ports[0], tokens[0]))
                return
            assert postgres.pid is not None
            processes = {"servers": servers, "postgres": [psutil.Process(postgres.pid)]}
            for count in counts:
                asyncio.run(step(ports, tokens[:count], given.seconds, processes, memory=given.memory))


def add_jobs(db: Database, count: int) -> None:
    """Each has a page that waits, and asks for a tag that no pipeline has: nobody has anything to do."""
    for number in range(count):
        job = submit_job(db, f"job {number}", Settings(), StartPages([f"http://j{number}.example/"]), now_ms()).job
        change_terms(db, job.job_id, "scale", JobTerms(tags=frozenset({"none"})), now_ms())


if __name__ == "__main__":
    main()
