"""Conditional requests: what may be sent, and which answers are what an earlier capture was."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.exchanges import MemoryBody, chunk, exchange

from muniment.http.conditions import conditions, is_unchanged
from muniment.model.failure import Failure
from muniment.model.seed import Prior

BODY = b"<p>words</p>"
DIGEST = hashlib.sha1(BODY).hexdigest()
DATE = "Wed, 21 Oct 2015 07:28:00 GMT"
NOT_MODIFIED = {"body": b"", "status_line": "HTTP/1.1 304 Not Modified"}


@pytest.mark.parametrize(
    "etag", ['"a"', 'W/"a"', '""', '"a", "b"', '"a",W/"b" ,"c"', '"a b"', '"a--gzip"', '"\xfc"', '"' + "x" * 998 + '"']
)
def test_entity_tags_are_sent_as_they_came(etag):
    assert conditions(Prior(etag=etag)) == (("If-None-Match", etag),)


@pytest.mark.parametrize(
    "etag",
    ["", "*", '"a", *', "a", 'w/"a"', '"a', 'a"', '"a""b"', '"a"b"', '"a",', '"a"\r\nX: y', '"a\r\nX: y"', '"a\n"',
     '"a\0"', '"\N{SNOWMAN}"', '"' + "x" * 999 + '"', '"a"\n'],
)  # fmt: skip
def test_what_is_no_entity_tag_is_not_sent(etag):
    assert conditions(Prior(etag=etag)) == ()


def test_a_date_is_sent_as_it_came_and_beside_a_tag():
    assert conditions(Prior(last_modified=DATE)) == (("If-Modified-Since", DATE),)
    assert [name for name, _ in conditions(Prior(etag='"a"', last_modified=DATE))] == [
        "If-None-Match",
        "If-Modified-Since",
    ]


@pytest.mark.parametrize(
    "date",
    ["", "0", "yesterday", "2015-10-21T07:28:00Z", "Wed, 21 Oct 2015 07:28:00", "Wed, 21 Oct 2015 07:28:00 +0000",
     DATE + "\r\nX: y", DATE + "\n", "\u0668" + DATE],
)  # fmt: skip
def test_what_is_no_date_is_not_sent(date):
    assert conditions(Prior(last_modified=date)) == ()


@given(st.text(), st.text())
def test_no_value_begins_another_header(etag, date):
    for _, value in conditions(Prior(etag=f'"{etag}"', last_modified=date)):
        assert not {"\r", "\n", "\0"} & set(value)
        value.encode("latin-1")


def test_a_304_counts_only_when_a_condition_went_along():
    answer = exchange(**NOT_MODIFIED)
    prior = Prior(digest=DIGEST, etag='"a"')
    assert is_unchanged(prior, answer, asked=True)
    assert not is_unchanged(prior, answer, asked=False)
    assert not is_unchanged(Prior(digest=DIGEST, etag="*"), answer, asked=True)


def test_a_payload_is_compared_without_its_transfer_coding():
    chunked = exchange(body=MemoryBody(chunk(BODY, 5), BODY), headers=(("Transfer-Encoding", "chunked"),))
    for answer in (exchange(body=BODY), chunked):
        assert is_unchanged(Prior(digest=DIGEST), answer, asked=True)
        assert not is_unchanged(Prior(digest="0" * 40), answer, asked=True)
        assert not is_unchanged(Prior(etag='"a"'), answer, asked=True)


def test_any_status_may_be_unchanged():
    assert is_unchanged(Prior(digest=DIGEST), exchange(body=BODY, status_line="HTTP/1.1 404 Not Found"), asked=False)


def test_a_cut_body_is_never_unchanged():
    cut = exchange(body=BODY, truncated="disconnect", failure=Failure("cut", "early"))
    assert not is_unchanged(Prior(digest=DIGEST), cut, asked=False)


def test_an_empty_body_has_no_digest_to_match():
    assert not is_unchanged(Prior(digest=hashlib.sha1(b"").hexdigest()), exchange(body=b""), asked=False)
