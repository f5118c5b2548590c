"""The page of results: what a browser and hooks made of a page is shown, and nothing of it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from crawled import run_muniment, wait_until
from hook_plugins import hook
from tests.support.chromium import Chromium
from tests.support.dashboard import Dashboard
from tests.support.gated_site import GatedSite
from tests.support.script_site import script_site

OPTIONS = ("--browser", "--allow-private", "--tries", "1", "--rounds", "0", "--no-sitemaps", "--no-robots", "--quiet",
           "--level", "0", "--behaviors", "none", "--screenshots", "view,thumbnail")  # fmt: skip
PLAIN = ("--quiet", "--no-sitemaps", "--no-robots", "--tries", "1", "--rounds", "0", "--allow-private")
LEFT = """
printf '<script>window.hit=1</script>' > page.html
ln -s /etc/passwd passwd
mkdir -p '<img src=x>'; echo quoted > '<img src=x>/a"b.txt'
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Dashboard, str, Path]]:
    cwd = tmp_path_factory.mktemp("results")
    hook(cwd / "plugins", "leaves", "on_Snapshot__5_files.sh", LEFT)
    hook(cwd / "plugins", "fails", "on_Snapshot__6_fail.sh", "exit 3\n")
    with script_site() as site:
        url = f"{site.base}/"
        run_muniment(cwd, "crawl", url, "-o", "runs/one", "--hooks", "plugins", *OPTIONS)
    with Dashboard(cwd, "runs") as dashboard:
        dashboard.sign_in()
        yield dashboard, url, cwd / "runs" / "one"


def links(text: str, kind: str) -> list[str]:
    """The addresses of a kind of link on a page."""
    return [found.replace("&amp;", "&") for found in re.findall(rf'(?:href|src)="(/jobs/1/{kind}\?[^"]+)"', text)]


def test_pictures_are_pictures_and_the_rest_are_downloads(shown: tuple[Dashboard, str, Path]) -> None:
    dashboard, url, _ = shown
    text = dashboard.ask("GET", f"/jobs/1/results?url={quote(url)}")[2]
    kinds = re.findall(r'data-testid="made-record"><th[^>]*>(\w+)<', text)
    assert kinds == ["view", "thumbnail", "dom", "text", "pageinfo"]
    for address in links(text, "picture"):
        status, headers, _ = dashboard.ask("GET", address)
        assert (status, headers["content-type"]) in {(200, "image/png"), (200, "image/jpeg")}
        assert headers["content-security-policy"] == "sandbox; default-src 'none'"
        assert headers["x-content-type-options"] == "nosniff"
    downloads = [dashboard.ask("GET", address) for address in links(text, "raw")]
    assert {headers["content-disposition"].partition(";")[0] for _, headers, _ in downloads} == {"attachment"}
    assert "Hello from scripts and data" in "".join(body for _, _, body in downloads)
    # the document of the page is no picture
    dom = links(text, "raw")[2].replace("/raw?", "/picture?")
    assert dashboard.ask("GET", dom)[0] == 404


def test_files_of_hooks_are_downloads(shown: tuple[Dashboard, str, Path]) -> None:
    dashboard, url, out = shown
    text = dashboard.ask("GET", f"/jobs/1/results?url={quote(url)}")[2]
    assert "<img src=x>" not in text and "/etc/passwd" in text
    runs = re.findall(r'data-testid="hook-run"><th[^>]*>(\w+)<.*?data-label="Status"[^>]*>(\w+)<', text)
    assert sorted(runs) == [("fails", "failed"), ("leaves", "succeeded")]
    found = {body: headers for _, headers, body in (dashboard.ask("GET", one) for one in links(text, "hook-file"))}
    assert {"<script>window.hit=1</script>", "quoted\n"} <= set(found) and not any("root:" in body for body in found)
    for headers in found.values():
        assert headers["content-type"] == "application/octet-stream"
        assert headers["content-disposition"].startswith("attachment")
        assert "sandbox" in headers["content-security-policy"]
    folder = next(out.glob("hooks/**/page.html")).parent.relative_to(out)
    for odd in (
        "/etc/passwd",
        "../one/crawl.jsonl",
        "crawl.jsonl",
        f"{folder}/passwd",
        f"{folder}/../page.html",
        "a\0b",
    ):
        assert dashboard.ask("GET", f"/jobs/1/hook-file?path={quote(odd)}")[0] == 404, odd


def test_files_of_hooks_are_there_while_the_run_goes_on(muniment: Any, tmp_path: Path) -> None:
    hook(tmp_path / "plugins", "leaves", "on_Snapshot__5_files.sh", "printf kept > page.txt; ln -s /etc/passwd passwd")
    with GatedSite({"/": "<a href=/late>late</a>", "/late": "late"}, held={"/late"}) as site:
        out = tmp_path / "runs" / "one"
        crawl = muniment.start("crawl", site.url, "-o", out, "--hooks", tmp_path / "plugins", *PLAIN)
        site.wait_for("/late")
        with Dashboard(tmp_path, "runs") as dashboard:
            dashboard.sign_in()

            def page() -> str:
                return dashboard.ask("GET", f"/jobs/1/results?url={quote(site.url)}")[2]

            wait_until(lambda: "hook-run" in page(), "the hook of the first page has run")
            assert not (out / "hooks.parquet").exists()
            assert [dashboard.ask("GET", one)[::2] for one in links(page(), "hook-file")] == [(200, "kept")]
            place = next(out.glob("hooks/**/passwd")).relative_to(out)
            for odd in (place, "crawl.jsonl", "hooks/../crawl.jsonl"):
                told = f"/jobs/1/hook-file?path={quote(str(odd))}&url={quote(site.url)}"
                assert dashboard.ask("GET", told)[0] == 404, odd
            site.release()
            assert crawl.wait(60) == 0
            assert [dashboard.ask("GET", one)[::2] for one in links(page(), "hook-file")] == [(200, "kept")]


def test_a_file_that_became_a_link_is_not_followed(shown: tuple[Dashboard, str, Path]) -> None:
    dashboard, _, out = shown
    place = next(out.glob("hooks/**/page.html"))
    kept = place.read_bytes()
    place.unlink()
    place.symlink_to("/etc/passwd")
    assert dashboard.ask("GET", f"/jobs/1/hook-file?path={quote(str(place.relative_to(out)))}")[0] == 404
    place.unlink()
    place.write_bytes(kept)


def test_the_picture_is_seen_and_nothing_runs(shown: tuple[Dashboard, str, Path], browser: Chromium) -> None:
    dashboard, url, _ = shown
    page = browser.page(360, 800)
    page.goto(dashboard.new_ticket()["url"])
    page.goto(f"{dashboard.origin}/jobs/1/results?url={quote(url)}")
    page.wait("document.querySelector('[data-testid=screenshot]').naturalWidth > 100")
    assert page.run("window.hit ?? 0") == 0
    assert page.run("document.documentElement.scrollWidth") <= 360
