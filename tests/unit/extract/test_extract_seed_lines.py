"""What one line of a seed list says: URL, fields, priors; and what is wrong with it."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.extract.seed_lines import json_line, table_row, text_line
from muniment.model.seed import Prior, SeedLine

URL = "https://a.example/"
SHA1 = "0123456789abcdef0123456789abcdef01234567"


def encoded(**fields: object) -> bytes:
    return json.dumps({"url": URL, **fields}).encode()


@pytest.mark.parametrize(
    ("raw", "url"),
    [
        (b"https://a.example\n", URL),
        (b"  HTTPS://A.example:443/#part \r\n", URL),
        (b"http://a.example/x y@z", "http://a.example/x%20y@z"),
        ("https://münchen.example/ü".encode(), "https://xn--mnchen-3ya.example/%C3%BC"),
        (b"ftp://a.example/x#y", "ftp://a.example/x"),
        (b"mailto:a@a.example", "mailto:a@a.example"),
    ],
)
def test_a_line_is_a_url_of_any_scheme(raw, url):
    assert text_line(7, raw) == (SeedLine(7, url), "")


@pytest.mark.parametrize("raw", [b"", b"\n", b"   \t\r\n", b"# a comment", b"  #https://a.example/"])
def test_empty_lines_and_comments_say_nothing(raw):
    assert text_line(1, raw) == (None, "")


@pytest.mark.parametrize("read", [text_line, lambda number, raw: json_line(number, encoded(url=raw.decode()))])
def test_an_account_in_a_url_is_told_apart(read):
    line = SeedLine(7, "http://a.example/x%20y", account=("us er", "w:o"))
    assert read(7, b"http://us%20er:w%3Ao@a.example/x y") == (line, "")
    assert read(7, b"ftp://user:word@a.example/x@y") == (SeedLine(7, "ftp://a.example/x@y"), "")


def test_what_is_no_url_does_not_tell_its_password():
    assert "word" not in text_line(7, b"http://user:wo/word@a.example/")[1]
    assert "word" not in text_line(7, b"user:word@a.example/")[1]


def test_a_byte_order_mark_begins_a_file_only():
    assert text_line(1, b"\xef\xbb\xbf" + URL.encode())[0] == SeedLine(1, URL)
    assert json_line(1, b"\xef\xbb\xbf" + encoded())[0] == SeedLine(1, URL)
    line, wrong = text_line(2, b"\xef\xbb\xbf" + URL.encode())
    assert line is None
    assert wrong.endswith("is not a URL"), "what cannot be printed is never proposed"


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"a.example/x", "is not a URL; did you mean https://a.example/x?"),
        (b"//a.example/x", "is not a URL; did you mean https://a.example/x?"),
        (b"127.0.0.1:8080/x", "is not a URL; did you mean http://127.0.0.1:8080/x?"),
        (b"not a url", "is not a URL"),
        (b"http://", "is not a URL"),
        (b"http://a.example:99999/", "is not a URL"),
        (b"https://a.example/\xff", "not in UTF-8"),
    ],
)
def test_a_bad_line_says_why(raw, words):
    line, wrong = text_line(1, raw)
    assert line is None
    assert words in wrong


def test_a_long_bad_line_is_told_in_short():
    assert len(text_line(1, b"x" * 10_000)[1]) < 300


def test_fields_are_kept_as_texts():
    raw = b'{"url": "https://a.example/", "source": "sitemap", "depth": 1, "l": [1, {"a": 2.50}], "n": null, "t": true}'
    line, wrong = json_line(1, raw)
    assert wrong == ""
    assert line is not None
    assert line.meta_json == '{"source":"sitemap","depth":"1","l":"[1,{\\"a\\":2.50}]","n":"null","t":"true"}'


def test_what_is_compared_with_is_no_field():
    line, wrong = json_line(1, encoded(digest=SHA1.upper(), etag='"x"', last_modified="Sat", extra="y"))
    assert (line, wrong) == (SeedLine(1, URL, '{"extra":"y"}', Prior(SHA1, '"x"', "Sat")), "")


def test_a_wrong_digest_is_told_and_its_line_taken():
    line, wrong = json_line(1, encoded(digest="beef", etag="e"))
    assert line == SeedLine(1, URL, "", Prior(etag="e"))
    assert "its digest is not a SHA-1: beef" in wrong


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"{", "not a JSON object"),
        (b"[]", "not a JSON object"),
        (b'{"url": 5}', "not a JSON object with a text as url"),
        (b'{"href": "x"}', "no field url"),
        (b'{"url": "a.example"}', "did you mean"),
        (b'{"url": "http://a.example/", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nests too deep"),
        (b'{"url": "https://a.example/", "x": "\\ud800"}', "not a JSON object"),
        (b'{"url": "https://a.example/", "x": "\xff"}', "not a JSON object"),
    ],
)
def test_bad_json_says_why(raw, words):
    line, wrong = json_line(1, raw)
    assert line is None
    assert words in wrong


@given(st.binary(max_size=200))
def test_no_line_raises(raw):
    for parse in (text_line, json_line):
        line, wrong = parse(3, raw)
        assert line is None or line.number == 3
        assert isinstance(wrong, str)


def test_a_row_of_an_earlier_index_tells_what_it_captured():
    row = {
        "url": URL, "digest": SHA1, "etag": "e", "last_modified": "l", "meta_json": '{"a":"b"}', "status": 200,
        "error": "", "fetched_at": 1_700_000_000_123, "started_at": 1_700_000_000_123_456, "record_type": "response",
    }  # fmt: skip
    line, wrong = table_row(4, row)
    assert (line, wrong) == (SeedLine(4, URL, '{"a":"b"}', Prior(SHA1, "e", "l", 1_700_000_000_123_456)), "")


@pytest.mark.parametrize(
    ("changed", "prior"),
    [
        ({"error": "cut: x"}, Prior()),
        ({"status": 404}, Prior()),
        ({"record_type": "revisit"}, Prior(SHA1)),
        ({"started_at": None}, Prior(SHA1, captured_at=5_000)),
        ({"started_at": None, "fetched_at": None}, Prior(SHA1)),
        ({"digest": None}, Prior()),
    ],
)
def test_what_is_worth_comparing_with(changed, prior):
    row = {"url": URL, "digest": SHA1, "status": 200, "error": "", "fetched_at": 5, "started_at": 7, **changed}
    line, _ = table_row(1, row)
    assert line is not None
    assert line.prior == prior


@pytest.mark.parametrize("url", [None, "", 5])
def test_a_row_without_url_is_bad(url):
    assert table_row(1, {"url": url}) == (None, "no text in column url")


def test_null_is_nothing_that_is_known():
    assert json_line(1, encoded(digest=None, etag=None, last_modified=None)) == (SeedLine(1, URL), "")


@pytest.mark.parametrize(
    "at", [0, -1, 5.5, float("nan"), "2026", datetime.now(tz=UTC), True, 1_700_000_000_000_000_000]
)
def test_a_moment_that_no_record_can_name_is_not_known(at):
    line, wrong = table_row(1, {"url": URL, "etag": '"x"', "fetched_at": at})
    assert (line, wrong) == (SeedLine(1, URL, prior=Prior(etag='"x"')), "")
