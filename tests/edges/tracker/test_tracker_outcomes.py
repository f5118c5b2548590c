"""Hosts that never answered, as the tracker knows them."""

from __future__ import annotations

from tracker_harness import site

from muniment.tracker.outcomes import silent_hosts

REFUSED = "refused: nobody is there"


def test_hosts_without_any_answer(tracker):
    urls = [site(path, f"{host}.example") for host in "abcde" for path in ("1", "2")]
    made = tracker(*urls, robots=False)
    claims = {claim.url: claim for claim in made.claim()}

    def end(host, page, **how):
        made.finish(claims[site(str(page), f"{host}.example")], **how)

    end("a", 1, status=0, error=REFUSED)
    end("a", 2, status=0, error="dead-host: given up", refused="dead-host: given up after 3 failures")
    end("b", 1, status=0, error=REFUSED)
    end("b", 2, status=404)
    end("c", 1, status=200, error="cut: too early")
    end("c", 2, status=0, error=REFUSED)
    end("d", 1, status=0, error="timeout-header: silent")
    end("e", 1, status=0, error="", refused="robots: robots.txt disallows it")
    assert sorted(silent_hosts(made.db, made.job_id)) == [
        ("a.example", "dead-host", 1),
        ("a.example", "refused", 1),
        ("d.example", "timeout-header", 1),
    ]


def test_a_job_without_failures_has_none(tracker):
    made = tracker()
    made.crawl({})
    assert silent_hosts(made.db, made.job_id) == []
