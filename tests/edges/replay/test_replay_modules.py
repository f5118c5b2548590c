"""Modules go out as they are, but for what they import by an absolute address."""

from __future__ import annotations

import time

import pytest

from muniment.http.head import Head
from muniment.replay.catalog import Entry
from muniment.replay.modules import asks_for_module, module_text, with_inline_modules
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
    for tag in (
        b"<script " * 1_000_000,
        b'<script type="module">' * 300_000,
        b'<script type="module">/</script>' * 200_000,
    ):
        assert b"".join(with_inline_modules(ENTRY, iter([tag]))) == tag
    assert time.process_time() - begun < 10


MODULE, MAP = b'<script type="module">', b'<script type="importmap">'
OURS = AT + b"https://x.test/b.js"


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (MODULE + b'import "/b.js"</script>x', MODULE + b'import "' + OURS + b'"</script>x'),
        (b"<SCRIPT TYPE=Module>import'/b.js'</SCRIPT>", b"<SCRIPT TYPE=Module>import'" + OURS + b"'</SCRIPT>"),
        (MAP + b'{"a":"/b.js","c":"d"}</script>', MAP + b'{"a":"' + OURS + b'","c":"d"}</script>'),
        (MODULE + b'import "/b.js"', MODULE + b'import "/b.js"'),
        (b'<script>import "/b.js"</script><p type="module">', b'<script>import "/b.js"</script><p type="module">'),
    ],
)  # fmt: skip
def test_modules_in_a_page_import_what_is_archived(page: bytes, expected: bytes) -> None:
    assert b"".join(with_inline_modules(ENTRY, iter([page[:9], page[9:]]))) == expected


def test_a_large_page_goes_out_as_it_is() -> None:
    pieces = [b'<script type="module">import "/b.js"</script>', b" " * (8 << 20), b"end"]
    assert b"".join(with_inline_modules(ENTRY, iter(pieces))) == b"".join(pieces)
