"""The right answer in both ways of replay: as recorded over HTTP, and exactly, through the proxy."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Protocol
from urllib.parse import urljoin, urlsplit

import pytest
from crawled import run_muniment
from msgspec import Struct
from tests.support.gated_site import Answer, GatedSite
from tests.support.replay import Replay, Said
from tests.support.replay_archives import CODINGS, FORM, JSON, SENT, VIDEO, WORDS, X, write_others, write_own

from muniment.model.url import normalise

pytestmark = pytest.mark.long  # its tests stay together

MOST_HOPS = 20


class Way(Protocol):
    """A way of replay."""

    def ask(self, url: str, *, at: str = "", method: str = "GET", body: bytes = b"", **headers: str) -> Said:
        """One answer, its Location being the archived URL."""


class InPage(Struct):
    """What the origin of archived pages answers."""

    replay: Replay

    def ask(self, url: str, *, at: str = "", method: str = "GET", body: bytes = b"", **headers: str) -> Said:
        origin, (time, url) = urlsplit(self.replay.content), _pinned(url)
        with closing(http.client.HTTPConnection("127.0.0.1", origin.port or 0, timeout=20)) as connection:
            path = f"/at/{at or time or '2999'}/{url}"
            said = _said(connection, method, path, body, {"Host": origin.netloc, **_named(headers)})
        location = said.headers.get("location", "")
        if location:
            said.headers["location"] = f"{location.split('/')[2]}/{location.split('/', 3)[3]}"
        return said


class Exactly(Struct):
    """What the proxy answers."""

    replay: Replay

    def ask(self, url: str, *, at: str = "", method: str = "GET", body: bytes = b"", **headers: str) -> Said:
        if at:
            self._send(f"{self.replay.front}/at/{at}/{url}", "GET", b"", {"Sec-Fetch-Site": "none"})
        return self._send(url, method, body, _named(headers))

    def _send(self, url: str, method: str, body: bytes, headers: dict[str, str]) -> Said:
        host, _, port = str(self.replay.opened["proxy"]).partition(":")
        parts = urlsplit(url)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        if parts.scheme == "http":
            with closing(http.client.HTTPConnection(host, int(port), timeout=20)) as connection:
                return _said(connection, method, url, body, headers)
        with closing(http.client.HTTPSConnection(host, int(port), timeout=20, context=_believing())) as connection:
            connection.set_tunnel(parts.netloc, 443)
            return _said(connection, method, path, body, headers)


def _believing() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _pinned(url: str) -> tuple[str, str]:
    """Time and URL of a redirect's target in the page."""
    time, _, rest = url.partition("/")
    return (time, rest) if time.isdigit() else ("", url)


def _named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def _said(connection: http.client.HTTPConnection, method: str, path: str, body: bytes, headers: dict[str, str]) -> Said:
    connection.request(method, path, body or None, headers)
    answer = connection.getresponse()
    told = {name.lower(): value for name, value in answer.getheaders()}
    return Said(answer.status, told, answer.read())


def end(way: Way, url: str, at: str = "") -> tuple[Said, int]:
    """Where redirects lead, and how many there were."""
    said = way.ask(url, at=at)
    for hops in range(MOST_HOPS):
        if not (300 <= said.status < 400):
            return said, hops
        location = said.headers["location"]
        pinned, named = _pinned(location)
        url = location if pinned else normalise(urljoin(url, named.encode("latin-1").decode())) or ""
        said = way.ask(url)
    raise AssertionError(f"{url}: redirects without end")


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cwd = tmp_path_factory.mktemp("answers")
    write_others(cwd / "others.warc.gz")
    write_own(cwd / "own")
    return cwd


@pytest.fixture(scope="module", params=["page", "exact"])
def way(request: pytest.FixtureRequest, archives: Path) -> Iterator[Way]:
    exact = ("--exact",) if request.param == "exact" else ()
    with Replay(archives, "own", "others.warc.gz", *exact) as replay:
        yield Exactly(replay) if exact else InPage(replay)


@pytest.mark.parametrize(
    ("url", "body", "hops"),
    [
        (f"{X}/secure", b"secure", 1), ("http://www.x.test/", b"home", 1), (f"{X}/slash", b"/slash/", 1),
        (f"{X}/Case", b"/case", 1), (f"{X}/q?old=1", b"/q", 1), (f"{X}/~u", b"/%7Eu", 0), (f"{X}/cookie", b"cookie", 0),
        (f"{X}/a", b"back again", 0), (f"{X}/b", b"back again", 1), (f"{X}/moved", b"target of 60", 1),
        (f"{X}/umlaut", b"books", 1),
    ],
)  # fmt: skip
def test_redirects_lead_to_what_was_captured_after_them(way: Way, url: str, body: bytes, hops: int) -> None:
    said, count = end(way, url)
    assert (said.status, said.body, count) == (200, body, hops)


def test_the_fragment_of_a_location_stays(way: Way) -> None:
    assert way.ask(f"{X}/fragment").headers["location"].endswith("/q#part")


def test_a_circle_is_said(way: Way) -> None:
    said = way.ask(f"{X}/c", Accept="text/html")
    assert (said.status, "A circle of redirects" in said.text) == (508, True)


def test_methods_have_answers_of_their_own(way: Way) -> None:
    url = f"{X}/page"
    assert way.ask(url, at="20260504030001").body == b"page"
    head = way.ask(url, method="HEAD")
    assert (head.status, head.headers["content-length"], head.body) == (200, "4", b"")
    assert way.ask(url, method="OPTIONS").headers["allow"] == "GET"
    assert way.ask(url, method="DELETE").status == 404
    assert way.ask(f"{X}/api").status == 404, "GET is not answered by what was posted"
    for kept, method in ((f"{X}/head", "GET"), (f"{X}/head", "HEAD")):
        said = way.ask(kept, method=method)
        assert (said.status, said.body) == (200, b"")
    assert way.ask("http://o.test/head").body == b"beside"


def test_bodies_choose_among_answers(way: Way) -> None:
    for n, (method, kind, sent) in enumerate(SENT):
        assert way.ask(f"{X}/api", method=method, body=sent, Content_Type=kind).body == b"%d" % n, sent
    for n, sent in enumerate((b'{"q":"one"}', b'{"q":"two"}')):
        assert way.ask("http://o.test/api", method="POST", body=sent, Content_Type=JSON).body == b"own %d" % n
    assert way.ask("http://o.test/api", method="PUT", body=b'{"q": "two"}', Content_Type=JSON).body == b"own put"
    near = way.ask(f"{X}/api", method="POST", body=SENT[3][2].replace(b"1", b"27"), Content_Type=JSON)
    assert near.body == b"3"
    for method, kind, sent in (("POST", FORM, b"q=c"), ("POST", JSON, b'{"q": "me"}'), ("PUT", JSON, b'{"a": "y"}')):
        assert way.ask(f"{X}/api", method=method, body=sent, Content_Type=kind).status == 404, sent


def test_a_large_form_is_compared_whole(way: Way) -> None:
    sent = b"q=a&" + b"x" * 3_000_000
    assert way.ask(f"{X}/api", method="POST", body=sent, Content_Type=FORM).status == 404


@pytest.mark.parametrize("path", ["cut", "marked", "chunk"])
def test_a_whole_answer_goes_before_a_cut_one(way: Way, path: str) -> None:
    assert way.ask(f"{X}/{path}", at="20260504030005").body == b"whole"


def test_what_is_there_comes_at_once(way: Way) -> None:
    said = way.ask(f"{X}/short")
    assert (said.status, said.headers["content-length"], said.body) == (200, "13", b"what is there")
    assert way.ask(f"{X}/limited", at="20260504030005").body == b"limited", "a limited try that was made good"


def test_parts_are_joined_where_they_meet(way: Way) -> None:
    def part(path: str, asked: str) -> tuple[int, str, bytes]:
        said = way.ask(X + path, Range=asked)
        return said.status, said.headers.get("content-range", ""), said.body

    assert part("/parts", "bytes=1900-2099") == (206, "bytes 1900-2099/5000", VIDEO[1900:2100])
    assert part("/parts", "bytes=3990-4100") == (206, "bytes 3990-3999/5000", VIDEO[3990:4000]), "as far as it was kept"
    assert part("/parts", "bytes=-7") == (206, "bytes 4993-4999/5000", VIDEO[-7:])
    assert part("/parts", "bytes=5000-")[:2] == (416, "bytes */5000")
    assert part("/parts", "bytes=4100-4200")[0] == 404
    assert part("/meeting", "bytes=0-") == (206, "bytes 0-4999/5000", VIDEO)
    for path in ("/all", "/meeting", "/beside"):
        said = way.ask(X + path)
        assert (said.status, said.body, "content-range" in said.headers) == (200, VIDEO, False), path
        assert part(path, "bytes=10-19") == (206, "bytes 10-19/5000", VIDEO[10:20])
        assert part(path, "bytes=9999-")[:2] == (416, "bytes */5000")


def test_an_answer_to_a_condition_is_not_the_page(way: Way) -> None:
    said = way.ask(f"{X}/condition", at="20260504030130")
    assert (said.status, said.body) == (200, b"as it was")


@pytest.mark.parametrize("path", ["plain", "head", "low", "hex"])
def test_a_revisit_has_the_payload_of_its_original(way: Way, path: str) -> None:
    said = way.ask(f"{X}/again/{path}")
    assert (said.status, said.body, said.headers.get("x-kept")) == (200, b"kept 0", "yes" if path == "head" else None)


def test_a_revisit_names_its_original(way: Way) -> None:
    assert way.ask(f"{X}/again/named").body == b"kept 1"
    assert way.ask(f"{X}/first/2").body == b"kept 2", "it names none: the last before it"
    lost = way.ask(f"{X}/again/lost")
    assert (lost.status, "http://lost.test/it" in lost.text) == (404, True)


def test_codings_are_kept_exactly_and_removed_in_the_page(way: Way) -> None:
    exact = isinstance(way, Exactly)
    for n, (name, body) in enumerate(CODINGS.items()):
        said = way.ask(f"{X}/coded/{n}")
        assert said.body == (body if exact else WORDS), name
        assert said.headers.get("content-encoding") == (name if exact else None)
        assert "UTF-8" in said.headers["content-type"]
    assert way.ask(f"{X}/mislabelled").body == WORDS
    ranged = way.ask(f"{X}/large", Range="bytes=1000000-1000004", Accept_Encoding="identity;q=1, *;q=0")
    assert (ranged.status, ranged.headers["content-range"]) == (206, "bytes 1000000-1000004/2500000")
    assert ranged.body == (VIDEO * 500)[1_000_000:1_000_005]


def test_order_within_a_second(way: Way) -> None:
    for time, body in (("20260504030007", b"soon 0"), ("20260504030007299999", b"soon 1"), ("2999", b"soon 2")):
        assert way.ask("http://o.test/soon", at=time).body == body
    assert way.ask(f"{X}/soon").body == b"first", "at once: the order of the file"


def test_requisites_have_the_time_of_their_page(way: Way) -> None:
    for n, time in enumerate(("20260504030001", "20260504030320")):
        page = way.ask(f"{X}/timed", at=time, Accept="text/html")
        assert page.body == b"<p>%d" % n
        asked = {"at": time} if isinstance(way, InPage) else {"Referer": f"{X}/timed"}
        assert way.ask(f"{X}/timed.css", **asked).body == b"/* %d */" % n


def test_a_broken_record_costs_its_own_answer(way: Way) -> None:
    broken = way.ask("http://o.test/broken", Accept="text/html")
    assert (broken.status, "damaged" in broken.text) == (404, True)
    assert way.ask("http://o.test/after").body == b"after"


def test_records_are_chosen_by_the_same_rules(archives: Path) -> None:
    with Replay(archives, "own", "others.warc.gz") as replay:
        for path, body in (("cut", b"whole"), ("page", b"page"), ("limited", b"limited"), ("again/hex", b"kept 0")):
            assert replay.get(f"/raw/20260504030005/{X}/{path}").body == body
        record = replay.get(f"/record/20260504030005/{X}/page").body
        assert record.endswith(b"\r\n\r\npage\r\n\r\n")


def test_a_crawl_is_answered_from_what_was_made_good(tmp_path: Path) -> None:
    sent = {"/": "<a href=/flaky>f</a><a href=/back>b</a>", "/other": "<p>other"}
    flaky = (Answer("too much", 503, (("Retry-After", "0"),)), Answer("<p>made good"))
    back = (Answer("", 302, (("Location", "/back"), ("Set-Cookie", "a=b"))), Answer("<p>with a cookie"))
    with GatedSite({**sent, "/flaky": flaky, "/back": back}) as site:
        run_muniment(tmp_path, "crawl", site.url, "-o", "out", "--quiet", "--no-robots", "--no-sitemaps")
        url = site.url
    for exact in (False, True):
        with Replay(tmp_path, "out", *(("--exact",) if exact else ())) as replay:
            asked: Way = Exactly(replay) if exact else InPage(replay)
            assert asked.ask(f"{url}flaky", at="20200101").body == b"<p>made good"
            assert end(asked, f"{url}back", at="20200101") == (asked.ask(f"{url}back", at="20200101"), 0)
            assert asked.ask(f"{url}back").body == b"<p>with a cookie"
