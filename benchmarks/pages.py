"""How long the pages of the dashboard and of a server take over much: jobs, rows of the index, processes, attempts.

Run `python benchmarks/pages.py`; `--jobs N`, `--rows N`, `--processes N` for other sizes. The runs are copies of a real
crawl, the first of them with so many rows in its index and so many pages in its tracker; the tracker of the server has
so many attempts at one job. All of it is made with SQL and Arrow, in a minute or two. Each page is asked for five
times, by one client; the first answer is shown apart.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

import pyarrow as pa
import pyarrow.parquet as pq
from tests.support.dashboard import Dashboard
from tests.support.gated_site import GatedSite

LOCAL = ("/", "/?text=12", "/jobs/1", "/jobs/1/log", "/jobs/1/queue", "/jobs/1/ignores", "/jobs/1/hosts",
         "/jobs/1/results?url={url}", "/jobs/1/why?url={url}", "/processes", "/processes?type=worker&q=crawl",
         "/captures", "/captures?q=7777", "/captures?host=h3.example&status=4xx", "/captures?q=nowhere")  # fmt: skip
SERVER = ("/", "/jobs/1", "/jobs/1/log", "/jobs/1/queue", "/jobs/1/ignores", "/jobs/1/hosts", "/processes",
          "/pipelines", "/jobs/1/why?url={url}", "/captures", "/captures?q=7777", "/captures?status=4xx",
          "/captures?q=nowhere")  # fmt: skip
ROUNDS = 5
_COPIES = "job_id = ? AND id >= 1000"
MUNIMENT = [sys.executable, "-m", "muniment"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--only", choices=("dashboard", "serve"))
    parser.add_argument("--processes", type=int, default=100_000)
    given = parser.parse_args()
    with TemporaryDirectory(prefix="muniment-bench-") as name:
        work = Path(name)
        os.environ["MUNIMENT_PROCESSES"] = str(work / "processes")
        print(f"{given.jobs:,} jobs, {given.rows:,} rows, {given.processes:,} processes\n")
        print("| page | first, ms | median, ms | slowest, ms |\n|---|---|---|---|", flush=True)
        if given.only != "serve":
            url = make_runs(work, given.jobs, given.rows)
            make_processes(work / "processes" / "processes.sqlite", given.processes)
            with Dashboard(work, "runs") as dashboard:
                dashboard.sign_in()
                measure("dashboard", LOCAL, url, dashboard.origin, dashboard.cookie)
            shutil.rmtree(work / "runs")
        if given.only != "dashboard":
            with served(work, given.jobs, given.rows) as (origin, cookie):
                measure("serve", SERVER, "http://h1.example/1", origin, cookie)


def measure(name: str, paths: tuple[str, ...], url: str, origin: str, cookie: str) -> None:
    for path in paths:
        times = []
        for _ in range(ROUNDS + 1):
            began = time.perf_counter()
            connection = HTTPConnection(origin.partition("://")[2], timeout=300)
            connection.request("GET", path.format(url=url), headers={"Cookie": cookie})
            answer = connection.getresponse()
            answer.read()
            connection.close()
            times.append((time.perf_counter() - began) * 1000)
            assert answer.status == 200, (path, answer.status)
        first, *rest = times
        print(f"| {name} {path} | {first:.0f} | {statistics.median(rest):.0f} | {max(rest):.0f} |", flush=True)


def make_runs(work: Path, jobs: int, rows: int) -> str:
    links = "".join(f"<a href=/p/{n}>{n}</a>" for n in range(50))
    with GatedSite({"/": links, **{f"/p/{n}": f"<title>{n}</title>" for n in range(50)}}) as site:
        options = ("--quiet", "--no-robots", "--no-sitemaps")
        subprocess.run([*MUNIMENT, "crawl", site.url, "-o", "runs/0001", *options], cwd=work, check=True)
        url = f"{site.url}p/1"
    first = work / "runs" / "0001"
    for number in range(2, jobs + 1):
        shutil.copytree(first, work / "runs" / f"{number:04d}")
    with closing(sqlite3.connect(first / "tracker.sqlite")) as db:
        add_pages(db, rows // 2, pending=True)
    index = first / "captures.parquet"
    pq.write_table(many_rows(pq.read_table(index), rows), index, row_group_size=10_000, compression="zstd")
    return url


def many_rows(table: pa.Table, rows: int) -> pa.Table:
    """The rows of a table again and again, with URLs, hosts and times of their own."""
    made = table.take(pa.array([n % len(table) for n in range(rows)]))
    begun = int(table.column("fetched_at")[0].as_py())
    for name, values in (
        ("url", (f"http://h{n % 40}.example/{n // 9}/{n}" for n in range(rows))),
        ("host", (f"h{n % 40}.example" for n in range(rows))),
        ("fetched_at", (begun + n * 40 for n in range(rows))),
        ("status", (404 if n % 50 == 0 else 200 for n in range(rows))),
    ):
        at = made.schema.get_field_index(name)
        made = made.set_column(at, made.schema.field(name), pa.array(values, made.schema.field(name).type))
    return made


def add_pages(db: sqlite3.Connection, count: int, *, pending: bool, job: int = 1) -> None:
    """Copies of a page of a job, with attempts unless they are pending."""
    names = [row[1] for row in db.execute("PRAGMA table_info(pages)")]
    own = {"id": "1000 + n", "key": "randomblob(16)", "url": "'http://h1.example/' || n", "state": "'READY'"}
    own |= {"attempts_remaining": "2" if pending else "0", "attempts": "0" if pending else "1"}
    own |= {"in_scope": "1", "counted": "0" if pending else "1", "ready_at": "0", "claim_id": "NULL"}
    columns = ", ".join(own.get(name, f"p.{name}") for name in names)
    numbers = f"WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < {count - 1})"
    one = f"(SELECT * FROM pages WHERE job_id = {job} LIMIT 1)"
    db.execute(f"INSERT INTO pages {numbers} SELECT {columns} FROM c, {one} p")
    db.execute(
        f"INSERT INTO page_keys (job_id, key, page_id) SELECT job_id, key, id FROM pages WHERE {_COPIES}", (job,)
    )
    if not pending:
        db.execute(
            "INSERT INTO attempts (job_id, page_id, number, session, worker, ruleset, started_at, finished_at, status, "
            f"error) {numbers} SELECT {job}, 1000 + n, 1, 1, 1, 1, 1795000000000 + n * 40, 1795000000030 + n * 40, "
            "CASE n % 50 WHEN 0 THEN 404 ELSE 200 END, '' FROM c"
        )
    db.commit()


def make_processes(path: Path, count: int) -> None:
    with closing(sqlite3.connect(path)) as db:
        names = [row[1] for row in db.execute("PRAGMA table_info(processes)")]
        own = {"id": "lower(hex(randomblob(16)))", "status": "'exited'", "queued_at": "1795000000000 + n"}
        own |= {"root_id": "p.root_id || n / 20", "ended_at": "1795000000000 + n", "beat_at": "1795000000000"}
        columns = ", ".join(own.get(name, f"p.{name}") for name in names)
        numbers = f"WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < {count - 1})"
        one = "(SELECT * FROM processes WHERE process_type = 'worker' LIMIT 1)"
        db.execute(f"INSERT INTO processes {numbers} SELECT {columns} FROM c, {one} p")
        db.commit()


@contextmanager
def served(work: Path, jobs: int, attempts: int) -> Iterator[tuple[str, str]]:
    state = ["--state", str(work / "state")]
    added = [*MUNIMENT, "tokens", "add", "boss", "--scope", "admin", *state]
    token = subprocess.run(added, check=True, capture_output=True, text=True).stdout.strip()
    with running(state, token) as (origin, cookie):
        place = HTTPConnection(origin.partition("://")[2], timeout=60)
        for number in range(jobs):
            order = urlencode({"url": f"https://h{number}.example.org/"})
            place.request("POST", "/jobs", order, {"Origin": origin, "Cookie": cookie})
            assert place.getresponse().read() == b""
        place.close()
    with closing(sqlite3.connect(work / "state" / "tracker.sqlite")) as db:
        add_pages(db, attempts, pending=False)
    with running(state, token) as found:
        yield found


@contextmanager
def running(state: list[str], token: str) -> Iterator[tuple[str, str]]:
    """A server, and the cookie of a session with it."""
    command = [*MUNIMENT, "serve", *state, "--listen", "127.0.0.1:0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            origin = str(json.loads(process.stdout.readline())["url"])
            place = HTTPConnection(origin.partition("://")[2], timeout=60)
            place.request("POST", "/login", urlencode({"token": token}), {"Origin": origin})
            cookie = str(place.getresponse().headers["Set-Cookie"]).partition(";")[0]
            place.close()
            yield origin, cookie
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
