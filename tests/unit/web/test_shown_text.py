"""What strangers wrote, on a page: escaped, and what cannot be seen written out."""

from __future__ import annotations

from muniment.clock import now_ms
from muniment.model.network.captures import TimeBucket
from muniment.rules.patterns import Patterns
from muniment.web.pages.ignore_suggestions import suggestions_for
from muniment.web.pages.plots import plots_of
from muniment.web.pages.render import page_text, plain


def test_what_cannot_be_seen_is_written_out() -> None:
    assert plain("a\u202eb\0c\u200b\x1b[31m") == "a\\u202eb\\u0000c\\u200b\\u001b[31m"
    assert plain("\n\t") == "\n\t"
    assert len(plain("x" * 100_000)) < 5_000


def test_nothing_of_theirs_is_markup() -> None:
    hostile = "\"'><script>alert(1)</script>{{ 7*7 }}\u202e"
    page = page_text("login.html", {"theme": "system", "error": hostile})
    assert "<script>alert" not in page and "49" not in page and "\u202e" not in page
    assert "&lt;script&gt;" in page


def test_plots_have_the_numbers_of_their_tables() -> None:
    at = now_ms()
    found = [
        TimeBucket(at, 2, "<b>", 10),
        TimeBucket(at, 4, "", 5),
        TimeBucket(at + 2000, 2, "<b>", 20),
    ]
    rate, status, hosts = plots_of(1000, found)
    assert rate.series[0].values == (15.0, 0, 20.0)
    assert {one.name: one.values for one in status.series} == {"2xx": (10.0, 0, 20.0), "4xx": (5.0, 0, 0)}
    assert [one.name for one in hosts.series] == ["<b>", "others"]
    assert plots_of(0, []) == ()


def test_offers_match_their_url() -> None:
    url = "https://a.example:8080/x/y(1)/z?sid=3&b=4"
    offers = suggestions_for(url)
    assert [name for name, _ in offers][:3] == ["this page", "the directory /x/y(1)/", "the directory /x/"]
    assert all(Patterns([pattern]).match(url) for _, pattern in offers)
    assert not any(Patterns([pattern]).match("https://b.example/x/y(1)/z?sid=3") for _, pattern in offers)
    assert suggestions_for("javascript:alert(1)") == [] == suggestions_for("https://[broken/")
