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

from muniment.errors import SessionEndedError
from muniment.model.link import FoundAs
from muniment.model.network.sessions import (
    ClaimCall,
    FinishCall,
    GreetCall,
    PermitsCall,
    SlotWant,
    claim_of,
    finished_page,
)
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
    greeting = GreetCall(instance=f"{time.time_ns():x}", slots=1)
    epoch, ask = dispatch.greet(name, greeting).epoch, 0
    with log.open("a", buffering=1) as claims:
        while not over(db):
            ask += 1
            try:
                handed = dispatch.claim(name, epoch, ClaimCall(ask=ask, want=[SlotWant(0, BATCH)])).jobs
                for part in handed:
                    claims.write("".join(f"{epoch} {claim.page_id}\n" for claim in part.claims))
                    web = [links_of(claim.url, size) for claim in part.claims]
                    done = [finished(claim_of(one), links) for one, links in zip(part.claims, web, strict=True)]
                    batch = finish_batch(done, [link for links in web for link in links])
                    told = [finished_page(page) for page in batch.pages]
                    dispatch.finish(name, epoch, FinishCall(job=part.job, pages=told, urls=batch.urls))
                give_way(dispatch, name, epoch)
            except SessionEndedError:
                epoch, ask = dispatch.greet(name, greeting).epoch, 0
                continue
            if not handed:
                dispatch.sweep()
                time.sleep(0.05)


def give_way(dispatch: Dispatch, name: str, epoch: int) -> None:
    """Keep no more connections than asked to: none are open between two claims."""
    if lowered := dispatch.news(name, epoch, 0).permits:
        back = dispatch.permits(name, epoch, PermitsCall(back=dict.fromkeys(lowered, 1_000))).permits
        assert not back


def main() -> None:
    _, url, directory, name, log, size = sys.argv
    with closing(opened(TrackerPlace(Path(directory), url))) as db:
        work(db, name, Path(log), int(size))
