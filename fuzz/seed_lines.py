"""Lines of a seed list: never raise; a line is a URL in normal form, or nothing, or wrong with one line of reasons."""

from __future__ import annotations

import json

from muniment.extract.seed_lines import json_line, text_line
from muniment.model.url import normalise_any

SEEDS = [
    b"http://a.example/b?c#d",
    b"# a comment",
    b"\xef\xbb\xbfa.example/",
    b'{"url": "http://a.example/", "digest": "sha1:ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "etag": "\\"x\\"", "n": 1}',
    b'{"url": "http://a.example/", "digest": "00", "last_modified": null, "deep": {"a": [1, "\\ud800"]}}',
]


def check(data: bytes) -> None:
    """Read it as text and as JSON, as the first line and as a later one."""
    raw = data.replace(b"\n", b"")
    for number in (1, 2):
        for parse in (text_line, json_line):
            line, wrong = parse(number, raw)
            assert "\n" not in wrong, wrong
            if line is None:
                continue
            assert line.number == number
            assert normalise_any(line.url) == line.url, line.url
            if line.meta_json:
                assert all(isinstance(value, str) for value in json.loads(line.meta_json).values())
