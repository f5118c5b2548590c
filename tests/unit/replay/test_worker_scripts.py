"""What the worker mends in texts, run by Node.js: modules, import maps, links of pages in older encodings."""

from __future__ import annotations

import json
import subprocess
from importlib.resources import files

import pytest

WORKER = files("muniment.replay") / "static" / "worker"
PARTS = ("texts", "documents", "module_scope", "modules", "import_maps", "playlists", "workers", "mended")
NAMES = ["window", "globalThis", "self", "document", "location", "top", "parent", "frames", "opener"]


def run(script: str, given: object) -> object:
    """The value of an asynchronous function's body, which sees what was given as `given`."""
    parts = "\n".join((WORKER / f"{name}.js").read_text() for name in PARTS)
    body = f"const MUNIMENT = {{}};\n{parts}\nconst given = {json.dumps(given)};\n"
    body += f"(async () => {{ {script} }})().then((value) => console.log(JSON.stringify(value)));"
    done = subprocess.run(["node", "-"], input=body, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


DECLARED = {
    "var top = 1": "top",
    "const {top, left} = x": "top",
    "const {a: top} = x": "top",
    "const {top: a} = x": "",
    "const [a, [self]] = x": "self",
    "let{top:a,parent=5,...frames}=q": "frames parent",
    "let a = 1, top = 2;": "top",
    "var a=x=>x,top=2": "top",
    "for (var top of x) {}": "top",
    "for (let top of x) {}": "",
    "{ var parent = 1 }": "parent",
    "{ let parent = 1 }": "",
    "if(x){var top=2}else{var self=3}": "self top",
    "function f() { var top; let self }": "",
    "const f = () => { var top = 1 }": "",
    "const f = (top) => { return top }": "",
    "x = {top: 1, m() { var self }}": "",
    "class A { m() { var top } static { var self } get x() { var parent } }": "",
    "function top() {}": "top",
    "async function* top() {}": "top",
    "export function self() {}": "self",
    "export default class top {}": "top",
    "export const document = 1": "document",
    "import {a as top} from 'x'": "top",
    "import {top as a} from 'x'": "top",  # more than is needed: a name in doubt counts
    "import top from 'x'": "top",
    "import * as parent from'x'": "parent",
    "import('x').then(top)": "",
    "import 'x'; top()": "",
    "try {} catch (top) { var self }": "self",
    "x = `${function () { var top }}a${1}`; var self = 1": "self",
    "var r = /[/]{top/; var self": "self",
    "if (a) /re}/.test(b); var self": "self",
    "a = b / c / d; var self": "self",
    "a={top};b={self}": "",
    "'var top'; // var self\n/* var parent */": "",
}


def test_names_that_a_module_declares() -> None:
    script = "return given.texts.map((text) => [...MUNIMENT.moduleScope(text, given.names).declared].sort().join(' '));"
    found = run(script, {"texts": list(DECLARED), "names": NAMES})
    assert isinstance(found, list)
    assert dict(zip(DECLARED, found, strict=True)) == DECLARED


def test_a_module_keeps_its_own_names_and_has_its_own_address() -> None:
    declaration = 'import { window, self, top } from "/at/2026esm_/__wb_module_decl.js";\n'
    text = (
        declaration + "const top = import.meta.url + 'import.meta.url' + `${import . meta . url}`; // import.meta.url"
    )
    made = run("return MUNIMENT.modules(given, '\"http://x/m.js\"', (text) => text.length);", text)
    assert made == (
        'import { window, self } from "/at/2026esm_/__wb_module_decl.js";\n'
        'const top = "http://x/m.js" + \'import.meta.url\' + `${"http://x/m.js"}`; // import.meta.url'
    )
    page = f"<script type=module>{declaration}var self</script><script type=module>{declaration}a()</script>"
    made = run("return MUNIMENT.modules(given, '\"\"', (text, from) => text.indexOf('</script', from));", page)
    assert made == page.replace("window, self, top", "window, top", 1)


def test_relative_addresses_of_import_maps_name_what_imports_name() -> None:
    page = (
        '<base href="/at/2026mp_/http://x/b/"><script type="importmap">{"imports": {"a": "./a.js", "./c.js": "/c.js", '
        '"d": "/at/2026esm_/http://x/d.js"}, "scopes": {"./s/": {"a": "../a2.js"}}, "integrity": {}}</script>'
    )
    made = run("return MUNIMENT.importMaps(given, { url: 'http://x/', time: '2026' });", page)
    assert isinstance(made, str)
    assert json.loads(made.partition('importmap">')[2].partition("</script")[0]) == {
        "integrity": {},
        "imports": {
            "a": "/at/2026esm_/http://x/b/a.js",
            "/at/2026esm_/http://x/b/c.js": "/at/2026esm_/http://x/c.js",
            "d": "/at/2026esm_/http://x/d.js",
        },
        "scopes": {"/at/2026esm_/http://x/b/s/": {"a": "/at/2026esm_/http://x/a2.js"}},
    }
    for broken in ("<script type=importmap>{</script>", "no importmap"):
        assert run("return MUNIMENT.importMaps(given, { url: 'http://x/', time: '2026' });", broken) == broken


@pytest.mark.parametrize(
    ("kind", "page", "expected"),
    [
        ("text/html; charset=gbk", "<a href='/中?q=中&amp;b'>中</a>", "<a href='/%E4%B8%AD?q=%D6%D0&amp;b'>中</a>"),
        ("text/html; a=b; charset=\"GBK\"", "<img SRC=/中(1):a,b.png>", "<img SRC=/%E4%B8%AD(1):a,b.png>"),
        ("text/html", "<meta charset=gbk><form action=\"?中\">", "<meta charset=gbk><form action=\"?%D6%D0\">"),
        ("text/html; charset=utf-8", "<a href='/中?中'>", "<a href='/中?中'>"),
        ("text/html; charset=nonsense", "<a href='/中'>", "<a href='/中'>"),
        ("text/css; charset=gbk", "<a href='/中'>", "<a href='/中'>"),
    ],
)  # fmt: skip
def test_links_of_pages_in_older_encodings(kind: str, page: str, expected: str) -> None:
    encoding = "gbk" if "gbk" in (kind + page).lower() else "utf-8"
    script = (
        "const made = await MUNIMENT.documents(new Response(Uint8Array.from(given.bytes), "
        "{ headers: { 'content-type': given.kind } })); return [...new Uint8Array(await made.arrayBuffer())];"
    )
    made = run(script, {"bytes": list(page.encode(encoding)), "kind": kind})
    assert isinstance(made, list)
    assert bytes(made).decode(encoding) == expected


def test_xhtml_and_utf_16_are_read_as_html_in_utf_8() -> None:
    script = (
        "const made = await MUNIMENT.documents(new Response(Uint8Array.from(given.bytes), { headers: { 'content-type': "
        "given.kind } })); return [made.headers.get('content-type'), await made.text()];"
    )
    for kind, text, encoding in (
        ("application/xhtml+xml", "<p>é</p>", "utf-8"),
        ("text/html; charset=utf-16le", "é", "utf-16le"),
    ):
        given = {"bytes": list(text.encode(encoding)), "kind": kind}
        assert run(script, given) == ["text/html; charset=utf-8", text]


def test_playlists_keep_all_that_they_offer() -> None:
    script = (
        "const made = new Response(given, { headers: { 'content-type': 'application/x-mpegURL' } });"
        "return [MUNIMENT.playlists.isOne(made), await (await MUNIMENT.playlists.mended(made, '2026')).text()];"
    )
    lines = [
        '#EXT-X-MEDIA:TYPE=AUDIO,URI="https://a.test/s.m3u8"', "#EXT-X-STREAM-INF:BANDWIDTH=9000000", "high.m3u8",
        "#EXT-X-STREAM-INF:BANDWIDTH=9", "https://b.test/low.m3u8?x=https://c.test/",
    ]  # fmt: skip
    text = "\n".join(lines)
    expected = text.replace('"https://a', '"/at/2026mp_/https://a').replace("\nhttps://b", "\n/at/2026mp_/https://b")
    assert run(script, text) == [True, expected]


def test_layouts_of_shaders_are_left_as_they_are() -> None:
    checked = "((self.__WB_check_loc && self.__WB_check_loc(location, arguments)) || {}).maybeHref = "
    script = (
        "const made = new Response(given, { headers: { 'content-type': 'text/javascript' } });"
        "return (await MUNIMENT.mended(made, { url: 'http://x/', destination: 'script' })).text();"
    )
    texts = {
        f"a=`layout(location = {checked}${{n}}) in vec2 a`": "a=`layout(location = ${n}) in vec2 a`",
        f"a='layout (location={checked}'+n": "a='layout (location='+n",
        f"location = {checked}'/next'": f"location = {checked}'/next'",
    }
    assert {text: run(script, text) for text in texts} == texts
