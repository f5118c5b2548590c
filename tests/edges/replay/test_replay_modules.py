"""Modules go out as they are, but for what they import by an absolute address."""

from __future__ import annotations

import time

import pytest

from muniment.http.head import Head
from muniment.replay.catalog import Entry
from muniment.replay.modules import asks_for_module, module_text
from muniment.replay.records import Message

ENTRY = Entry(
    url="https://x.test/js/app.js", at=1_600_000_000_000_000, status=200, kind="text/javascript", digest="",
    record_type="response", whole=True, page=False, redirect_to="", place=0, offset=0,
)  # fmt: skip
AT = b"/at/20200913122640esm_/"


def sent(text: bytes, status: int = 200) -> bytes | None:
    head = Head(b"", status, (("content-type", "text/javascript"),), "close", (), keep_alive=False)
    return module_text(ENTRY, Message(head, iter([text]), None))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'import{a}from"./b.js";a()', b'import{a}from"./b.js";a()'),
        (b"x();import a from '/b.js'", b"x();import a from '" + AT + b"https://x.test/b.js'"),
        (b'export * from "https://y.test/b.js"', b'export * from "' + AT + b'https://y.test/b.js"'),
        (b'import "//y.test/b.js"', b'import "//y.test/b.js"'),
        (b'import a from "http://[b/c"', b'import a from "http://[b/c"'),
        (b'export default 1; import("/b\xff.js")', b'export default 1; import("' + AT + b'https://x.test/b\xef\xbf\xbd.js")'),
    ],
)  # fmt: skip
def test_what_is_imported_by_an_absolute_address_is_archived(text: bytes, expected: bytes) -> None:
    assert sent(text) == expected


def test_other_scripts_are_for_the_rewriter() -> None:
    assert sent(b'var important = 1; window["export"] = 2; f("import x")') is None
    assert sent(b"export default 1", status=404) is None
    assert asks_for_module({"sec-fetch-dest": "script", "sec-fetch-mode": "cors"}, "js_")
    assert not asks_for_module({"sec-fetch-dest": "script", "sec-fetch-mode": "no-cors"}, "js_")
    assert asks_for_module({}, "esm_")


def test_what_is_hostile_takes_no_time() -> None:
    begun = time.process_time()
    for text in (b"\n" * 4_000_000, b"import" + b" " * 4_000_000, b"from " * 800_000, b'import"/' * 500_000):
        sent(b"export default 1;" + text)
    assert time.process_time() - begun < 10
