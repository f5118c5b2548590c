"""Which reader a payload gets."""

from __future__ import annotations

import pytest

from muniment.extract.links import extract

HTML = b"<a href=x>"

READ = [
    (HTML, "text/html"),
    (HTML, " Text/HTML ;charset=x"),
    (HTML, "application/xhtml+xml"),
    (HTML, ""),
    (HTML, "application/octet-stream"),
    (HTML, "*/*"),
    (b"\xef\xbb\xbf \n<!DOCTYPE HTML><a href=x>", ""),
    (b"<?xml version='1.0'?>\n<html><a href=x>", ""),
    (b"<!-- c --><a href=x>", ""),
    (b"a{b:url(x)}", "text/css; charset=utf-8"),
    (b"a{b:url(x)}", "TEXT/CSS"),
]
UNREAD = [
    (HTML, "text/plain"),
    (HTML, "image/png"),
    (HTML, "application/json"),
    (b"", ""),
    (b"plain words <a href=x>", ""),
    (b"<abbr><a href=x>", ""),
    (b"\x89PNG<html><a href=x>", ""),
    (b"a{b:url(x)}", ""),
]


@pytest.mark.parametrize(("payload", "content_type"), READ)
def test_read(payload: bytes, content_type: str) -> None:
    found = extract(payload, content_type, "http://a.example/")
    assert [href for href, _ in found.links] + found.anchors == ["x"]
    assert found.base == "http://a.example/"


@pytest.mark.parametrize(("payload", "content_type"), UNREAD)
def test_unread(payload: bytes, content_type: str) -> None:
    found = extract(payload, content_type, "http://a.example/")
    assert (found.links, found.anchors) == ([], [])
