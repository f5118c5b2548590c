"""Cookies that a worker does not have are asked for; without any, nothing is."""

from __future__ import annotations

import asyncio
from typing import Any

from muniment.crawl.worker import http_session as module
from muniment.crawl.worker.http_session import HttpSession
from muniment.model.cookie import Cookie


def cookie(domain: str, name: str = "n", size: int = 1) -> Cookie:
    return Cookie(domain, name, "/", "v" * size, True, False, False, 0, 1)


def made(asked: list[str]) -> HttpSession:
    async def ask(url: str) -> str:
        asked.append(url)
        return "from=there"

    nothing: Any = None
    return HttpSession(nothing, nothing, nothing, ask)


def field(visitor: HttpSession, host: str) -> str:
    return asyncio.run(visitor._cookies_for(f"https://{host}/", host))


def test_hosts_with_too_many_for_a_message_are_asked_for_until_they_come() -> None:
    asked: list[str] = []
    visitor = made(asked)
    visitor.given({"a.example": [cookie("a.example")]}, ["b.example"])
    assert [field(visitor, host) for host in ("a.example", "b.example", "c.example")] == ["n=v", "from=there", ""]
    visitor.given({"b.example": [cookie("b.example")]}, [])
    assert field(visitor, "b.example") == "n=v"
    assert asked == ["https://b.example/"]


def test_what_was_dropped_is_asked_for(monkeypatch) -> None:
    monkeypatch.setattr(module, "_MOST_MISSING", 5)
    asked: list[str] = []
    visitor = made(asked)
    hosts = [f"h{number}.example" for number in range(30)]
    for host in hosts:
        visitor.given({host: [cookie(host, f"c{number}", 4_000) for number in range(180)]}, [])
    dropped = [host for host in hosts if field(visitor, host) == "from=there"]
    kept = [host for host in hosts if field(visitor, host).startswith("c0=v")]
    assert kept[-1] == hosts[-1]
    assert 10 < len(kept) < 25
    assert dropped == hosts[: -len(kept)][-5:], "of the others, those that came last"
    assert asked == [f"https://{host}/" for host in [*dropped, *dropped]]


def test_news_go_in_parts_that_fit_into_a_message() -> None:
    visitor = made([])
    visitor._news = [cookie("a.example", str(number), 400_000) for number in range(10)]
    parts = visitor.take_news()
    assert [one.name for part in parts for one in part] == [str(number) for number in range(10)]
    assert all(sum(len(one.value) for one in part) <= 2 << 20 for part in parts)
    assert visitor.take_news() == [[]]
