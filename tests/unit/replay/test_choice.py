"""Which capture answers: captures and a request in, the capture out; each rule with where it comes from.

A capture is named by its place in its list, times are seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import Struct

from muniment.archive.warc.request_bodies import body_key
from muniment.replay.captures.ranges import kept_part
from muniment.replay.choice import NEWEST, Circle, Entry, Hop, Wanted, choose, follow, original_of

P = "http://a.test/p"
S = "https://a.test/p"
CIRCLE = "circle"
PARTED, PART = "multipart/form-data; boundary=", '\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
JSON, FORM = "application/json", "application/x-www-form-urlencoded"


def at_s(seconds: float) -> int:
    return round(seconds * 1_000_000)


def c(url: str = P, at: float = 1, status: int = 200, **given: Any) -> Entry:
    """A capture."""
    if "part" in given:
        start, stop, total = given["part"]
        told = f"bytes {start}-{stop - 1}/{'*' if total is None else total}"
        given["part"], status = kept_part(told, given.pop("etag", ""), stop - start), 206
    return Entry(url=url, at=at_s(at), status=status, **given)


def posted(kind: str, body: str, at: float = 1, method: str = "POST", **given: Any) -> Entry:
    return c(at=at, method=method, body=body_key(kind, body.encode()), **given)


def w(url: str = P, at: float | None = 1, **given: Any) -> Wanted:
    """What is asked for."""
    return Wanted(url=url, at=NEWEST if at is None else at_s(at), **given)


def wp(kind: str, body: str, method: str = "POST", **given: Any) -> Wanted:
    return w(method=method, body=body_key(kind, body.encode()), **given)


class Case(Struct, frozen=True):
    source: str
    rows: Sequence[Entry]
    wanted: Wanted
    found: Any
    """The place of the capture that answers, and what is said of it; None for none."""


def numbered(rows: Sequence[Entry]) -> list[Entry]:
    return [one if one.offset else Entry(**{**_fields(one), "offset": n + 1}) for n, one in enumerate(rows)]


def _fields(entry: Entry) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in entry.__struct_fields__}


ADDRESS = [
    Case("as it stands", [c(), c("http://a.test/q")], w(), 0),
    Case("another path is another page", [c()], w("http://a.test/p/"), None),
    Case("paths are told apart by case, RFC 3986 §6.2.2.1", [c()], w("http://a.test/P"), None),
    Case("hosts are told apart, pywb keys www away", [c("http://www.a.test/p")], w(), None),
    Case("ports are told apart", [c("http://a.test:8080/p")], w(), None),
    Case("an escaped unreserved character, RFC 3986 §6.2.2.2", [c("http://a.test/%7Eu")], w("http://a.test/~u"), 0),
    Case("the same the other way", [c("http://a.test/~u")], w("http://a.test/%7eu"), 0),
    Case("an escaped letter", [c("http://a.test/p")], w("http://a.test/%70"), 0),
    Case("case of escapes, RFC 3986 §6.2.2.1", [c("http://a.test/%c3%a4")], w("http://a.test/%C3%A4"), 0),
    Case("parentheses, pywb#961", [c("http://a.test/C_(d)")], w("http://a.test/C_%28d%29"), 0),
    Case("letters beside them, pywb#961", [c("http://a.test/%C3%A4_%28d%29")], w("http://a.test/%C3%A4_(d)"), 0),
    Case("an apostrophe, pywb#922", [c("http://a.test/W's")], w("http://a.test/W%27s"), 0),
    Case("a comma and a colon, pywb#376", [c("http://a.test/a,b:c")], w("http://a.test/a%2Cb%3ac"), 0),
    Case("a bar in a query", [c("http://a.test/p?a=1|2")], w("http://a.test/p?a=1%7C2"), 0),
    Case("a question mark in a query, arquivo#1195", [c("http://a.test/p?u=x?y")], w("http://a.test/p?u=x%3Fy"), 0),
    Case("but not in a path, where it ends it", [c("http://a.test/p?y")], w("http://a.test/p%3Fy"), None),
    Case("an escaped slash is data, RFC 3986 §2.2", [c("http://a.test/a/b")], w("http://a.test/a%2Fb"), None),
    Case("an escaped ampersand is data", [c("http://a.test/p?a=1&b=2")], w("http://a.test/p?a=1%26b=2"), None),
    Case("an escaped percent sign stays one", [c("http://a.test/%2541")], w("http://a.test/%41"), None),
    Case("as it stands before an equal one", [c("http://a.test/%7Eu", 1), c("http://a.test/~u", 9)],
         w("http://a.test/~u", 1), 1),
    Case("an equal one before a loose one", [c("http://a.test/~u?b&a", 1), c("http://a.test/%7Eu?a&b", 9)],
         w("http://a.test/~u?a&b", 1), 1),
    Case("arguments in another order", [c("http://a.test/p?b=2&a=1")], w("http://a.test/p?a=1&b=2"), (0, "loosely")),
    Case("a cache-buster that was not captured", [c()], w("http://a.test/p?_=17"), (0, "loosely")),
    Case("one that is no more", [c("http://a.test/p?cb=17")], w(), (0, "loosely")),
    Case("two cache-busters", [c("http://a.test/p?a=1&_=17")], w("http://a.test/p?a=1&_=18"), (0, "loosely")),
    Case("Math.random() under any name", [c("http://a.test/p?x=0.73184029")], w("http://a.test/p?x=0.1"), None),
    Case("the same with its many digits", [c("http://a.test/p?x=0.7318402919")], w("http://a.test/p?x=0.1234567891"),
         (0, "loosely")),
    Case("milliseconds under a letter", [c("http://a.test/p?t=1795718818729")], w("http://a.test/p?t=1795718818730"),
         (0, "loosely")),
    Case("a number is no cache-buster by any name", [c("http://a.test/p?id=17")], w("http://a.test/p?id=18"), None),
    Case("a cache-buster with a word in it", [c("http://a.test/p?_=a")], w("http://a.test/p?_=b"), None),
    Case("an argument less", [c("http://a.test/p?a=1")], w("http://a.test/p?a=1&b=2"), None),
    Case("a loose one is nearest, too", [c("http://a.test/p?_=1", 1), c("http://a.test/p?_=2", 5)],
         w("http://a.test/p?_=3", 4), (1, "loosely")),
    Case("an empty query", [c()], w("http://a.test/p?"), (0, "loosely")),
]  # fmt: skip
METHOD = [
    Case("GET by GET", [c(method="HEAD"), c(at=9)], w(), 1),
    Case("HEAD was shown for GET, pywb#286, #309", [c(method="HEAD", at=1), c(at=99)], w(at=1), 1),
    Case("GET by HEAD's head for want of others, RFC 9110 §9.3.2", [c(method="HEAD")], w(), (0, "headless")),
    Case("a loose body before a head", [c(method="HEAD"), c("http://a.test/p?_=1")], w(), (1, "loosely")),
    *[Case(f"GET never by {name}", [c(method=name)], w(), None) for name in ("POST", "PUT", "PATCH", "DELETE",
                                                                             "OPTIONS", "TRACE", "PROPFIND")],
    Case("a preflight beside the page, Fetch §4.9", [c(method="OPTIONS", at=1), c(at=50)], w(at=1), 1),
    Case("HEAD by HEAD", [c(), c(method="HEAD", at=9)], w(method="HEAD"), 1),
    Case("HEAD by GET's head, RFC 9110 §9.3.2", [c()], w(method="HEAD"), 0),
    Case("HEAD never by POST", [c(method="POST", body="")], w(method="HEAD"), None),
    Case("OPTIONS by its own", [c(), c(method="OPTIONS", at=9)], w(method="OPTIONS"), 1),
    Case("OPTIONS never by another", [c(), c(method="HEAD")], w(method="OPTIONS"), None),
    Case("DELETE by its own, whatever was sent", [c(), c(method="DELETE", at=9)], w(method="DELETE"), 1),
    Case("DELETE never by GET", [c()], w(method="DELETE"), None),
    Case("methods are told apart by case, RFC 9110 §9.1", [c(method="get")], w(), None),
    Case("a method that nobody knows, by its own", [c(), c(method="QUERY")], w(method="QUERY"), 1),
    Case("the record itself, by whatever method", [c(method="DELETE", at=2.5)], w(at=2.5, pinned=True, method="*"), 0),
]  # fmt: skip
BODY = [
    Case("the same form, pywb#636", [posted(FORM, "q=a"), posted(FORM, "q=b")], wp(FORM, "q=b"), 1),
    Case("another form", [posted(FORM, "q=a")], wp(FORM, "q=b"), None),
    Case("a form less", [posted(FORM, "q=a&r=b")], wp(FORM, "q=a"), None),
    Case("no body", [posted(FORM, "q=a"), posted("", "")], wp("", ""), 1),
    Case("the same JSON, in another spelling", [posted(JSON, '{"a": 1}'), posted(JSON, '{"b":1}')],
         wp(JSON, '{"b" : 1}'), 1),
    Case("GraphQL by its query", [posted(JSON, '{"query":"{ me }"}'), posted(JSON, '{"query":"{ you }"}')],
         wp(JSON, '{"query":"{ you }"}'), 1),
    Case("GraphQL by its variables", [posted(JSON, '{"query":"q","variables":{"id":"ab"}}')],
         wp(JSON, '{"query":"q","variables":{"id":"cd"}}'), None),
    Case("a form in parts, whatever its boundary",
         [posted(f"{PARTED}x", f"--x{PART}--x--")], wp(f"{PARTED}yy", f"--yy{PART}--yy--"), 0),
    Case("bytes", [posted("application/octet-stream", "abc")], wp("application/octet-stream", "abc"), 0),
    Case("bytes differ in nothing that can be told", [posted("application/octet-stream", "a1")],
         wp("application/octet-stream", "a2"), None),
    Case("another number", [posted(FORM, "q=a&n=1")], wp(FORM, "q=a&n=2"), (0, "similar")),
    Case("another number in JSON", [posted(JSON, '{"n": 1.5}')], wp(JSON, '{"n": -27}'), (0, "similar")),
    Case("another time", [posted(JSON, '{"t":"2026-11-25T10:00:00.123Z"}')], wp(JSON, '{"t":"2026-11-26T01:02:03Z"}'),
         (0, "similar")),
    Case("another random id", [posted(JSON, '{"id":"5f0c1e2a-9b1d-4c3e-8f00-0123456789ab"}')],
         wp(JSON, '{"id":"a17b1e2a-9b1d-4c3e-8f00-0123456789ab"}'), (0, "similar")),
    Case("another token", [posted(FORM, "q=a&csrf=Zk3x9PqLm2RtY7")], wp(FORM, "q=a&csrf=a8Bv2NcX1zQw4E"),
         (0, "similar")),
    Case("a number for a word", [posted(FORM, "q=1")], wp(FORM, "q=a"), None),
    Case("another long word is no random id", [posted(FORM, "q=architecture")], wp(FORM, "q=constitution"), None),
    Case("a number in a word is a part of it", [posted(FORM, "q=mp3")], wp(FORM, "q=mp4"), None),
    Case("the same before a similar one that is nearer", [posted(FORM, "n=1", 1), posted(FORM, "n=2", 9)],
         wp(FORM, "n=2", at=1), 1),
    Case("of similar ones the nearest", [posted(FORM, "n=1", 1), posted(FORM, "n=2", 9)], wp(FORM, "n=3", at=8),
         (1, "similar")),
    Case("PUT by its body", [posted(JSON, '{"a":"x"}', method="PUT"), posted(JSON, '{"a":"y"}', method="PUT")],
         wp(JSON, '{"a":"y"}', "PUT"), 1),
    Case("PATCH by its body", [posted(JSON, '{"a":"x"}', method="PATCH")], wp(JSON, '{"a":"y"}', "PATCH"), None),
    Case("PUT never by POST", [posted(JSON, "{}")], wp(JSON, "{}", "PUT"), None),
    Case("a body that was not read answers nothing", [c(method="POST")], wp(FORM, "a=b"), None),
    Case("a body of GET counts for nothing, RFC 9110 §9.3.1", [c()], w(body="a=b"), 0),
]  # fmt: skip
MADE_GOOD = [
    *[Case(f"{status} that was tried again, RFC 9110 §15", [c(status=status, job=0), c(at=2, job=0, attempt=2)],
           w(at=1), 1) for status in (408, 425, 429, 500, 502, 503, 504, 520)],
    *[Case(f"{status} is an answer", [c(status=status, job=0), c(at=2, job=0, attempt=2)], w(at=1), 0)
      for status in (301, 401, 403, 404, 410, 418, 451)],
    Case("a try that was not made good", [c(status=503, job=0)], w(), 0),
    Case("the last of those that were not", [c(status=503, job=0), c(status=503, at=2, job=0, attempt=2)], w(at=1), 1),
    Case("a try after the page counts", [c(job=0), c(status=503, at=5, job=0, attempt=2)], w(at=5), 1),
    Case("another job makes nothing good", [c(status=503, job=0), c(at=2, job=1, attempt=2)], w(at=1), 0),
    Case("tried again by another page of the job", [c(status=503, job=0), c(at=60, job=0)], w(at=1), 1),
    Case("a run of next year is no second try", [c(status=503, job=0), c(at=4e7, job=0)], w(at=1), 0),
    Case("but a late try of the same page is", [c(status=503, job=0), c(at=4e7, job=0, attempt=2)], w(at=1), 1),
    Case("another tool's, within a day", [c(status=503), c(at=86_000)], w(at=1), 1),
    Case("another tool's, after a day", [c(status=503), c(at=87_000)], w(at=1), 0),
    Case("of another address", [c(status=503), c(S, at=2)], w(at=1), 0),
    Case("a whole one before a cut one", [c(whole=False), c(at=99)], w(at=1), 1),
    Case("a cut one for want of others", [c(whole=False)], w(), (0, "incomplete")),
    Case("the nearest of cut ones", [c(whole=False), c(at=9, whole=False)], w(at=8), (1, "incomplete")),
    Case("a whole one of the other scheme before a cut one", [c(whole=False), c(S)], w(), 1),
    Case("a cut one at its address before a loose one", [c(whole=False), c("http://a.test/p?_=1")], w(),
         (0, "incomplete")),
    Case("a cut one that is pinned", [c(whole=False, at=1.5), c(at=2)], w(at=1.5, pinned=True), (0, "incomplete")),
    Case("a failed one that is pinned", [c(status=503, job=0), c(at=2, job=0, attempt=2)], w(at=1, pinned=True), 0),
    Case("an error page that is whole before a cut page", [c(status=404), c(whole=False, at=2)], w(at=2), 0),
]  # fmt: skip
PARTS = [
    Case("the whole before a part, pywb#144", [c(part=(0, 10, 99)), c(at=50)], w(at=1), 1),
    Case("a part alone", [c(part=(5, 10, 99))], w(), (0, "1 part")),
    Case("a part before a cut whole", [c(whole=False), c(part=(0, 10, 99), at=9)], w(at=1), (1, "1 part")),
    Case("parts of one whole, wabac.js#94", [c(part=(0, 10, 99)), c(part=(10, 99, 99), at=2)], w(at=2), (1, "2 parts")),
    Case("parts of another whole stay away, RFC 9110 §15.3.7.3",
         [c(part=(0, 10, 99), etag="a"), c(part=(10, 99, 99), etag="b", at=2)], w(at=1), (0, "1 part")),
    Case("parts of another length stay away", [c(part=(0, 10, 99)), c(part=(10, 98, 98), at=2)], w(at=1),
         (0, "1 part")),
    Case("a part that is the whole, browsertrix-crawler#645", [c(part=(0, 99, 99)), c(at=9)], w(at=1), 0),
    Case("it makes parts incomplete", [c(part=(0, 99, 99), at=9), c(part=(0, 10, 99))], w(at=1), 0),
    Case("a part up to the end of what nobody knew", [c(part=(0, 99, None))], w(), (0, "1 part")),
    Case("a cut part", [c(part=(0, 10, 99), whole=False), c(part=(0, 5, 99), at=9)], w(at=1), (1, "2 parts")),
    Case("a part that is pinned", [c(part=(0, 10, 99)), c(at=2)], w(at=1, pinned=True), (0, "1 part")),
    Case("several parts in one answer, RFC 9110 §14.6", [c(status=206)], w(), 0),
    Case("an answer to a condition, RFC 9110 §15.4.5", [c(status=304), c(at=50)], w(at=1), 1),
    Case("two of them", [c(), c(status=304, at=3), c(status=304, at=4)], w(at=4), 0),
    Case("a condition that did not hold, RFC 9110 §15.5.13", [c(status=412), c(at=50)], w(at=1), 1),
    Case("a range that was not there, RFC 9110 §15.5.17", [c(status=416), c(at=50)], w(at=1), 1),
    Case("a revisit of 304 is the page, WARC 1.1 §6.7.3", [c(), c(P, 4, 304, record_type="revisit")], w(at=4), 1),
    Case("a part before an answer to a condition", [c(status=304), c(part=(0, 10, 99), at=9)], w(at=1), (1, "1 part")),
    Case("204 is no whole that a part belongs to", [c(status=204, at=9), c(part=(0, 10, 99))], w(at=1), 0),
]  # fmt: skip
ORDER = [
    Case("the nearest", [c(at=1), c(at=5), c(at=9)], w(at=4), 1),
    Case("the newest", [c(at=1), c(at=9), c(at=5)], w(at=None), 1),
    Case("the later of two as near, RFC 7089 leaves it open", [c(at=1), c(at=3)], w(at=2), 1),
    Case("the scheme before the time", [c(S, at=1), c(at=9)], w(at=1), 1),
    Case("the other scheme for want of it", [c(S)], w(), 0),
    Case("within a second by microseconds", [c(at=5.2), c(at=5.6), c(at=5.9)], w(at=5.7), 1),
    Case("a second stands for all of it", [c(at=4.9), c(at=5.6)], w(at=5), 1),
    Case("and the first in it is nearest", [c(at=5.6), c(at=5.2)], w(at=5), 1),
    Case("a microsecond does not", [c(at=4.9), c(at=5.6)], w(at=5.000001), 0),
    Case("at once, in the order of the file", [c(offset=7), c(offset=3)], w(), 1),
    Case("at once, in the order of files", [c(place=2), c(place=1)], w(), 1),
    Case("a pin by the microsecond", [c(at=5.000001), c(at=5.000002)], w(at=5.000002, pinned=True), 1),
    Case("a pin without a capture of its own is the nearest", [c(at=5), c(at=7)], w(at=6.5, pinned=True), 1),
    Case("two pins at once by scheme: files of other tools have seconds", [c(status=301), c(S)],
         w(S, at=1, pinned=True), 1),
    Case("records that were met are not met again", [c(), c(at=9)], w(met=frozenset({(0, 1)})), 1),
    Case("nor anything else", [c()], w(met=frozenset({(0, 1)})), None),
    Case("a redirect's target is not before it", [c(at=4), c(at=8), c(at=20)], w(after=c(at=5), at=5), 1),
    Case("or else the nearest before", [c(at=1), c(at=3)], w(after=c(at=5), at=5), 1),
    Case("at once with it, by the order of the file", [c(at=5, offset=1), c(at=5, offset=9)],
         w(after=c(at=5, offset=5), at=5), 1),
    Case("a page's requisite by the page's own time", [c(at=2), c(at=90)], w(at=88), 1),
]  # fmt: skip


@pytest.mark.parametrize("case", [*ADDRESS, *METHOD, *BODY, *MADE_GOOD, *PARTS, *ORDER], ids=lambda case: case.source)
def test_the_capture_that_answers(case: Case) -> None:
    rows = numbered(case.rows)
    found = choose(case.wanted, rows)
    if case.found is None:
        assert found is None
        return
    assert found is not None
    place, said = case.found if isinstance(case.found, tuple) else (case.found, "")
    assert rows.index(found.entry) == place
    told = {"loosely": found.loosely, "similar": found.similar, "headless": found.headless,
            "incomplete": not found.entry.whole and not found.parts,
            f"{len(found.parts)} part{'s' * (len(found.parts) > 1)}": bool(found.parts)}  # fmt: skip
    assert [name for name, holds in told.items() if holds] == ([said] if said else [])


class Way(Struct, frozen=True):
    source: str
    rows: Sequence[Entry]
    wanted: Wanted
    found: Any
    """The place of the capture that answers, where it leads, and the place of the capture there; or CIRCLE."""


def r(url: str, to: str, at: float, status: int = 301, **given: Any) -> Entry:
    return c(url, at, status, redirect_to=to, **given)


A, B, D = "http://a.test/a", "http://a.test/b", "http://a.test/d"
REDIRECTS = [
    Way("no redirect", [c(A)], w(A), (0, "", None)),
    Way("another page", [r(A, B, 1), c(B, 2)], w(A), (0, B, 1)),
    Way("a page that was not captured", [r(A, B, 1)], w(A), (0, B, None)),
    Way("the page after it, not the nearest", [c(B, 4), r(A, B, 5), c(B, 9)], w(A), (1, B, 2)),
    Way("one that the job had already", [c(B, 1), c(B, 3), r(A, B, 5)], w(A), (2, B, 1)),
    Way("a chain", [r(A, B, 1), r(B, D, 2), c(D, 3)], w(A), (0, B, 1)),
    Way("http to https, pywb#18, #73, #345", [r(P, S, 1), c(S, 2)], w(P), (0, S, 1)),
    Way("the page at https itself", [r(P, S, 1), c(S, 2)], w(S), (1, "", None)),
    Way("https to http", [r(S, P, 1), c(P, 2)], w(S), (0, P, 1)),
    Way("https that was never captured has no other end", [r(P, S, 1)], w(P), CIRCLE),
    Way("www, pywb#865", [r("http://www.a.test/p", P, 1), c(P, 2)], w("http://www.a.test/p"), (0, P, 1)),
    Way("a slash, zimit#584", [r(P, f"{P}/", 1), c(f"{P}/", 2)], w(P), (0, f"{P}/", 1)),
    Way("letters' case", [r("http://a.test/P", P, 1), c(P, 2)], w("http://a.test/P"), (0, P, 1)),
    Way("a query, pywb#917", [r(f"{P}?a", P, 1), c(P, 2)], w(f"{P}?a"), (0, P, 1)),
    Way("an escape", [r("http://a.test/%7Eu", "http://a.test/~u", 1), c("http://a.test/~u", 2)],
        w("http://a.test/%7Eu"), (1, "", None)),
    Way("to itself with a cookie, perma#611", [r(A, A, 1, 302), c(A, 2)], w(A), (1, "", None)),
    Way("to itself twice", [r(A, A, 1, 302), r(A, A, 2, 302), c(A, 3)], w(A), (2, "", None)),
    Way("back over one page", [r(A, B, 1, 302), r(B, A, 2, 302), c(A, 3)], w(A), (2, "", None)),
    Way("back over several", [r(A, B, 1), r(B, D, 2), r(D, A, 3), c(A, 4)], w(A), (3, "", None)),
    Way("back within one second, by microseconds", [r(A, B, 1.1), r(B, A, 1.2), c(A, 1.3)], w(A), (2, "", None)),
    Way("back at one time, by the order of the file", [r(A, B, 1), r(B, A, 1), c(A, 1)], w(A), (2, "", None)),
    Way("back, and away by another redirect", [r(A, B, 1), r(B, A, 2), r(A, D, 3), c(D, 4)], w(A), (2, D, 3)),
    Way("back to the other scheme of it", [r(S, P, 1), r(P, S, 2), c(S, 3)], w(S), (2, "", None)),
    Way("asked in the middle of it", [r(A, B, 1), r(B, A, 2), c(A, 3)], w(B), (1, A, 2)),
    Way("a page of before ends it, too", [c(A, 1), r(A, B, 5), r(B, A, 6)], w(A, at=5), (0, "", None)),
    Way("no other end, pywb#345", [r(A, A, 1)], w(A), CIRCLE),
    Way("two pages without another end", [r(A, B, 1), r(B, A, 2)], w(A), CIRCLE),
    Way("captured twice, without another end", [r(A, B, 1), r(B, A, 2), r(A, B, 3), r(B, A, 4)], w(A), CIRCLE),
    Way("a circle further on", [r(A, B, 1), r(B, D, 2), r(D, B, 3)], w(A), CIRCLE),
    Way("further on with an end", [r(A, B, 1), r(B, D, 2), r(D, B, 3), c(B, 4)], w(A), (0, B, 1)),
    Way("303 after POST is GET, RFC 9110 §15.4.4", [r(A, B, 1, 303, method="POST", body=""), c(B, 2)],
        w(A, method="POST"), (0, B, 1)),
    Way("302 after POST, to its own address", [r(A, A, 1, 302, method="POST", body=""), c(A, 2)],
        w(A, method="POST"), (0, A, 1)),
    Way("307 keeps method and body, RFC 9110 §15.4.8",
        [r(A, B, 1, 307, method="POST", body="n"), c(B, 2), c(B, 3, method="POST", body="n")],
        w(A, method="POST", body="n"), (0, B, 2)),
    Way("HEAD goes on as HEAD", [r(A, B, 1, method="HEAD"), c(B, 2, method="HEAD")], w(A, method="HEAD"), (0, B, 1)),
    Way("a try that was made good is no target", [r(A, B, 1), c(B, 2, 503, job=0), c(B, 3, job=0, attempt=2)], w(A),
        (0, B, 2)),
    Way("a long chain goes on in the browser",
        [r(f"{A}/{n}", f"{A}/{n + 1}", n) for n in range(80)], w(f"{A}/0"), (0, f"{A}/1", 1)),
]  # fmt: skip


@pytest.mark.parametrize("way", REDIRECTS, ids=lambda way: way.source)
def test_where_redirects_lead(way: Way) -> None:
    rows = numbered(way.rows)
    found = follow(way.wanted, lambda _: rows, lambda entry: entry.redirect_to)
    if way.found == CIRCLE:
        assert isinstance(found, Circle)
        return
    assert isinstance(found, Hop)
    following = rows.index(found.next) if found.next else None
    assert (rows.index(found.choice.entry), found.to, following) == way.found


REVISITS = [
    ("of the second that it names, WARC 1.1 §6.7.2", [c(at=1), c(at=2.4), c(at=3)], P, 2, 1),
    ("nothing of that second", [c(at=1), c(at=3)], P, 2, None),
    ("of another URL", [c(at=2), c("http://a.test/o", 2)], "http://a.test/o", 2, 1),
    ("without a date the last before it, WARC 1.0", [c(at=1), c(at=3), c(at=9)], P, None, 1),
    ("never one after it", [c(at=9)], P, None, None),
    ("a whole one before a cut one", [c(at=1), c(at=3, whole=False)], P, None, 0),
    ("never another revisit", [c(at=1), c(at=3, record_type="revisit")], P, None, 0),
    ("never an answer to a condition", [c(at=1), c(at=3, status=304)], P, None, 0),
    ("never another method's", [c(at=1), c(at=3, method="POST")], P, None, 0),
    ("never one of another digest", [c(at=1, digest="aa"), c(at=3, digest="bb")], P, None, 0),
    ("digests of other kinds are not compared", [c(at=1), c(at=3, digest="sha256:bb")], P, None, 1),
    ("the other scheme", [c(S, at=3)], P, None, 0),
]  # fmt: skip


@pytest.mark.parametrize(("source", "rows", "url", "at", "place"), REVISITS, ids=[one[0] for one in REVISITS])
def test_what_a_revisit_stands_for(
    source: str, rows: Sequence[Entry], url: str, at: float | None, place: int | None
) -> None:
    revisit = c(at=5, record_type="revisit", digest="aa", offset=99)
    found = original_of(revisit, rows, url, None if at is None else at_s(at))
    assert (None if found is None else list(rows).index(found)) == place, source
