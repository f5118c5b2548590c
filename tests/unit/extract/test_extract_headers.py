"""What `Link`, `Refresh` and `X-Robots-Tag` headers say."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.extract.headers import header_directives, header_links
from muniment.model.link import FoundAs as F
from muniment.rules.robots.directives import directives_for


def found(*headers):
    links = []
    header_links(headers, lambda url, found_as: links.append((url, found_as)))
    return links


LINKS = [
    ("<a>", [("a", F.LINK_HEADER)]),
    ("<a>; rel=next, <b>; rel='prev'", [("a", F.LINK_HEADER), ("b", F.LINK_HEADER)]),
    ("<s.css>;rel=stylesheet,<p.js>; rel=preload; as=script", [("s.css", F.STYLESHEET), ("p.js", F.PRELOAD)]),
    ('<m>; REL = "manifest" , <i> ; rel="shortcut icon"', [("m", F.MANIFEST), ("i", F.ICON)]),
    ("<//d>; rel=preconnect, <//e>; rel=dns-prefetch", []),
    ('<a,b;c>; title="x, <no>; \\" y"; rel=next', [("a,b;c", F.LINK_HEADER)]),
    ("<a>; rel=next; rel=stylesheet", [("a", F.LINK_HEADER)]),
    ("<a>; rel=next; anchor=\"/other\", <b>", [("b", F.LINK_HEADER)]),
    ('<a>; rel=preload; imagesrcset="x 1x, y 2x"', [("a", F.PRELOAD), ("x", F.SRCSET), ("y", F.SRCSET)]),
    ("<é>".encode().decode("latin-1"), [("é", F.LINK_HEADER)]),
    ('<a>; title="never closed, <b>', [("a", F.LINK_HEADER)]),
    ("a; rel=next", []),
    ("<a", []),
    ("", []),
]  # fmt: skip


@pytest.mark.parametrize(("value", "links"), LINKS)
def test_link(value, links):
    assert found(("link", value)) == links


@pytest.mark.parametrize(("value", "target"), [("0; url=/r", "/r"), ("5;URL='a b'", "a b"), ("30", ""), ("", "")])
def test_refresh(value, target):
    assert found(("refresh", value)) == [(target, F.REFRESH_HEADER)]


def test_all_of_them_in_order():
    headers = [("content-type", "<no>"), ("link", "<a>"), ("refresh", "0;url=b"), ("link", "<c>")]
    assert [url for url, _ in found(*headers)] == ["a", "b", "c"]


@given(st.text("<>;,\"\\= 'relx", max_size=60))
def test_never_raises(value):
    found(("link", value), ("refresh", value))
    header_directives([("x-robots-tag", value)])


@pytest.mark.parametrize("piece", ["<", "<a>;", '<a>;x="', '\\"', '<a>;x="\\', "<a>,", ";", '"', "<a> ", "<a>;x=", " "])
def test_time_is_linear(piece):
    started = time.process_time()
    found(("link", piece * 500_000), ("refresh", piece * 500_000))
    assert time.process_time() - started < 1


DIRECTIVES = [
    (["noarchive"], {"noarchive"}),
    (["NoIndex, NoFollow", "noarchive"], {"noindex", "nofollow", "noarchive"}),
    (["none"], {"none", "noindex", "nofollow"}),
    (["otherbot: noarchive"], set()),
    (["Muniment: noarchive, nofollow"], {"noarchive", "nofollow"}),
    (["unavailable_after: 25 Jun 2010 15:00:00 PST"], {"unavailable_after", "25", "jun", "2010", "15", "00", "pst"}),
    ([], set()),
]


@pytest.mark.parametrize(("values", "words"), DIRECTIVES)
def test_x_robots_tag(values, words):
    assert directives_for("muniment", header_directives([("x-robots-tag", value) for value in values])) == words
