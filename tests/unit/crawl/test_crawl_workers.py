"""Who of the workers is told of a cookie."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.pages import claim

from muniment.crawl.orchestrator import workers as module
from muniment.crawl.orchestrator.workers import WorkerHandle, Workers
from muniment.crawl.protocol import CookiesUpdate
from muniment.model.cookie import Cookie


class Told(WorkerHandle):
    """A worker that keeps what it was told."""

    def __init__(self, number: int) -> None:
        super().__init__(number, None)  # type: ignore[arg-type]
        self.heard: list[Any] = []

    def send(self, message: Any) -> None:
        self.heard.append(message)


def cookie(domain: str, *, host_only: bool) -> Cookie:
    return Cookie(domain, "a", "/", "b", host_only, False, False, 0, 1)


@pytest.fixture
def workers() -> Workers:
    made = Workers(lambda: None, lambda *_: None, lambda _: None)  # type: ignore[arg-type,return-value]
    made.members = {0: Told(0), 1: Told(1)}
    return made


def hold(member: WorkerHandle, *urls: str) -> list[int]:
    claims = [claim(url, page_id=100 + number) for number, url in enumerate(urls)]
    member.take(claims)
    return [one.page_id for one in claims]


def test_only_those_that_hold_pages_it_may_be_sent_with(workers: Workers) -> None:
    teller, other = workers.members.values()
    first, *_ = hold(other, "https://www.a.example/", "https://b.example/1", "https://b.example/2")
    said = [
        cookie("www.a.example", host_only=True),
        cookie("a.example", host_only=False),
        cookie("a.example", host_only=True),
        cookie("c.example", host_only=False),
        cookie("b.example", host_only=True),
    ]
    workers.tell_cookies(teller, said)
    assert other.heard == [CookiesUpdate([said[0], said[1], said[4]])]
    assert teller.heard == []
    assert other.drop([first])[0].url == "https://www.a.example/"
    other.drop([101])
    workers.tell_cookies(teller, said)
    assert other.heard[1:] == [CookiesUpdate([said[4]])]
    other.drop([102])
    workers.tell_cookies(teller, said)
    assert len(other.heard) == 2


@pytest.mark.parametrize("hosts", [10, 1_000])
def test_what_it_costs_does_not_depend_on_the_hosts_that_are_held(
    workers: Workers, monkeypatch: pytest.MonkeyPatch, hosts: int
) -> None:
    teller, other = workers.members.values()
    hold(other, *(f"https://h{number}.example/" for number in range(hosts)))
    asked: list[str] = []
    whole = module.domains_of
    monkeypatch.setattr(module, "domains_of", lambda host: asked.append(host) or whole(host))
    workers.tell_cookies(teller, [cookie(f"x{number}.example", host_only=False) for number in range(100)])
    assert len(asked) <= 100
    assert other.heard == []
