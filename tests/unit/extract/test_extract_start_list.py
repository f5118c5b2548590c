"""A list of start URLs: each line that is not empty, of HTTP where it names no scheme."""

from __future__ import annotations

from muniment.extract.links import extract
from muniment.model.link import FoundAs


def test_each_line_is_a_start_url() -> None:
    text = "\ufeffhttp://a.example/\r\n\n  b.example/x y \nhttps://c.example/?q=<a href=d>\nhttp://a.example/\n"
    found = extract(text.encode(), "text/html", "http://lists.example/l", FoundAs.START_LIST)
    assert found.links == [
        ("http://a.example/", FoundAs.START_LINE),
        ("http://b.example/x y", FoundAs.START_LINE),
        ("https://c.example/?q=<a href=d>", FoundAs.START_LINE),
    ]
    assert found.anchors == []
