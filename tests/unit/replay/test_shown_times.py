"""The times that an exact replay shows: of the front, of pages, and of what redirects lead to."""

from __future__ import annotations

from muniment.proxy.answerer import ProxyRequest
from muniment.replay.answers import Answer, Target
from muniment.replay.choice import Entry
from muniment.replay.exact.times import ShownTimes, WantedMoment

PAGE, CSS, IMAGE = "https://a.test/p", "https://a.test/s.css", "https://b.test/i.png"


def asking(url: str, **headers: str) -> ProxyRequest:
    given = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return ProxyRequest(number=1, method="GET", url=url, target="/", version="1.1", headers=given)


def opening(url: str, dest: str = "document") -> ProxyRequest:
    return asking(url, Sec_Fetch_Mode="navigate", Sec_Fetch_Dest=dest)


def answer(url: str, at: int, redirect: Target | None = None) -> Answer:
    return Answer(Entry(url=url, at=at), 200, "OK", (), iter(()), 0, (), redirect)


def shown(page_at: int = 70) -> ShownTimes:
    """A page that was opened."""
    times = ShownTimes()
    request = opening(PAGE)
    times.answered(request, times.wanted(request, 50), answer(PAGE, page_at))
    return times


def test_pages_are_of_the_time_that_was_chosen_and_what_they_load_of_their_own() -> None:
    times = shown()
    assert times.wanted(opening("https://a.test/other"), 50) == WantedMoment(50)
    assert times.wanted(asking(IMAGE, Referer=PAGE), 50) == WantedMoment(70)
    assert times.wanted(asking(IMAGE, Referer="https://a.test/"), 50) == WantedMoment(70), "an origin alone"
    assert times.wanted(asking(IMAGE, Origin="https://a.test"), 50) == WantedMoment(70)
    assert times.wanted(opening("https://a.test/frame", "iframe"), 50) == WantedMoment(70), "a frame is loaded, too"
    assert times.wanted(asking(IMAGE), 50) == WantedMoment(70), "who asks is not known: the page opened last"
    assert ShownTimes().wanted(asking(IMAGE), 50) == WantedMoment(50)


def test_what_a_style_sheet_loads_is_of_the_time_of_its_page() -> None:
    times = shown()
    request = asking(CSS, Referer=PAGE)
    times.answered(request, times.wanted(request, 50), answer(CSS, 12))
    assert times.wanted(asking(IMAGE, Referer=CSS), 50) == WantedMoment(70)


def test_plain_http_says_by_accept_that_a_page_is_opened() -> None:
    times = ShownTimes()
    request = asking("http://a.test/", Accept="text/html,*/*")
    times.answered(request, times.wanted(request, 50), answer("http://a.test/", 70))
    assert times.wanted(asking("http://a.test/i.png", Accept="image/*", Referer="http://a.test/"), 50).at == 70


def test_the_target_of_a_redirect_is_pinned_once() -> None:
    times = shown()
    request = opening("https://a.test/old")
    times.answered(request, WantedMoment(50), answer("https://a.test/old", 60, Target("https://a.test/%7Enew#x", 61)))
    assert times.wanted(opening("https://a.test/~new"), 50) == WantedMoment(61, pinned=True)
    assert times.wanted(opening("https://a.test/~new"), 50) == WantedMoment(50)


def test_what_is_opened_on_the_front_is_pinned_and_forgets_other_pins() -> None:
    times = shown()
    times.answered(opening("https://a.test/old"), WantedMoment(50), answer("x://", 60, Target(PAGE, 61)))
    times.open("https://c.test/", 40)
    assert times.wanted(opening("https://c.test/"), 40) == WantedMoment(40, pinned=True)
    assert times.wanted(opening(PAGE), 40) == WantedMoment(40)
