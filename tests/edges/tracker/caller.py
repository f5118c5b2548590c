"""A process that works for a tracker beside others: what a server with many sessions will be several of.

Arguments: the database's URL, a directory, the pipeline's name, the file to note claims in, the size of the web.
"""

from __future__ import annotations

import sys
import time
from contextlib import closing
from pathlib import Path

from sqlalchemy import select
from tests.support.pages import Links, finish_batch, finished

from muniment.clock import now_ms
from muniment.model.link import FoundAs
from muniment.model.pipeline import Greeting
from muniment.model.place import TrackerPlace
from muniment.tracker.connect import opened
from muniment.tracker.db.database import Database
from muniment.tracker.fleet.dispatch import Dispatch
from muniment.tracker.schema.tables import jobs

LINKS, HOSTS, BATCH = 8, 5, 20


def address(number: int) -> str:
    return f"https://host{number % HOSTS}.example/{number}"


def links_of(url: str, size: int) -> Links:
    """Each page leads to a few others, most of which others lead to as well."""
    number = int(url.rpartition("/")[2])
    return [(address((number * 3 + step) % size), FoundAs.A) for step in range(1, LINKS + 1)]


def over(db: Database) -> bool:
    states = db.connection.execute(select(jobs.c.state)).scalars().all()
    return set(states) <= {"FINISHED", "ABORTED"}


def work(db: Database, name: str, log: Path, size: int) -> None:
    dispatch = Dispatch(db)
    greeting = Greeting(f"{time.time_ns():x}", 1, "1")
    epoch = dispatch.greet(name, greeting, now_ms()).epoch
    with log.open("a", buffering=1) as claims:
        while not over(db):
            handed = dispatch.claim(epoch, BATCH, now_ms())
            if handed is None:
                epoch = dispatch.greet(name, greeting, now_ms()).epoch
                continue
            for one in handed:
                claims.write("".join(f"{epoch} {claim.page_id}\n" for claim in one.claims))
                web = [links_of(claim.url, size) for claim in one.claims]
                done = [finished(claim, links) for claim, links in zip(one.claims, web, strict=True)]
                batch = finish_batch(done, [link for links in web for link in links])
                dispatch.finish(one.job_id, batch, 0, now_ms())
            if not handed:
                dispatch.sweep(now_ms())
                time.sleep(0.05)


if __name__ == "__main__":
    _, url, directory, name, log, size = sys.argv
    with closing(opened(TrackerPlace(Path(directory), url))) as db:
        work(db, name, Path(log), int(size))
