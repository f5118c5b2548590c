"""The sums of browsers over all workers, those that have ended included."""

from __future__ import annotations

from muniment.crawl.protocol import RenderReport
from muniment.crawl.render_tally import RenderTally
from muniment.model.event import OpenTab, RenderSums


def test_sums_of_workers_that_ended_stay_and_their_tabs_go():
    tally = RenderTally()
    young, old = OpenTab("http://a/", "load", 1.0), OpenTab("http://b/", "behaviors", 9.0)
    tally.take(0, RenderReport((young,), RenderSums(rendered=2)))
    tally.take(1, RenderReport((old,), RenderSums(rendered=3, failed=1, replaced=1)))
    assert tally.tabs == (old, young)
    tally.take(0, RenderReport((young,), RenderSums(rendered=4)))
    tally.ended(1)
    tally.ended(7)
    assert tally.tabs == (young,)
    assert tally.sums == RenderSums(rendered=7, failed=1, replaced=1)
