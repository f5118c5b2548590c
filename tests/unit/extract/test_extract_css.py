"""What a style sheet refers to."""

from __future__ import annotations

import pytest

from muniment.extract.links import extract
from muniment.model.link import FoundAs as F

CASES = [
    ("a{b:url(x)}", ["x"]),
    ("a{b:url('x')}", ["x"]),
    ('a{b:url("x y")}', ["x y"]),
    ("a{b:URL(  x\n )}", ["x"]),
    ("a{b:uRl( 'x' )}", ["x"]),
    ("a{b:url(x),url(y)}", ["x", "y"]),
    ("a{b:url(a\\)b)}", ["a)b"]),
    ("a{b:url('a\\'b')}", ["a'b"]),
    ("a{b:url(\\41 b)}", ["Ab"]),
    ("a{b:url(\\000041b)}", ["Ab"]),
    ("a{b:url('a\\\nb')}", ["ab"]),
    ("a{b:url(\\0)}", ["\ufffd"]),
    ("a{b:url(\\d800 x)}", ["\ufffdx"]),
    ("a{b:\\75rl(x)}", ["x"]),
    ("a{b:u\\72 l(x)}", ["x"]),
    ("a{b:url('x' crossorigin(anonymous)) url(y)}", ["x", "y"]),
    ("a{b:url(x", ["x"]),
    ("a{b:url('x", ["x"]),
    ("a{b:url()}", []),
    ("a{b:url('')}", []),
    ("a{b:url(#f)}", []),
    ("a{b:url(data:image/png;base64,AA==)}", []),
    ("a{b:curl(x) my-url(x) _url(x)}", []),
    ("a{b:url(x y) url(z)}", ["z"]),
    ("a{b:url(x'y) url(z)}", ["z"]),
    ("a{b:url('x\ny') url(z)}", ["z"]),
    ("/* url(no) */ url(x)", ["x"]),
    ("/* url(no) **/ url(x) /* url(no)", ["x"]),
    ("/**/url(x)/***/", ["x"]),
    ("'url(no)' \"url(no)\" url(x)", ["x"]),
    ("'a\\'url(no)' url(x)", ["x"]),
    ("a\\'b url(x) '", ["x"]),
    ("'unclosed\nurl(x)", ["x"]),
    ("@import 'x'; @import \"y\" screen;", [("x",), ("y",)]),
    ("@IMPORT url(x) layer(a);@import/**/url( 'y' );", [("x",), ("y",)]),
    ("@import'x';", [("x",)]),
    ("@import;@import x; url(y)", ["y"]),
    ("@important 'x'", []),
    ("@charset 'utf-8'; @namespace url(http://n.example/); @NAMESPACE s url(no); url(x)", ["x"]),
    ("@media print { @import 'x'; a{b:url(y)} }", [("x",), "y"]),
    ("@font-face{src:url(a.woff2) format('woff2'),url(b.woff)}", ["a.woff2", "b.woff"]),
    ("a{b:image-set(url(a) 1x, url(b) 2x)}", ["a", "b"]),
    ("a{b:image-set('a' 1x, \"b\" 2x)}", ["a", "b"]),
    ("a{b:-webkit-image-set( 'a' 1x ) 'no'} c{d:Image-SET('e')}", ["a", "e"]),
    ("a{b:image-set('a' type('image/avif'), url(b) 1x, 'c\\'d' calc(1x * (2)) , 'e')}", ["a", "b", "c'd", "e"]),
    ("a{b:image-set(linear-gradient(red, blue) 1x, /* 'no') */ 'a')} 'no' url(z)", ["a", "z"]),
    ("a{b:my-image-set('no') --image-set('no') image-set 'no'} c{d:image-set('a'", ["a"]),
    ("'image-set(' a{b:url(x)} 'no'", ["x"]),
    ("a{b:url(é)}", ["é"]),
    ("\ufeffurl(é)", ["é"]),
    ("", []),
    ("\\", []),
    ("url(\\", []),
]


def test_finds() -> None:
    wrong = []
    for sheet, links in CASES:
        expected = [(one[0], F.CSS_IMPORT) if isinstance(one, tuple) else (one, F.CSS_URL) for one in links]
        found = extract(sheet.encode(), "text/css", "http://a.example/").links
        wrong += [(sheet, found)] if found != expected else []
    assert wrong == []


@pytest.mark.parametrize("charset", ["latin1", '"iso-8859-1"', "windows-1252; x=y"])
def test_header_charset(charset: str) -> None:
    links = extract("url(é)".encode("latin-1"), f"text/css; charset={charset}", "http://a.example/").links
    assert links == [("é", F.CSS_URL)]


@pytest.mark.parametrize("charset", ["nonsense", "base64", "rot13", "idna", "utf-7", "punycode", "unicode_escape"])
def test_codecs_that_are_no_charsets_do_no_harm(charset: str) -> None:
    extract(b"url(\xff\\x)", f"text/css; charset={charset}", "http://a.example/")


def test_a_fault_does_not_change_the_charset_of_the_rest() -> None:
    sheet = b"p { background: url(\xe4.png) } /* \x81 */"
    assert extract(sheet, "text/css; charset=windows-1252", "http://a.example/").links == [("ä.png", F.CSS_URL)]
