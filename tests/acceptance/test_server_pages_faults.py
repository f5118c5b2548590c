"""The pages of servers that share a database, and of one whose database is away, locked or on a full disk."""

from __future__ import annotations

import http.client
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from crawled import wait_until
from tests.support.disks import fill, small_disk
from tests.support.postgres import Postgres

PAGES = ("/", "/jobs/1", "/jobs/1/log", "/jobs/1/queue", "/jobs/1/ignores", "/jobs/1/hosts", "/captures", "/processes",
         "/pipelines", "/jobs/1/why?url=http://a.example/", "/jobs/1/results?url=http://a.example/")  # fmt: skip
SOON_S = 8.0
"""Two seconds, for a machine that is four times slower than that of the developers."""


class ServedPages:
    """The pages of a server, signed in."""

    def __init__(self, muniment: Any, token: str, *tracker: object) -> None:
        self.process = muniment.start("serve", *tracker, "--listen", "127.0.0.1:0", "--allow-private")
        self.origin = str(self.process.stdout.readline().split()[1])
        self.cookie = ""
        _, headers, _ = self.ask("POST", "/login", token=token)
        self.cookie = headers["set-cookie"].partition(";")[0]

    def ask(self, method: str, path: str, **form: str) -> tuple[int, dict[str, str], str]:
        """Status, head and text of an answer."""
        with self._sent(method, path, urlencode(form) if method == "POST" else None) as answer:
            head = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, head, answer.read().decode()

    @contextmanager
    def _sent(self, method: str, path: str, body: str | None = None) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPConnection(self.origin.partition("://")[2], timeout=60)
        try:
            connection.request(method, path, body, {"Cookie": self.cookie, "Origin": self.origin})
            yield connection.getresponse()
        finally:
            connection.close()

    def state_on_stream(self, job: int, wanted: str, change: Any) -> float:
        """Seconds from a change until the stream of a job says a state."""
        with self._sent("GET", f"/v1/events?job={job}") as answer:
            assert answer.readline()
            began = time.monotonic()
            change()
            while line := answer.readline():
                if line.startswith(b"data:") and f'"{wanted}"'.encode() in line:
                    return time.monotonic() - began
        raise AssertionError("the stream ended")


def said_in_one_line(reply: tuple[int, dict[str, str], str], *statuses: int) -> None:
    status, _, text = reply
    assert status in statuses, (status, text)
    if status >= 400:
        said = re.findall(r'data-testid="error" role="alert">([^<]+)<', text)
        assert len(said) == 1 and "the server failed" not in said[0], text


def token_of(muniment: Any, *tracker: object) -> str:
    done = muniment("tokens", "add", "boss", "--scope", "admin", *tracker)
    assert done.code == 0, done.stderr
    return str(done.stdout.strip())


def test_a_change_at_one_server_shows_at_the_other(muniment: Any, postgres: Postgres) -> None:
    database = "--database", postgres.create("two_pages")
    token = token_of(muniment, *database)
    here, there = (ServedPages(muniment, token, *database) for _ in "ab")
    assert here.ask("POST", "/jobs", url="https://example.com/")[0] == 303
    wait_until(lambda: 'data-job="1"' in there.ask("GET", "/")[2], "the job is seen at the other server", SOON_S)
    for action, state in (("pause", "paused"), ("resume", "running"), ("abort", "aborted")):
        took = there.state_on_stream(1, state, lambda action=action: here.ask("POST", f"/jobs/1/{action}"))  # type: ignore[misc]
        assert took < SOON_S, (action, took)
        assert f'data-state="{state}"' in there.ask("GET", "/jobs/1")[2]
    assert here.ask("POST", "/jobs/1/resume")[0] == 303
    assert here.ask("POST", "/jobs/1/ignores", pattern="/never/")[0] == 303
    assert "/never/" in there.ask("GET", "/jobs/1/ignores")[2] and "/never/" in there.ask("GET", "/jobs/1")[2]
    assert here.ask("POST", "/jobs/1/settings", delay="700")[0] == 303
    assert 'value="700"' in there.ask("GET", "/jobs/1")[2]
    assert muniment("tokens", "revoke", "boss", *database).code == 0
    wait_until(lambda: there.ask("GET", "/")[0] == 303, "a token that is revoked opens nothing", SOON_S)


def test_a_database_that_is_away_is_one_line(muniment: Any) -> None:
    with Postgres() as server:
        database = "--database", server.create("away_pages")
        pages = ServedPages(muniment, token_of(muniment, *database), *database)
        assert pages.ask("POST", "/jobs", url="https://example.com/")[0] == 303
        assert [pages.ask("GET", path)[0] for path in PAGES] == [200] * len(PAGES)
        server.stop(kill=True)
        for path in PAGES:
            said_in_one_line(pages.ask("GET", path), 503)
        said_in_one_line(pages.ask("POST", "/jobs/1/pause"), 503)
        server.start()
        wait_until(lambda: [pages.ask("GET", path)[0] for path in PAGES] == [200] * len(PAGES), "it answers again")
        assert 'data-state="running"' in pages.ask("GET", "/jobs/1")[2], "nothing of that changed anything"


def test_a_tracker_that_is_locked_or_full_or_gone_is_one_line(muniment: Any, tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", 30) as disk:
        tracker = "--state", disk / "kept"
        pages = ServedPages(muniment, token_of(muniment, *tracker), *tracker)
        assert pages.ask("POST", "/jobs", url="https://example.com/")[0] == 303
        assert [pages.ask("GET", path)[0] for path in PAGES] == [200] * len(PAGES)
        ballast = fill(disk)
        for path in PAGES:
            said_in_one_line(pages.ask("GET", path), 200, 503)
        said_in_one_line(pages.ask("POST", "/jobs/1/ignores", pattern="x" * 9000), 303, 503)
        said_in_one_line(pages.ask("POST", "/jobs/1/pause"), 303, 503)
        ballast.unlink()
        wait_until(lambda: pages.ask("POST", "/jobs/1/pause")[0] == 303, "there is room again")
        with closing(sqlite3.connect(disk / "kept" / "tracker.sqlite", timeout=10)) as holder:
            holder.execute("BEGIN EXCLUSIVE")
            for path in PAGES:
                said_in_one_line(pages.ask("GET", path), 200, 503)
            said_in_one_line(pages.ask("POST", "/jobs/1/resume"), 503)
            holder.rollback()
        wait_until(lambda: pages.ask("POST", "/jobs/1/resume")[0] == 303, "it is locked no longer")
        for path in (disk / "kept").glob("tracker.sqlite*"):
            path.write_bytes(b"not a database, whatever it is called" * 200)
        for path in PAGES:
            said_in_one_line(pages.ask("GET", str(path)), 200, 503)
        pages.process.kill()
        pages.process.wait(10)
