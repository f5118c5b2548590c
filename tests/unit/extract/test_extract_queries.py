"""The query of a link is encoded in its page's charset, the path in UTF-8."""

from __future__ import annotations

import pytest

from muniment.extract.link_collector import cleaned
from muniment.extract.links import extract
from muniment.model.link import FoundAs as F
from muniment.model.url import resolve

URL = "http://site.example/"


def asked(markup, charset, content_type="text/html"):
    found = extract(markup if isinstance(markup, bytes) else markup.encode(charset), content_type, URL)
    hrefs = [*map(cleaned, found.anchors), *(href for href, _ in found.links)]
    return [str(resolve(URL, href)).removeprefix(URL) for href in hrefs]


# charset for the codec, label as pages write it, text, its query
CHARSETS = [
    ("gbk", "gb2312", "中文", "%D6%D0%CE%C4"),
    ("gbk", "GBK", "中文", "%D6%D0%CE%C4"),
    ("gb18030", "gb18030", "中文", "%D6%D0%CE%C4"),
    ("cp932", "shift_jis", "日本", "%93%FA%96{"),
    ("cp932", "x-sjis", "表", "%95\\"),
    ("cp932", "Windows-31J", "①", "%87@"),
    ("euc_jp", "euc-jp", "日本", "%C6%FC%CB%DC"),
    ("cp949", "euc-kr", "한국", "%C7%D1%B1%B9"),
    ("cp949", "ks_c_5601-1987", "똠", "%8Cc"),
    ("big5hkscs", "big5", "中", "%A4%A4"),
    ("cp1251", "windows-1251", "Привет", "%CF%F0%E8%E2%E5%F2"),
    ("cp1252", "iso-8859-1", "é€", "%E9%80"),
    ("cp1252", "latin1", "é", "%E9"),
    ("cp1254", "windows-1254", "ş", "%FE"),
    ("cp1254", "iso-8859-9", "ş", "%FE"),
    ("koi8-r", "koi8-r", "я", "%D1"),
    ("iso8859-2", "iso-8859-2", "ł", "%B3"),
    ("utf-8", "utf-8", "中", "%E4%B8%AD"),
]


@pytest.mark.parametrize(
    ("head", "header"),
    [
        ("", "; charset={}"),
        ("<meta charset={}>", ""),
        ("<meta http-equiv=content-type content='text/html; charset={}'>", ""),
    ],
    ids=["header", "meta", "meta http-equiv"],
)
def test_charset(head, header):
    wrong = []
    for codec, label, text, query in CHARSETS:
        start, content_type = head.format(label), f"text/html{header.format(label)}"
        path = resolve(URL, text).removeprefix(URL)
        found = asked(f"{start}<a href='/{text}?q={text}&r=1#{text}'>", codec, content_type)
        found += asked(f"{start}<form action='/f?{text}'><img src='?{text}'>", codec, content_type)
        if found != [f"{path}?q={query}&r=1", f"f?{query}", f"?{query}"]:
            wrong.append((codec, label, text, found))
    assert wrong == []


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16"])
def test_a_mark_at_the_beginning_is_stronger_than_the_header(codec):
    found = asked("<a href='/é?é'>", codec, "text/html; charset=shift_jis")
    assert found == ["%C3%A9?%C3%A9"]


def test_the_header_is_stronger_than_the_page():
    assert asked("<meta charset=utf-8><a href='?é'>", "cp1252", "text/html; charset=windows-1252") == ["?%E9"]


def test_characters_that_the_charset_lacks_become_references():
    assert asked(b"<meta charset=windows-1251><a href='?&#20013;&#233;x'>", "") == ["?%26%2320013%3B%26%23233%3Bx"]


@pytest.mark.parametrize("href", ["?\u00e9 \"<>'#\u00e9", " ?\n\u00e9 \"<>'#x "])
def test_other_characters_are_encoded_as_the_parser_does(href):
    markup = f'<meta charset=latin1><a href="{href.replace(chr(34), "&quot;")}">'
    assert asked(markup, "cp1252") == ["?%E9%20%22%3C%3E%27"]


def test_what_needs_no_charset_stays_as_written():
    markup = "<meta charset=latin1><a href='/é'><a href='?x'><a href='#?é'><a href='mailto:?é'>"
    assert extract(markup.encode("cp1252"), "text/html", URL).anchors == ["/é", "?x", "#?é", "mailto:?é"]


def test_style_sheets_are_utf8():
    markup = "<meta charset=latin1><p style='background:url(?é)'><style>@import '?é'</style><img src='?é'>"
    found = extract(markup.encode("cp1252"), "text/html", URL).links
    assert found == [("?é", F.CSS_URL), ("?é", F.CSS_IMPORT), ("?%E9", F.IMG)]


def test_a_page_cut_into_tokens_has_the_charset_of_its_header():
    markup = "".join(f"<b id={n}><p>" for n in range(60_000)) + "<a href='?é'>"
    assert extract(markup.encode("cp1252"), "text/html; charset=latin1", URL).anchors == ["?%E9"]
