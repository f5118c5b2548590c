"""Which pages are handed out alone, and when one is given up."""

from __future__ import annotations

from muniment.crawl.orchestrator.poison import PoisonPages
from muniment.model.page import Claim


def claim(page: int) -> Claim:
    return Claim(page, page, f"http://a.example/{page}", "a.example", 1, False, 0, 0, "", True)


def pages(claims: list[Claim]) -> list[int]:
    return [one.page_id for one in claims]


def test_one_death_makes_nothing_suspect():
    suspects = PoisonPages()
    suspects.died([1, 2, 3], "exit 1")
    out, back = suspects.sift([claim(1), claim(2)], idle=False)
    assert (pages(out), back) == ([1, 2], [])


def test_a_suspect_goes_alone_to_a_worker_without_pages():
    suspects = PoisonPages()
    for _ in range(2):
        suspects.died([1, 2], "exit 1")
    out, back = suspects.sift([claim(1), claim(2), claim(3)], idle=True)
    assert (pages(out), pages(back)) == ([1], [2, 3])
    out, back = suspects.sift([claim(1), claim(2), claim(3)], idle=False)
    assert (pages(out), pages(back)) == ([3], [1, 2])
    assert suspects.alone([1])
    assert not suspects.alone([1, 3])
    assert not suspects.alone([3])


def test_two_deaths_alone_are_proof_and_a_finish_clears():
    suspects = PoisonPages()
    for held in ([1, 2], [1, 2], [1], [1]):
        suspects.died(held, "out of memory")
    [out], _ = suspects.sift([claim(1)], idle=True)
    assert out.barred == "limit: 4 workers died of it (the last: out of memory)"
    [out], _ = suspects.sift([claim(2)], idle=True)
    assert out.barred == ""
    suspects.cleared(2)
    assert not suspects.alone([2])
