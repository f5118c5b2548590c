"""Which pages need a browser, why, and how many of them a look at some finds."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from muniment.errors import UsageError
from muniment.model.rule import Rule
from muniment.rules.rendering.needs_browser import may_render, reason_to_render, why_not_rendered, with_engine
from muniment.rules.rendering.render_sampling import RenderSampling
from muniment.settings.option_table import Settings

TEXT = "word " * 60
LINK = "<a href=/x>x</a>"


@pytest.mark.parametrize(
    ("markup", "reason"),
    [
        (f"<p>{TEXT}{LINK}", ""),
        ("<p>short", ""),
        (f"<script>1</script><p>{TEXT}{LINK}", ""),
        (f"<script type=application/ld+json>{{}}</script><p>short{LINK}", ""),
        (f"<!-- <script>1</script> --><p>short{LINK}", ""),
        ("<script>1</script><p>short" + LINK, "it has scripts and 7 characters of visible text"),
        (f"<script>1</script><p>{TEXT}", "it has scripts and no link"),
        (f"<script>1</script><p>{TEXT}<a href='#top'>up</a>", "it has scripts and no link"),
        (
            f"<script>1</script><noscript>Please enable JavaScript</noscript>{TEXT}{LINK}",
            "its noscript asks for scripts",
        ),
        (f"<script>1</script><noscript><img src=/count></noscript>{TEXT}{LINK}", ""),
        *(
            (f"<script>1</script><div {mark}></div>{TEXT}{LINK}", "it has an empty element that scripts fill")
            for mark in ("id=root", 'id="root"', "id='__next'", "class=x id=app ", "data-reactroot")
        ),
        (f"<script>1</script><app-root></app-root>{TEXT}{LINK}", "it has an empty element that scripts fill"),
        (f"<script>1</script><div id=root>{TEXT}{LINK}</div>", ""),
        (f"<script>1</script><div id=roots></div>{TEXT}{LINK}", ""),
        (f"<script>1</script>{TEXT}{LINK}<img data-src=/i.png>", "it has images whose address only scripts read"),
        (f"<script>1</script>{TEXT}{LINK}<img src=/i.png data-src=/big.png>", ""),
    ],
)
def test_a_page_needs_a_browser_for_a_reason(markup, reason):
    assert reason_to_render(markup) == reason


@pytest.mark.parametrize(
    ("engine", "order", "status", "kind", "is_page", "why"),
    [
        ("http", "", 200, "text/html", True, "the engine of the job is http"),
        ("auto", "http", 200, "text/html", True, "a rule says engine http"),
        ("browser", "", 200, "text/css", False, "it is a requisite"),
        ("browser", "", 404, "text/html", True, "its status is 404"),
        ("browser", "", 301, "text/html", True, "its status is 301"),
        ("browser", "", 204, "text/html", True, "its status is 204"),
        ("browser", "", 200, "image/png", True, "it is image/png"),
        ("browser", "", 200, "", True, "it is of no type"),
        ("auto", "", 200, "text/html", True, "it needs no browser"),
        ("auto", "browser", 200, "text/html", True, "it is for downloading"),
    ],
)
def test_an_answer_was_not_rendered_for_a_reason(engine, order, status, kind, is_page, why):
    assert why_not_rendered(engine, order, status, kind, is_page=is_page) == why


def test_a_job_may_render_by_its_engine_or_a_rule():
    assert not may_render("http", [Rule(engine="http")])
    assert may_render("http", [Rule(), Rule(engine="browser")])
    assert may_render("auto", [])


def test_browser_is_another_word_for_an_engine():
    assert with_engine(Settings(browser=True), {"browser"}) == Settings(engine="browser")
    assert with_engine(Settings(engine="auto"), {"engine"}).engine == "auto"
    with pytest.raises(UsageError, match="contradict"):
        with_engine(Settings(browser=True, engine="auto"), {"browser", "engine"})


@pytest.mark.parametrize("pages", [1, 32, 1000, 100_000])
def test_few_pages_are_counted_and_many_estimated(pages):
    need = RenderSampling()
    weights = [need.weight() for _ in range(pages)]
    assert 0 <= pages - sum(weights) <= pages / 16
    assert sum(map(bool, weights)) <= 32 + 24 * math.log(max(1, pages / 32))
    assert sum(weights) == pages or pages > 32


def test_of_fifty_pages_without_and_fifty_built_by_scripts_none_and_all_need_a_browser(python_docs: Path) -> None:
    """Those without are real ones, which have scripts, too; the others are the shells of common kits."""
    pages = [page for page in sorted(python_docs.rglob("*.html")) if page.name != "search.html"][::10][:50]
    assert len(pages) == 50
    assert {page.name: why for page in pages if (why := reason_to_render(page.read_text("utf-8", "replace")))} == {}
    shells = [
        f"<!doctype html><html><head><title>{title}</title>{kit}</head><body>{body}</body></html>"
        for title in ("", "Shop", "A <b>long</b> title " * 20, "News", "Forum")
        for kit in ("<script src=/app.js></script>", "<script type=module src=/assets/index.js></script>")
        for body in (
            "<div id=root></div>",
            '<div id="__next"></div><script id=__NEXT_DATA__ type=application/json>{}</script>',
            "<app-root></app-root>",
            '<div id="app" class=dark data-v></div>',
            f"<noscript>You need to enable JavaScript to run this app.</noscript><div id=main>{TEXT}{LINK}</div>",
        )
    ]
    assert len(shells) == 50
    assert [shell for shell in shells if not reason_to_render(shell)] == []
