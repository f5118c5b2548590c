"""What archived pages asked for in vain, by the view that they were shown in."""

from __future__ import annotations

import pytest

from muniment.replay.views import Latest, Views

PAGE = "20260101000000/http://a.test/"
FRAME = "20260101000000/http://a.test/frame"
INNER = "20260101000000/http://a.test/inner"


def urls(views: Views, view: str) -> list[str]:
    return [row.url for row in views.missing(view)]


@pytest.mark.parametrize(
    "view",
    [
        PAGE,
        "/at/20260101000000mp_/http://a.test/",
        "at/20260101000000if_/http://a.test/",
        "20260101000000/http://A.test:80/#part",
        "20260101000000000000/http://a.test/",
        "20260101000003123456/http://a.test/",  # the time of the capture that the address leads to
    ],
)
def test_a_view_is_found_by_any_form_of_its_address(view: str) -> None:
    views = Views()
    views.begin(PAGE)
    views.asked_in_vain(PAGE, "http://a.test/x.png", "image")
    views.begin("20200101000000/http://a.test/")
    assert urls(views, view) == ["http://a.test/x.png"]


def test_a_view_has_what_its_frames_and_workers_asked_for() -> None:
    views = Views()
    views.begin(PAGE)
    views.begin(FRAME, PAGE)
    views.begin(INNER, FRAME)
    views.begin(INNER, PAGE)
    for page, url in ((PAGE, "http://a.test/1"), (FRAME, "http://a.test/2"), (INNER, "urn:3")):
        views.asked_in_vain(page, url, "image")
    assert sorted(urls(views, PAGE)) == ["http://a.test/1", "http://a.test/2", "urn:3"]
    views.begin(PAGE)
    assert urls(views, PAGE) == [], "it is shown anew, without the frame yet"


def test_a_request_is_kept_once_with_the_time_that_was_wanted() -> None:
    views = Views()
    for at in ("", "2025", "2024"):
        views.asked_in_vain(PAGE, "http://a.test/x", "image", at)
    views.asked_in_vain(PAGE, "http://a.test/x", "fetch", "2025")
    kept = [(row.destination, row.at) for row in views.missing(PAGE)]
    assert kept == [("image", 1_767_225_600_000_000), ("fetch", 1_735_689_600_000_000)]


def test_memory_is_bounded() -> None:
    views = Views()
    for number in range(600):
        views.asked_in_vain(PAGE, f"http://a.test/{number}", "image")
    assert len(urls(views, PAGE)) == 500
    for number in range(100):
        views.asked_in_vain(FRAME, f"http://a.test/{number}?{'x' * 8000}", "image")
    assert sum(map(len, urls(views, FRAME))) <= 256 << 10
    for number in range(200):
        views.begin(f"2026/http://b.test/{number}")
    assert urls(views, PAGE) == []


def test_the_document_shown_last_is_that_of_no_frame() -> None:
    views = Views()
    assert views.latest() == Latest(0, "")
    views.begin(PAGE)
    views.begin(FRAME, PAGE)
    assert views.latest() == Latest(1, "20260101000000000000/http://a.test/")


def test_what_is_not_an_address_is_no_view() -> None:
    views = Views()
    for odd in ("", "x", "2026/", "soon/http://a.test/", "2026/http://[", "about:srcdoc"):
        views.begin(odd)
        views.asked_in_vain(odd, "http://a.test/x", "image")
        assert views.missing(odd) == []
