"""Titles of documents of which only the start is read."""

from __future__ import annotations

import pytest

from muniment.extract.text import early_title, page_text

HTML = "text/html; charset=utf-8"


@pytest.mark.parametrize(
    ("start", "title"),
    [
        (b"<title>All of it</title><p>te", "All of it"),
        (b"<title></title>", ""),
        (b"<title>Not all of", None),
        (b"<script>'<title>no</title>'</script><p>the title comes later", None),
        (b"<svg><title>drawn</title></svg><title>real</title>", "real"),
        ("<title>\u00e4\u00f6</title>\u00fc".encode()[:-1], "\u00e4\u00f6"),
        (b"", None),
    ],
)
def test_a_title_counts_once_it_has_ended(start: bytes, title: str | None) -> None:
    assert early_title(start, HTML) == title
    if title is not None:
        assert page_text(start, HTML).title == title
