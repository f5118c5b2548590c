"""Which pages are handed out alone, and when one is given up."""

from __future__ import annotations

from muniment.model.page import Claim
from muniment.rules.worker_deaths import WorkerDeaths


def claim(page: int) -> Claim:
    return Claim(page, page, f"http://a.example/{page}", "a.example", 1, False, 0, 0, "", True)


def pages(claims: list[Claim]) -> list[int]:
    return [one.page_id for one in claims]


def test_one_death_makes_nothing_suspect():
    deaths = WorkerDeaths()
    deaths.died([1, 2, 3], "exit 1")
    out, back = deaths.sift([claim(1), claim(2)], idle=False)
    assert (pages(out), back) == ([1, 2], [])


def test_a_suspect_goes_alone_to_a_worker_without_pages():
    deaths = WorkerDeaths()
    for _ in range(2):
        deaths.died([1, 2], "exit 1")
    out, back = deaths.sift([claim(1), claim(2), claim(3)], idle=True)
    assert (pages(out), pages(back)) == ([1], [2, 3])
    out, back = deaths.sift([claim(1), claim(2), claim(3)], idle=False)
    assert (pages(out), pages(back)) == ([3], [1, 2])
    assert deaths.alone([1])
    assert not deaths.alone([1, 3])
    assert not deaths.alone([3])


def test_two_deaths_alone_are_proof_and_a_finish_clears():
    deaths = WorkerDeaths()
    for held in ([1, 2], [1, 2], [1], [1]):
        deaths.died(held, "out of memory")
    [out], _ = deaths.sift([claim(1)], idle=True)
    assert out.barred == "limit: 4 workers died of it (the last: out of memory)"
    [out], _ = deaths.sift([claim(2)], idle=True)
    assert out.barred == ""
    deaths.cleared([2])
    assert not deaths.alone([2])
