"""What scripts name word for word, and what only looks as if they did."""

from __future__ import annotations

import time

import pytest

from muniment.extract.links import extract
from muniment.extract.scripts import ImportMap, click_targets, module_links
from muniment.model.link import FoundAs as F

URL = "http://site.example/js/app.js"

MODULES = [
    ('import a from "./a.js";', ["./a.js"]),
    ("import b, {c as d, e} from '../b.js'\nimport * as f from \"/f.js\"", ["../b.js", "/f.js"]),
    ('import"./g.js";import{h}from"./h.js";import i,*as j from"./j.js";', ["./g.js", "./h.js", "./j.js"]),
    ('import {"x-y" as k} from "./k.js"; import {\n  aa,\n  bb, // c\n} from\n  "./l.js"', ["./k.js", "./l.js"]),
    ('import /* c */ m /* d */ from /* e */ "./m.js" // import no from "./no.js"', ["./m.js"]),
    ("export * from './n.js'; export * as o from './o.js'; export {p, q as r} from './p.js'; export {s}",
     ["./n.js", "./o.js", "./p.js"]),
    ("import t from './t.json' with {type: 'json'}; import from from './from.js'", ["./t.json", "./from.js"]),
    ("import 'https://o.example/u.js'; import v from 'http://o.example/v.js'",
     ["https://o.example/u.js", "http://o.example/v.js"]),
    ("const s = /[\"'`]/; import w from './w.js'; x = y / z; import aa from './aa.js'", ["./w.js", "./aa.js"]),
    ("return /'/.test(a); import b from './b.js'", ["./b.js"]),
    ("/* import a from './no.js' */ const s = \"import b from './no.js'\", t = `import c from './no.js'`;", []),
    ("'it\\'s import a from \"./no.js\"'; import b from './b.js'", ["./b.js"]),
    ("import('./no.js'); import.meta.url; a.import('./no.js'); importx from './no.js'; $import './no.js'", []),
    ("export const a = './no.js'; export default from_('./no.js'); export function f() { return './no.js' }", []),
    ("import bare from 'bare'; import {x} from 'dir/x.js'; import y from 'dir/deep/y.js'; import 'unknown'",
     ["/bare.js", "/d/x.js", "/deep/y.js"]),
    ("import a from './a.js", []),
    ("", []),
]  # fmt: skip
NAMES = ImportMap({"bare": "/bare.js", "dir/": "/d/", "dir/deep/": "/deep/"})


def imports(text: str) -> list[str]:
    found: list[str] = []
    module_links(text, lambda address, _: found.append(address), NAMES)
    return [address for address in found if address]


def test_modules_import() -> None:
    assert [(text, found) for text, links in MODULES if (found := imports(text)) != links] == []


@pytest.mark.parametrize(
    "kind", ["text/javascript", "application/javascript; charset=utf-8", "application/x-javascript"]
)
def test_a_module_of_its_own_is_read(kind: str) -> None:
    assert extract(b"import './a.js';export*from'./b.js'", kind, URL).links == [
        ("./a.js", F.IMPORT),
        ("./b.js", F.IMPORT),
    ]
    assert extract(b"import './a.js'", "text/plain", URL, F.SCRIPT).links == []


CLICKS = [
    ("location.href='/a'", ["/a"]),
    ("window.location = \"b.html\";return false", ["b.html"]),
    ("top.location.replace('c')", ["c"]),
    ("event.stopPropagation(); self.location.assign( 'd?x=1&y' )", ["d?x=1&y"]),
    ("window.open('e.html','w','width=3')", ["e.html"]),
    ("MM_openBrWindow('f.htm','','x')", ["f.htm"]),
    ("javascript:void(document.location.href=%27g%27)", ["g"]),
    ("location.href='http:\\/\\/o.example\\/h'", ["http://o.example/h"]),
    ("location='i'+n", []),
    ("location.href==='j'", []),
    ("a.location='k'; mylocation='l'; reopen('m')", []),
    ("if(confirm('sure?'))location='/n'", []),
    ("location='o" + "x" * 20_000 + "'", []),
    ("javascript:history.back()", []),
]  # fmt: skip


def test_clicks_go() -> None:
    assert [(text, found) for text, links in CLICKS if (found := [*click_targets(text)]) != links] == []


_PIECES = [
    "import ", "import{", "import/*", 'import"', "export{", "export*", '"', "'", "`", "/", "\\", "/*", "*/",
    "import a,", "import a from", "import * as ", "[", "=/[", "=/", "//", "import{a,", ' from"', "return /", "${`",
    "import\n", "import{a}from", "import//\n", '"\\', "import/**/", "=/[\\",
]  # fmt: skip


@pytest.mark.parametrize("piece", _PIECES)
def test_time_is_linear(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    started = time.process_time()
    for head in ("", "import ", "export ", "a=/"):
        imports(head + text)
    assert time.process_time() - started < 4


@pytest.mark.parametrize("piece", ["location=", "location='", "open('", "window.", "\\'", "open(  "])
def test_time_of_clicks_is_linear(piece: str) -> None:
    started = time.process_time()
    for _ in range(50):
        assert len([*click_targets(piece * (19_000 // len(piece)))]) <= 1
    assert time.process_time() - started < 4
