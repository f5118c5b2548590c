"""Record headers: lines that are known from other records are read as if they were new."""

import pytest

from muniment.archive.warc.grammar import _parse_lines, parse_header, violations

LINES = [
    b"WARC-Type: response",
    b"WARC-Record-ID: <urn:uuid:0>",
    b"WARC-Date:2026-11-18T11:06:40Z\t ",
    b"WARC-Target-URI: http://a.example/\xc3\xa9",
    b"WARC-Warcinfo-ID: <urn:uuid:1>",
    b"Content-Type: application/http; msgtype=response",
    b"Content-Length: 5",
    b"WARC-Block-Digest: sha1:A",
    b"X-Empty:",
]
ODD = [
    b"WARC-Date: yesterday",
    b"WARC-Target-URI: no address",
    b"WARC-Concurrent-To: urn:uuid:2",
    b"Content-Length: +5",
    b"no colon",
    b"Nocolon",
    b": no name",
    b"Na me: value",
    b"Name : value",
    b"X-Half: a\nX-Line: b",
    b"X-Return: a\rb",
    b"X-Coded: \xff",
    b"\xff: a",
    b"",
    b"WARC-Type: request",
]


def read(lines):
    return parse_header(b"\r\n".join([b"WARC/1.1", *lines]))


def test_a_header_is_the_same_when_its_lines_are_known():
    for _ in range(2):
        header = read(LINES)
        strict = _parse_lines(b"WARC/1.1", LINES)
        assert (header.version, header.fields, header.values) == ("WARC/1.1", strict.fields, strict.values)
        assert header.get("warc-date") == "2026-11-18T11:06:40Z"
        assert violations(header) == violations(strict) == []


@pytest.mark.parametrize("line", ODD)
def test_an_odd_line_is_found_among_known_ones(line):
    read(LINES)
    for lines in ([*LINES, line], [line, *LINES]):
        for _ in range(2):
            header = read(lines)
            strict = _parse_lines(b"WARC/1.1", lines)
            assert (header.fields, header.bad_lines) == (strict.fields, strict.bad_lines)
            assert violations(header) == violations(strict) != []


def test_what_is_known_stays_little():
    for number in range(20_000):
        assert violations(read([*LINES[:3], b"WARC-Target-URI: http://a.example/%d" % number, *LINES[4:]])) == []
    from muniment.archive.warc import grammar

    assert len(grammar._lines) <= grammar._MOST_LINES


def test_a_long_name_is_a_name_and_is_not_kept():
    from muniment.archive.warc import grammar

    line = b"X-" + b"a" * 100_000 + b": b"
    header = read([*LINES, line])
    assert violations(header) == []
    assert header.fields[-1] == (line[:-3].lower().decode(), "b")
    assert max(map(len, grammar._lines)) <= grammar._MOST_LINE
