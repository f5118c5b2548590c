"""Where links hide, and what keeps them from being followed: small sites, crawled through the command line."""

from __future__ import annotations

import contextlib
import gzip
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from email.message import Message
from hashlib import sha1
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from crawled import run_muniment
from tests.support.gated_site import Answer, GatedSite
from warc_reading import captures

PACE = ("--no-robots", "--no-sitemaps", "--tries", 1, "--workers", 1, "--quiet")
HEX = "0123456789abcdef0123456789abcdef"
HTML = ("Content-Type", "text/html; charset=utf-8")
Pages = dict[str, Any]


def link(*urls: str) -> str:
    return "".join(f"<a href='{url}'>x</a>" for url in urls)


def crawled(site: GatedSite, cwd: Path, *options: object, start: str = "") -> dict[str, dict[str, Any]]:
    """Rows by path; what lies on another host by its URL."""
    run_muniment(cwd, "crawl", f"{site.url}{start}", "-o", "out", *PACE, *options)
    return {row["url"].removeprefix(site.url): row for row in captures(cwd / "out")}


class TestSessionIds:
    """A server that writes a new number into every link of every answer."""

    @pytest.fixture
    def site(self) -> Iterator[GatedSite]:
        with _Visits({"/": "", "/a": "", "/b": "", "/java": ""}) as site:
            yield site

    def test_each_page_is_taken_once(self, site: GatedSite, tmp_path: Path) -> None:
        rows = crawled(site, tmp_path)
        assert len(rows) == 4
        assert {url.partition(";")[0].partition("?")[0] for url in rows} == {"", "a", "b", "java"}
        taken = next(url for url in rows if url.startswith("a?"))
        assert taken.startswith("a?x=1&PHPSESSID=")

    def test_why_knows_a_page_by_any_session(
        self, site: GatedSite, muniment: Callable[..., Any], tmp_path: Path
    ) -> None:
        rows = crawled(site, tmp_path)
        taken = next(url for url in rows if url.startswith("a?"))
        told = json.loads(muniment("why", f"{site.url}a?x=1&PHPSESSID={HEX}", "-o", tmp_path / "out", "--json").stdout)
        assert told["verdict"] == "captured"
        assert told["text"].startswith(f"as {site.url}{taken}, which differs in its session id alone: status 200")
        assert len(told["places"]) == 1

    def test_a_redirect_to_the_same_page_with_a_session_is_followed(self, tmp_path: Path) -> None:
        moved = Answer("", 302, (("Location", f"/?PHPSESSID={HEX}"),))
        pages: Pages = {
            "/": moved,
            f"/?PHPSESSID={HEX}": link(f"/?PHPSESSID={HEX}", f"/a?PHPSESSID={HEX}"),
            f"/a?PHPSESSID={HEX}": "a",
        }
        with GatedSite(pages) as site:
            assert set(crawled(site, tmp_path)) == {"", f"?PHPSESSID={HEX}", f"a?PHPSESSID={HEX}"}

    def test_a_server_that_redirects_to_ever_new_sessions_comes_to_an_end(self, tmp_path: Path) -> None:
        moved = [Answer("", 302, (("Location", f"/?PHPSESSID={number:032x}"),)) for number in range(9)]
        later = {f"/?PHPSESSID={number:032x}": moved[number + 1] for number in range(8)}
        with GatedSite({"/": moved[0], **later}) as site:
            rows = crawled(site, tmp_path, "--max-redirects", 3)
            assert len(rows) == site.counts().total() == 4


class _Visits(GatedSite):
    """Every answer links to all pages under a session id of its own."""

    _number = 0
    _counting = threading.Lock()

    def answer(self, path: str, headers: Message[str, str]) -> Answer:
        with self._counting:
            self._number += 1
            visit = f"{self._number:032x}"
        page = path.partition("?")[0].partition(";")[0]
        super().answer(path, headers)
        if page not in self.pages:
            return Answer("", 404)
        links = link(*(f"{name}?x=1&PHPSESSID={visit}" for name in ("/a", "/b")), f"/java;jsessionid={visit}")
        return Answer(links + link(f"/?PHPSESSID={visit}"))


class TestWishes:
    """Pages that ask robots for something, which are heard when the operator says so."""

    @pytest.fixture
    def site(self) -> Iterator[GatedSite]:
        def asks(words: str) -> tuple[tuple[str, str], ...]:
            return (HTML, ("X-Robots-Tag", words))

        pages: Pages = {
            "/": link("/head", "/meta", "/other", "/named", "/moved"),
            "/head": Answer(link("/of-head") + "<img src=/head.png>", headers=asks("noarchive, nofollow")),
            "/meta": "<meta name=Robots content='NOARCHIVE, none'><img src=/meta.png>" + link("/of-meta"),
            "/other": Answer(link("/of-other"), headers=asks("otherbot: noarchive, nofollow")),
            "/named": "<meta name=muniment content=noarchive>" + link("/of-named"),
            "/moved": Answer("", 302, (("Location", "/target"), ("X-Robots-Tag", "noarchive"))),
            **dict.fromkeys(("/of-head", "/of-meta", "/of-other", "/of-named", "/target"), "x"),
            **dict.fromkeys(("/head.png", "/meta.png"), "x"),
        }
        with GatedSite(pages) as site:
            yield site

    ALL = frozenset(
        {"", "head", "meta", "other", "named", "moved", "of-head", "of-meta", "of-other", "of-named", "target"}
        | {"head.png", "meta.png"}
    )

    def test_they_are_not_heard_without_an_option(self, site: GatedSite, tmp_path: Path) -> None:
        assert set(crawled(site, tmp_path)) == self.ALL

    def test_nofollow_takes_the_page_and_its_requisites(self, site: GatedSite, tmp_path: Path) -> None:
        assert set(crawled(site, tmp_path, "--nofollow")) == self.ALL - {"of-head", "of-meta"}

    def test_noarchive_keeps_nothing_of_the_page_and_follows_it(
        self, site: GatedSite, muniment: Callable[..., Any], tmp_path: Path
    ) -> None:
        rows = crawled(site, tmp_path, "--noarchive")
        unkept = {"head", "meta", "named", "moved"}
        assert set(rows) == self.ALL - unkept
        for path in unkept:
            told = json.loads(muniment("why", f"{site.url}{path}", "-o", tmp_path / "out", "--json").stdout)
            assert (told["verdict"], told["text"]) == ("skipped", "noarchive: the page asks robots not to keep it")
        skipped = {
            event["url"].removeprefix(site.url)
            for line in (tmp_path / "out" / "crawl.jsonl").read_text().splitlines()
            if (event := json.loads(line))["event"] == "skip"
        }
        assert skipped == unkept


class TestUrls:
    """Addresses that are odd, broken or too long."""

    def test_a_url_that_is_too_long_is_refused_with_a_reason(
        self, muniment: Callable[..., Any], tmp_path: Path
    ) -> None:
        with GatedSite({}) as site:
            fits = f"{site.url}{'y' * (8000 - len(site.url))}"
            site.pages["/"] = link("/a", f"{fits}y", fits, "/b")
            rows = crawled(site, tmp_path)
            assert {url for url in rows if len(url) < 9} == {"", "a", "b"}
            assert len(rows) == 4
            told = json.loads(muniment("why", f"{fits}y", "-o", tmp_path / "out", "--json").stdout)
            expected = "url: 8001 characters are more than 8000, which servers refuse"
            assert (told["verdict"], told["text"]) == ("skipped", expected)

    def test_a_long_url_on_many_pages_is_kept_once_and_in_short(
        self, muniment: Callable[..., Any], tmp_path: Path
    ) -> None:
        out, pages = tmp_path / "out", [f"/p{number}" for number in range(50)]
        with GatedSite({}) as site:
            long = f"{site.url}{'y' * 100_000}"
            endless = f"/{'z' * 1_000_000}"
            site.pages.update(dict.fromkeys(pages, link(long, endless, *pages)))
            crawled(site, tmp_path, start="p0")
            skips = [line for line in (out / "crawl.jsonl").read_text().splitlines() if '"skip"' in line]
            assert len(skips) == 2
            assert (out / "crawl.jsonl").stat().st_size < 50_000
            assert (out / "tracker.sqlite").stat().st_size < 1_000_000
            assert [line for line in skips if f"{long[:500]}\u2026({len(long)})" in line]
            told = json.loads(muniment("why", long, "-o", out, "--json").stdout)
        expected = f"url: {len(long)} characters are more than 8000, which servers refuse"
        assert (told["url"], told["text"]) == (f"{long[:500]}\u2026({len(long)})", expected)

    def test_a_start_url_that_is_too_long_is_refused(self, muniment: Callable[..., Any], tmp_path: Path) -> None:
        told = muniment("crawl", f"http://site.example/{'y' * 8000}", "-o", tmp_path / "out")
        assert (told.code, told.stdout) == (2, "")
        assert told.stderr.endswith("has 8020 characters; the maximum is 8000\n")
        assert len(told.stderr) < 200

    def test_what_links_write_is_asked_for_as_a_browser_would(self, tmp_path: Path) -> None:
        odd = {
            "/q?b=2&a=1": "order kept",
            "/x//y": "slashes kept",
            "/%C3%A9": "path in UTF-8",
            "/a%20b?c%20d": "spaces",
            "/%7Euser/%zz": "percent signs stay as written",
            "/d/e": "dots",
            "/back": "backslash",
            "/tab": "tab",
        }
        bad = [
            "http://",
            "http://[::1",
            "https://exa mple/",
            "http://a:99999/",
            "//",
            "javascript:1",
        ]
        written = ["q?b=2&a=1", "x//y", "é", " a b?c d ", "%7Euser/%zz", "d/./f/../e", r"\back", "t\tab", *bad, "last"]
        with GatedSite({"/": link(*written), "/last": "l", **odd}) as site:
            rows = crawled(site, tmp_path, "--no-offsite-links")
        assert {f"/{url}" for url in rows} == {"/", "/last", *odd}
        assert {row["status"] for row in rows.values()} == {200}

    def test_a_host_in_other_letters_is_asked_in_punycode(self, muniment: Callable[..., Any], tmp_path: Path) -> None:
        with GatedSite({"/": link("http://bücher.invalid/ü")}) as site:
            rows = crawled(site, tmp_path)
        assert rows["http://xn--bcher-kva.invalid/%C3%BC"]["error"].startswith("dns: ")


class Taken(NamedTuple):
    """What was captured of a site."""

    rows: dict[str, dict[str, Any]]
    """By path."""
    asked: Counter[str]
    """How often each path was asked for."""

    def found(self) -> dict[str, str]:
        """How each path was found."""
        return {path: row["found_as"] for path, row in self.rows.items()}


def html(body: str | bytes, *headers: tuple[str, str], kind: str = HTML[1]) -> Answer:
    return Answer(body, headers=(("Content-Type", kind), *headers))


BASES = (
    *("none/x", "none/y", "z", "none/?q", "top", "b/x", "of-authority", "one/y", "two/x"),
    *("of-broken", "of-mail"),
)
FRAMED = {"unframed": "a", "search?a=1": "form", "go.png": "img", "map.png": "img", "area": "area", "of-inner": "a"} | {
    "pressed": "form", "said": "cite", "told": "longdesc", "svg.js": "script",
}  # fmt: skip
PICTURES = {
    "a.png": "srcset", "b.png": "srcset", "c.png": "srcset", "d.png": "img", "e.png": "data-src",
    "f.png": "srcset-like", "g.png": "data-src", "h.png": "css-url", "i.png": "data-src", "j.png": "img",
}  # fmt: skip
MACHINES = {
    "style.css": "stylesheet", "next": "link-header", "refreshed": "refresh-header", "feed": "link",
    "app.json": "manifest", "og.png": "open-graph", "ld.png": "json-ld", "entry": "feed", "icon.png": "icon",
    "notes.txt": "a", "paper.pdf": "a",
}  # fmt: skip
TYPES = {
    "twice": "a", "none": "a", "invalid": "a", "contrary": "a", "s": "stylesheet", "by-twice": "a", "by-none": "a",
    "by-invalid": "a", "s.png": "css-url", "nosniff": "a", "of-s": "css-import", "of-s.png": "css-url",
}  # fmt: skip
CODINGS = {
    "unmeant": "a", "mixed": "a", "unnamed": "a", "by-unmeant": "a", "by-mixed": "a", "by-unnamed": "a",
    "s.css": "stylesheet", "s.png": "css-url",
}  # fmt: skip
LATE = {
    "a.png": "data-src", "b.png": "data-src", "c.png": "data-src", "d.png": "srcset-like", "e.png": "srcset-like",
    "f.png": "amp", "g.png": "amp", "h.mp4": "amp", "i.svg": "css-url",
}  # fmt: skip
FILMS = {
    "list.m3u8": "video", "low.m3u8": "playlist", "live.m3u8": "playlist", "key": "segment", "all.mp4": "segment",
    "7.ts": "segment", "8.ts": "segment", "film.mpd": "a", "v/init.mp4": "segment", "v/1.m4s": "segment",
    "v/2.m4s": "segment", "sound.mp4": "segment",
}  # fmt: skip
MODULES = {
    "app.js": "script", "lib/a.js": "import", "lib/b.js": "import", "deep/c.js": "import", "map.js": "import-map",
    "own.js": "import",
}  # fmt: skip
CLICKS = {
    "row": "onclick", "window": "onclick", "popup": "onclick", "card": "data-href", "made": "link-header",
    "best": "link-header", "create": "a", "choose": "a",
}  # fmt: skip
FEEDS = {"rss": "link", "atom": "link", "of-rss": "a", "rss.png": "img", "of-atom": "a", "atom.png": "img"}
CHARSETS = {
    "gbk": ("gbk", "中文", "%D6%D0%CE%C4"),
    "shift_jis": ("cp932", "日本", "%93%FA%96{"),
    "windows-1251": ("cp1251", "Да", "%C4%E0"),
    "euc-kr": ("cp949", "한국", "%C7%D1%B1%B9"),
}


def typed(body: str | bytes, *fields: str, coding: str = "") -> Answer:
    """An answer with these fields of Content-Type, none too, and a Content-Encoding."""
    headers = [("Content-Type", field) for field in fields]
    return Answer(body, headers=(*headers, ("Content-Encoding", coding)) if coding else tuple(headers))


def of_charset(label: str) -> Pages:
    codec, text, query = CHARSETS[label]
    body = f"<a href='/s?q={text}'>x</a>".encode(codec)
    by_meta = f"<meta charset={label}>".encode() + body.replace(b"/s?", b"/m?")
    return {
        "/": link("/header", "/meta"),
        "/header": html(body, kind=f"text/html; charset={label}"),
        "/meta": html(by_meta, kind="text/html"),
        f"/s?q={query}": "s",
        f"/m?q={query}": "m",
    }


SITES: dict[str, Pages] = {
    "bases": {
        "/": link("/none/", "/slashless", "/away", "/second", "/broken", "/mail"),
        "/none/": link("x", "./y", "../z", "?q", "#f", "../../../top", "//"),
        "/slashless": "<base href=/b/c>" + link("x"),
        "/away": "<base href=/one/><a href=//{}/of-authority>x</a>" + link("y"),
        "/second": "<base target=_top><base href=/two/><base href=/three/>" + link("x"),
        "/broken": "<base href='http://[bad'>" + link("of-broken"),
        "/mail": "<base href='mailto:me'>" + link("of-mail"),
        **{f"/{path}": "found" for path in BASES},
    },
    "frames": {
        "/": "<frameset><frame src=/left><frame src=/right><noframes><a href=/unframed>x</a></noframes></frameset>",
        "/left": "<form action=/search?a=1><input type=image src=/go.png><button formaction=/pressed></button></form>"
        "<form method=post action=/no><button formaction=/no></button></form>",
        "/right": "<img src=/map.png usemap=#m><map name=m><area shape=rect href=/area><area nohref></map>"
        "<iframe src=/inner longdesc=/told></iframe><q cite=/said>x</q><svg><script href=/svg.js></script></svg>",
        "/inner": link("/of-inner"),
        **{f"/{path}": "found" for path in FRAMED},
    },
    "pictures": {
        "/": "<picture><source srcset='/a.png 1x, /b.png 2x' media='(min-width: 1px)'>"
        "<img srcset='/c.png 480w' src=/d.png>"
        "</picture><img data-src=/e.png data-srcset='/f.png 1x'><img src=data:, data-lazy-src=/g.png>"
        "<div data-background-image='url(/h.png)'></div><div data-bg=/i.png></div>"
        "<noscript><img src=/j.png></noscript>",
        **{f"/{path}": "p" for path in PICTURES},
    },
    "sheets": {
        "/": "<style>@import 'a.css';</style><link rel=stylesheet href=/css/loop.css>",
        "/a.css": "@import url('css/b.css') screen; p { background: url(a.png) }",
        "/css/b.css": "@import \"../c.css\";@font-face { src: url('b.woff2') format('woff2') }",
        "/c.css": 'p { background: image-set(url(c.png) 1x, "d.png" 2x) }',
        "/css/loop.css": "@import 'loop.css'; @import '../a.css';",
        **dict.fromkeys(("/a.png", "/css/b.woff2", "/c.png", "/d.png"), "x"),
    },
    "machines": {
        **{f"/{path}": "x" for path in MACHINES},
        "/": html(
            "<base href=/elsewhere/><link rel=alternate type=application/rss+xml href=/feed>"
            "<link rel=manifest href=/app.json>"
            "<meta property=og:image content=/og.png>"
            '<script type=application/ld+json>{"image": "/ld.png", "@context": "https://schema.org"}</script>'
            "<a href=/notes.txt>x</a><a href=/paper.pdf>x</a>",
            ("Link", "</style.css>; rel=stylesheet, </next>; rel=next"),
            ("Refresh", "9; url=/refreshed"),
        ),
        "/feed": html("<rss><channel><item><link>/entry</link></item></channel></rss>", kind="application/rss+xml"),
        "/app.json": html('{"icons": [{"src": "icon.png"}]}', kind="application/json"),
        "/notes.txt": html("http://127.0.0.1:1/no <a href=/no>", kind="text/plain"),
        "/paper.pdf": html("%PDF-1.4 <a href=/no>", kind="application/pdf"),
    },
    "types": {
        **{f"/{path}": "x" for path in TYPES},
        "/": link("/twice", "/none", "/invalid", "/contrary", "/nosniff") + "<link rel=stylesheet href=/s>",
        "/twice": typed(link("/by-twice"), "text/plain", "text/html", "*/*"),
        "/none": typed("<!doctype html>" + link("/by-none")),
        "/invalid": typed("<p>" + link("/by-invalid"), "html; charset=utf-8"),
        "/contrary": typed(link("/no"), "text/html", "text/plain"),
        "/nosniff": Answer("<p>" + link("/no"), headers=(("X-Content-Type-Options", "nosniff"),)),
        "/s": typed("<!-- @import 'of-s'; p { background: url(s.png) } -->", "css"),
        "/of-s": typed("p { background: url(of-s.png) }"),
    },
    "codings": {
        **{f"/{path}": "x" for path in CODINGS},
        "/": link("/unmeant", "/mixed", "/unnamed") + "<link rel=stylesheet href=/s.css>",
        "/unmeant": typed(link("/by-unmeant"), "text/html", coding="utf-8"),
        "/mixed": typed(gzip.compress(link("/by-mixed").encode()), "text/html", coding="gzip, iso-8859-1"),
        "/unnamed": typed(gzip.compress(link("/by-unnamed").encode()), "text/html", coding="compressed"),
        "/s.css": typed("p { background: url(s.png) }", "text/css", coding="none"),
    },
    "late": {
        **{f"/{path}": "x" for path in LATE},
        "/": "<div data-src=/a.png></div><a data-full-src=/b.png><p data-poster='/c.png'>"
        "<figure data-bgset='/d.png 1x, /e.png 2x'></figure>"
        "<amp-img src=/f.png srcset='/g.png 2x'></amp-img><amp-video src=/h.mp4></amp-video>"
        "<svg><rect fill=\"url('/i.svg#p')\" mask='url(#m)'/></svg>",
    },
    "films": {
        **{f"/{path}": "x" for path in FILMS},
        "/": "<video src=/list.m3u8></video><a href=/film.mpd>f</a>",
        "/list.m3u8": typed(
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=2\nlive.m3u8\n",
            "application/vnd.apple.mpegurl",
        ),
        "/low.m3u8": typed(
            '#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-KEY:METHOD=AES-128,URI="key"\n'
            "#EXTINF:4,\n#EXT-X-BYTERANGE:9@0\nall.mp4\n#EXTINF:4,\n#EXT-X-BYTERANGE:9@9\nall.mp4\n#EXT-X-ENDLIST\n",
            "audio/x-mpegurl",
        ),
        # another one each time that it is asked for
        "/live.m3u8": [
            typed(f"#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:{n}\n#EXTINF:4,\n{n}.ts\n#EXTINF:4,\n{n + 1}.ts\n", "text/plain")
            for n in (7, 9)
        ],
        "/film.mpd": typed(
            '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" mediaPresentationDuration="PT7S"><Period>'
            '<AdaptationSet><SegmentTemplate duration="4" initialization="$RepresentationID$/init.mp4"'
            ' media="$RepresentationID$/$Number$.m4s"/><Representation id="v"/></AdaptationSet>'
            "<AdaptationSet><Representation><BaseURL>sound.mp4</BaseURL></Representation></AdaptationSet></Period></MPD>",
            "application/dash+xml",
        ),
    },
    "modules": {
        **{f"/{path}": typed("export {}", "text/javascript") for path in MODULES},
        "/": '<script type=importmap>{"imports": {"mapped": "/map.js", "deep/": "/deep/"}}</script>'
        "<script type=module src=/app.js></script>"
        "<script type=module>import 'mapped'; import {c} from 'deep/c.js'; import x from './own.js'</script>",
        "/app.js": typed('import a from"./lib/a.js";import("./no.js")', "application/javascript"),
        "/lib/a.js": typed("// import './no.js'\nexport * from './b.js'", "text/javascript; charset=utf-8"),
    },
    "clicks": {
        **{f"/{path}": "x" for path in CLICKS},
        "/": "<table><tr onclick=\"location.href='/row'\"><td></table><a href=\"javascript:window.open('/window')\">"
        "<b onclick='MM_openBrWindow(&quot;/popup&quot;)'></b><div data-href=/card></div>" + link("/create", "/choose"),
        "/create": Answer("", 201, (("Location", "/made"),)),
        "/choose": Answer("", 300, (("Location", "best"),)),
    },
    "feeds": {
        **{f"/{path}": "x" for path in FEEDS},
        "/": "<link rel=alternate href=/rss><link rel=alternate href=/atom>",
        "/rss": typed(
            "<rss><channel><item><description>&lt;a href=/of-rss&gt;&lt;img src=rss.png&gt;</description></item>"
            "</channel></rss>",
            "application/rss+xml",
        ),
        "/atom": typed(
            "<feed><entry><content type='html'><![CDATA[<a href=/of-atom><img src=/atom.png>]]></content></entry>"
            "</feed>",
            "application/atom+xml",
        ),
    },
    **{label: of_charset(label) for label in CHARSETS},
}


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Taken]:
    cwd = tmp_path_factory.mktemp("pages")
    with contextlib.ExitStack() as stack:
        addresses = (f"127.0.0.{number}" for number in range(70, 99))
        sites = {name: stack.enter_context(GatedSite(pages, address=next(addresses))) for name, pages in SITES.items()}
        bases = sites["bases"]
        bases.pages["/away"] = SITES["bases"]["/away"].format(bases.url.removeprefix("http://").rstrip("/"))
        run_muniment(cwd, "crawl", *(site.url for site in sites.values()), "-o", "out", *PACE)
        rows = captures(cwd / "out")
        taken = {
            name: Taken(
                {row["url"].removeprefix(site.url): row for row in rows if row["url"].startswith(site.url)},
                site.counts(),
            )
            for name, site in sites.items()
        }
    assert sum(len(one.rows) for one in taken.values()) == len(rows), "nothing else, and nothing twice"
    return taken


class TestPages:
    """Everywhere that a page may keep its links, each on a site of its own; one crawl takes them all."""

    def test_relative_links_with_odd_bases(self, taken: dict[str, Taken]) -> None:
        assert {f"/{path}" for path in taken["bases"].rows} == set(SITES["bases"])

    def test_frames_forms_and_image_maps(self, taken: dict[str, Taken]) -> None:
        frames = {"": "start", "left": "frame", "right": "frame", "inner": "iframe"}
        assert taken["frames"].found() == {**frames, **FRAMED}

    def test_pictures_and_what_loads_late(self, taken: dict[str, Taken]) -> None:
        assert taken["pictures"].found() == {"": "start", **PICTURES}

    def test_chains_of_style_sheets(self, taken: dict[str, Taken]) -> None:
        rows, asked = taken["sheets"]
        assert set(asked.values()) == {1}
        assert {f"/{path}" for path in rows} == set(SITES["sheets"])
        assert rows["c.css"]["found_as"] == "css-import"

    def test_headers_feeds_manifests_and_what_is_for_machines(self, taken: dict[str, Taken]) -> None:
        assert taken["machines"].found() == {"": "start", **MACHINES}

    @pytest.mark.parametrize(
        ("name", "ways"),
        [
            ("types", TYPES),
            ("codings", CODINGS),
            ("late", LATE),
            ("films", FILMS),
            ("modules", MODULES),
            ("clicks", CLICKS),
            ("feeds", FEEDS),
        ],
    )
    def test_what_browsers_read(self, taken: dict[str, Taken], name: str, ways: dict[str, str]) -> None:
        """By bytes as servers send them; each is asked for once, a live playlist, too."""
        asked = taken[name].asked
        assert taken[name].found() == {"": "start", **ways}
        assert set(asked.values()) == {1}

    def test_what_was_read_is_stored_as_it_came(self, taken: dict[str, Taken]) -> None:
        rows = taken["codings"].rows
        assert rows["unmeant"]["digest"] == sha1(link("/by-unmeant").encode()).hexdigest()
        assert rows["mixed"]["digest"] == sha1(SITES["codings"]["/mixed"].body).hexdigest()
        assert taken["types"].rows["twice"]["content_type"] == "text/plain"

    @pytest.mark.parametrize("label", CHARSETS)
    def test_a_query_is_sent_in_the_charset_of_its_page(self, taken: dict[str, Taken], label: str) -> None:
        rows = taken[label].rows
        assert {f"/{path}" for path in rows} == set(SITES[label])
        assert {row["status"] for row in rows.values()} == {200}

    def test_a_hundred_thousand_links_on_a_page(self, tmp_path: Path) -> None:
        links = "".join(f"<a href=/p/{number}>{number}</a>\n" for number in range(99_999))
        with GatedSite({"/": links + link("/last"), "/last": "l"}) as site:
            rows = crawled(site, tmp_path, "--ignore", r"/p/\d*[1-9]$", "--ignore", r"/p/\d{3,}$")
        assert set(rows) == {"", "last", "p/0", *(f"p/{number}0" for number in range(1, 10))}
        with (tmp_path / "out" / "crawl.jsonl").open() as lines:
            skipped = sum('"event":"skip"' in line.replace(" ", "") for line in lines)
        assert skipped + len(rows) == 100_001


class TestOtherHosts:
    """Pages that are not of the site; those that become so later are in `test_scope`."""

    def test_offsite_pages_that_redirect(self, tmp_path: Path) -> None:
        away = GatedSite({"/page": "p", "/deep": link("/no"), "/no": "n"}, address="127.0.0.2")
        with away, GatedSite({"/": ""}) as home:
            home.pages |= {
                "/": link(f"{away.url}home", f"{away.url}hop"),
                "/found": link("/of-found"),
                "/of-found": "f",
            }
            away.pages |= {
                "/home": Answer("", 302, (("Location", f"{home.url}found"),)),
                "/hop": Answer("", 301, (("Location", "/hop2"),)),
                "/hop2": Answer("", 307, (("Location", "/deep"),)),
            }
            rows = {url.replace(away.url, "away/"): row for url, row in crawled(home, tmp_path).items()}
        assert set(rows) == {"", "away/home", "found", "of-found", "away/hop", "away/hop2", "away/deep"}
        assert (rows["found"]["found_as"], rows["found"]["depth"]) == ("redirect", 1)
