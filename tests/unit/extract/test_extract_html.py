"""What an HTML document refers to, case by case."""

from __future__ import annotations

import pytest
from tests.support.pages import anchors_of

from muniment.extract.links import extract
from muniment.model.link import FoundAs as F

URL = "http://site.example/dir/page.html"

CASES = [
    # plain elements
    ("<a href=one>", [("one", F.A)]),
    ("<A HREF='two'>x</A>", [("two", F.A)]),
    ('<a\nhref\n=\n"three">', [("three", F.A)]),
    ("<map><area href=ar></map>", [("ar", F.AREA)]),
    ("<img src=i>", [("i", F.IMG)]),
    ("<image src=i>", [("i", F.IMG)]),
    ("<script src=s.js></script>", [("s.js", F.SCRIPT)]),
    ("<iframe src=f></iframe>", [("f", F.IFRAME)]),
    ("<frameset><frame src=f1><frame src=f2></frameset>", [("f1", F.FRAME), ("f2", F.FRAME)]),
    ("<object data=o></object>", [("o", F.OBJECT)]),
    ("<embed src=e>", [("e", F.EMBED)]),
    ("<video src=v poster=p></video>", [("v", F.VIDEO), ("p", F.VIDEO)]),
    ("<audio src=au></audio>", [("au", F.AUDIO)]),
    ("<video><source src=s><track src=t></video>", [("s", F.SOURCE), ("t", F.TRACK)]),
    ("<input type=IMAGE src=i>", [("i", F.IMG)]),
    ("<input type=text src=i>", []),
    ("<q cite=c></q><a ping=p>", [("c", F.CITE)]),
    ("<blockquote cite=a><ins cite=b></ins><del cite=c></del></blockquote><cite cite=no>",
     [("a", F.CITE), ("b", F.CITE), ("c", F.CITE)]),
    ("<img src=i longdesc=d><iframe longdesc=e></iframe>", [("i", F.IMG), ("d", F.LONGDESC), ("e", F.LONGDESC)]),
    ("<frameset><frame src=f longdesc=d></frameset>", [("f", F.FRAME), ("d", F.LONGDESC)]),
    ("<svg><script href=a.js></script><script xlink:href=b.js></script></svg>",
     [("a.js", F.SCRIPT), ("b.js", F.SCRIPT)]),
    ("<div style='background:image-set(\"a\" 1x, \"b\" type(\"image/avif\"))'>", [("a", F.CSS_URL), ("b", F.CSS_URL)]),
    ("<style>p { background: -webkit-image-set('a' 1x) }</style>", [("a", F.CSS_URL)]),
    ("<bgsound src=b.mid><applet archive='a.jar, b.jar'><param name=Movie value=m.swf><param name=loop value=1>",
     [("b.mid", F.EMBED), ("a.jar", F.OBJECT), ("b.jar", F.OBJECT), ("m.swf", F.OBJECT)]),
    ("<iframe src=f srcdoc='<base href=/other/><img src=i><a href=l>'></iframe><img src=j>",
     [("f", F.IFRAME), ("i", F.IMG), ("l", F.A), ("j", F.IMG)]),
    # link rel
    ("<link rel=stylesheet href=s>", [("s", F.STYLESHEET)]),
    ("<link rel='alternate StyleSheet' href=s>", [("s", F.STYLESHEET)]),
    ("<link rel='SHORTCUT ICON' href=i>", [("i", F.ICON)]),
    ("<link rel=apple-touch-icon href=i>", [("i", F.ICON)]),
    ("<link rel=mask-icon href=i>", [("i", F.ICON)]),
    ("<link rel=preload href=p>", [("p", F.PRELOAD)]),
    ("<link rel=modulepreload href=p>", [("p", F.PRELOAD)]),
    ("<link rel=manifest href=m>", [("m", F.MANIFEST)]),
    ("<link rel=next href=n>", [("n", F.LINK)]),
    ("<link href=n>", [("n", F.LINK)]),
    ("<link rel=preload as=image imagesrcset='a 1x, b 2x'>", [("a", F.SRCSET), ("b", F.SRCSET)]),
    ("<link rel=dns-prefetch href=//d.example><link rel=preconnect href=//d.example>", []),
    # srcset
    ("<img srcset='a.png 1x,b.png 2x'>", [("a.png", F.SRCSET), ("b.png", F.SRCSET)]),
    ("<img srcset=' , a,b 100w , c, d'>", [("a,b", F.SRCSET), ("c", F.SRCSET), ("d", F.SRCSET)]),
    ("<img srcset='a calc(1, 2), b'>", [("a", F.SRCSET), ("b", F.SRCSET)]),
    ("<img srcset='data:image/png;base64,AA 1x, b 2x'>", [("b", F.SRCSET)]),
    ("<picture><source srcset='a 1x'><img src=b></picture>", [("a", F.SRCSET), ("b", F.IMG)]),
    # data-*
    ("<img src=a data-src=b data-original=c data-srcset='d 1x, e 2x'>",
     [("a", F.IMG), ("b", F.DATA_SRC), ("c", F.DATA_SRC), ("d", F.SRCSET_LIKE), ("e", F.SRCSET_LIKE)]),
    ("<iframe data-src=b></iframe><p data-src=c>", [("b", F.DATA_SRC)]),
    # on any element
    ("<div data-src=/a><span data-full-src='b.jpg?x=1'><a href=c data-poster=d.png><figure data-bgset='e 1x, f 2x'>",
     [("/a", F.DATA_SRC), ("b.jpg?x=1", F.DATA_SRC), ("c", F.A), ("d.png", F.DATA_SRC), ("e", F.SRCSET_LIKE),
      ("f", F.SRCSET_LIKE)]),
    ("<li data-src = '/a'><LI DATA-SRC='/b'><p data-responsive-srcset='c 300w,\n d 600w' data-thumb=t.webp>",
     [("/a", F.DATA_SRC), ("/b", F.DATA_SRC), ("c", F.SRCSET_LIKE), ("d", F.SRCSET_LIKE), ("t.webp", F.DATA_SRC)]),
    ("<div data-src='{{ url }}.png'><p data-image='It is. Or is it?'><p data-full=true><i data-large=1.5>", []),
    ("<section data-bg-src=\"url('a.png')\"><p data-srcset>text data-src='/no'</p>", [("a.png", F.CSS_URL)]),
    ("<img data-lazy-src=a data-lazy=b.png data-lazyload=/c data-hi-res-src=d.png data-flickity-lazyload=e.png>",
     [("a", F.DATA_SRC), ("b.png", F.DATA_SRC), ("/c", F.DATA_SRC), ("d.png", F.DATA_SRC), ("e.png", F.DATA_SRC)]),
    ("<source data-lazy-srcset='a 1x, b 2x'><video data-poster=p.jpg></video><audio data-src=s></audio>",
     [("a", F.SRCSET_LIKE), ("b", F.SRCSET_LIKE), ("p.jpg", F.DATA_SRC), ("s", F.DATA_SRC)]),
    ("<img src=i data-lazy=true data-image='{\"a.b\":1}' data-lazyload='[/]' data-other=a.png>", [("i", F.IMG)]),
    ("<div data-bg=a><p data-background-image=\"url('b')\"><i data-bg=c style='d:url(e)'>",
     [("a", F.DATA_SRC), ("b", F.CSS_URL), ("c", F.DATA_SRC), ("e", F.CSS_URL)]),
    # AMP
    ("<amp-img src=a srcset='b 1x, c 2x'></amp-img><amp-video src=v poster=p><source src=s></amp-video>",
     [("a", F.AMP), ("b", F.AMP), ("c", F.AMP), ("v", F.AMP), ("p", F.AMP), ("s", F.SOURCE)]),
    ("<amp-anim src=a></amp-anim><amp-audio src=b></amp-audio><amp-list src=c.json></amp-list><amp-iframe src=f>"
     "<amp-img placeholder src=i></amp-iframe><amp-story poster-portrait-src=p publisher-logo-src=l><amp-ad src=no>",
     [("a", F.AMP), ("b", F.AMP), ("c.json", F.AMP), ("f", F.IFRAME), ("i", F.AMP), ("p", F.AMP), ("l", F.AMP)]),
    # modules, import maps
    ("<script type=importmap>{\"imports\": {\"x\": \"/x.js\", \"lib/\": \"./lib/\"},"
     " \"scopes\": {\"/s/\": {\"x\": \"/y.js\"}}}</script>"
     "<script type=module>import x from 'x'; import {z} from \"lib/z.js\"; import './a.js'; import 'no';</script>",
     [("/x.js", F.IMPORT_MAP), ("/y.js", F.IMPORT_MAP), ("/x.js", F.IMPORT), ("./lib/z.js", F.IMPORT),
      ("./a.js", F.IMPORT)]),
    ("<script type=' MODULE '>export * from '../m.js'</script><script>import './no.js'</script>"
     "<script type=importmap>{\"imports\": [1]}</script>", [("../m.js", F.IMPORT)]),
    # clicks
    ("<table><tr onclick=\"location.href='/row/1'\"><td data-href=/cell>",
     [("/row/1", F.ONCLICK), ("/cell", F.DATA_HREF)]),
    ("<a href='#' onclick='window.open(&quot;p.html&quot;, 1); return false'>"
     "<b ONCLICK=\"document.location = 'q?a=1&amp;b'\">",
     [("p.html", F.ONCLICK), ("q?a=1&b", F.ONCLICK)]),
    ("<a href=\"javascript:window.open('a.html','w')\"><a href=' JavaScript:void(location=%22b%22)'>"
     "<a href='javascript:go()'>", [("a.html", F.ONCLICK), ("b", F.ONCLICK)]),
    ("<p onclick=\"location='x'+id\"><p onclick='location = url'><p onclick=\"if (confirm('?')) location='/delete'\">"
     "<p onclick=\"me.location='y'\"><p onclick=\"location.hash='z'\"><p data-href='#'>", []),
    ("<a data-href=/d href=/e><link rel=stylesheet data-href=s.css>",
     [("/d", F.DATA_HREF), ("/e", F.A), ("s.css", F.STYLESHEET)]),
    # what others are to show
    ("<meta property=og:image content=a><meta name=OG:URL content=b><meta property='og:video:secure_url' content=c>",
     [("a", F.OPEN_GRAPH), ("b", F.OPEN_GRAPH), ("c", F.OPEN_GRAPH)]),
    ("<meta name=twitter:image content=a><meta property=og:title content=no><meta property=og:image>",
     [("a", F.OPEN_GRAPH)]),
    ("<meta name=msapplication-TileImage content=t.png>", [("t.png", F.ICON)]),
    ("<script type=application/ld+json>{\"url\": \"/u\"}</script><script>{\"url\": \"/no\"}</script>",
     [("/u", F.JSON_LD)]),
    ("<script type='Application/LD+JSON'>{\"image\": [\"a\", {\"url\": \"b\"}]}</script>",
     [("a", F.JSON_LD), ("b", F.JSON_LD)]),
    ("<script type=application/ld+json>{</script><script type=application/json>{\"url\": \"/no\"}</script>", []),
    # forms
    ("<form action=f>", [("f", F.FORM)]),
    ("<form action=f method=' GeT '>", [("f", F.FORM)]),
    ("<form action=f method=POST><form action=g method=dialog>", []),
    ("<form action=''>", []),
    ("<form action=f><button formaction=b></button><input type=submit formaction=c></form>",
     [("f", F.FORM), ("b", F.FORM), ("c", F.FORM)]),
    ("<form action=f method=post><button formaction=b></button><button formaction=c formmethod=GET></button></form>",
     [("c", F.FORM)]),
    ("<form action=f><button formaction=b formmethod=post></button><input formaction=c formmethod=dialog></form>",
     [("f", F.FORM)]),
    # meta refresh
    ("<meta http-equiv=refresh content='0; url=r'>", [("r", F.META_REFRESH)]),
    ("<META HTTP-EQUIV=' Refresh ' CONTENT='5;URL=r'>", [("r", F.META_REFRESH)]),
    ("<meta http-equiv=refresh content=\"0; url = 'r s' x\">", [("r s", F.META_REFRESH)]),
    ("<meta http-equiv=refresh content='0;url=\"r'>", [("r", F.META_REFRESH)]),
    ("<meta http-equiv=refresh content=' 0.5 , r'>", [("r", F.META_REFRESH)]),
    ("<meta http-equiv=refresh content='0 http://o.example/'>", [("http://o.example/", F.META_REFRESH)]),
    ("<meta http-equiv=refresh content='url=r'>", [("r", F.META_REFRESH)]),
    ("<meta http-equiv=refresh content='30'>", []),
    ("<meta http-equiv=refresh content=' 30 ; '>", []),
    ("<meta http-equiv=refresh content='5x'>", []),
    ("<meta http-equiv=refresh>", []),
    ("<meta http-equiv=refresh content='0;url='>", []),
    ("<meta name=refresh content='0;url=r'>", []),
    # styles and backgrounds
    ("<style>@import 'i.css'; b{background:url(u)}</style>", [("i.css", F.CSS_IMPORT), ("u", F.CSS_URL)]),
    ("<a href=1><p style='background:URL( \"u\" )'><a href=2>", [("1", F.A), ("u", F.CSS_URL), ("2", F.A)]),
    ("<a href=x style='background:url(u)'>", [("x", F.A), ("u", F.CSS_URL)]),
    ("<a href=x style='color:red'>", [("x", F.A)]),
    ("<body background=b><table background=t><tr><td background=d>",
     [("b", F.BACKGROUND), ("t", F.BACKGROUND), ("d", F.BACKGROUND)]),
    ("<body style='background:url(u)'><svg><feImage href=f /></svg><form action=g><a href=x>",
     [("u", F.CSS_URL), ("f", F.IMG), ("g", F.FORM), ("x", F.A)]),
    # svg
    ("<svg><image xlink:href=a /><image href=b /><use href='c#d'/><use xlink:href='#e'/></svg>",
     [("a", F.IMG), ("b", F.IMG), ("c#d", F.IMG)]),
    ("<svg><feImage href=f /><a xlink:href=g /></svg>", [("f", F.IMG), ("g", F.A)]),
    ("<svg><rect fill=\"url('p.svg#a')\" stroke=url(q.svg) mask='url(#m)'/>"
     "<g filter=\"url(&quot;f.svg#b&quot;)\" clip-path=none><path marker-end='url( e.svg#c )'/></svg>",
     [("p.svg#a", F.CSS_URL), ("q.svg", F.CSS_URL), ("f.svg#b", F.CSS_URL), ("e.svg#c", F.CSS_URL)]),
    # what parsers hide
    ("<noscript><img src=n></noscript>", [("n", F.IMG)]),
    ("<head><noscript><link rel=stylesheet href=n></noscript>", [("n", F.STYLESHEET)]),
    ("<a href=1><noframes><a href=n></noframes><a href=2>", [("1", F.A), ("n", F.A), ("2", F.A)]),
    ("<frameset><frame src=f><noframes><body><a href=n></body></noframes></frameset>", [("f", F.FRAME), ("n", F.A)]),
    ("<template><img src=t><template><a href=u></template></template>", [("t", F.IMG), ("u", F.A)]),
    ("<div><template shadowrootmode=open><img src=s></template></div>", [("s", F.IMG)]),
    ("<!-- <a href=no> --><textarea><a href=no></textarea><title><a href=no></title>", []),
    ("<script>'<a href=no>'</script><iframe><a href=no></iframe>", []),
    # hrefs
    ("<a href='a?x=1&amp;y=2&#38;z'>", [("a?x=1&y=2&z", F.A)]),
    ("<a href=' \t\n a b \r\n '>", [("a b", F.A)]),
    ("<a href='a\nb\tc\rd'>", [("abcd", F.A)]),
    ("<a href='\x01a\x1f'>", [("a", F.A)]),
    ("<a href='é ü'>", [("é ü", F.A)]),
    ("<a href='\u00a0x'>", [("\u00a0x", F.A)]),
    ("<a href='a\0b'>", [("a\ufffdb", F.A)]),
    ("<a href=''><a href=' '><a href><a href='#'><a href=' #x'>", []),
    ("<a href='javascript:x'><a href=' JavaScript:x'><a href='java\nscript:x'><a href='\x02javascript:x'>", []),
    ("<a href=mailto:a><a href=TEL:1><a href=about:blank><a href=blob:x><a href=data:,x>", []),
    ("<a href=ftp:x><a href=data.html><a href=about>", [("ftp:x", F.A), ("data.html", F.A), ("about", F.A)]),
    # once each, per way
    ("<a href=x><a href=x><img src=x><img src=x><a href=x>", [("x", F.A), ("x", F.IMG)]),
    # broken markup
    ("<a href=x<b href=y>", [("x<b", F.A)]),
    ("<a href='x", []),
    ("<a href=x", []),
    ("<table><a href=x><tr><td><a href=y></table>", [("x", F.A), ("y", F.A)]),
    ("<a href=1 href=2>", [("1", F.A)]),
    ("<p/><a/href=x>", [("x", F.A)]),
    ("", []),
    ("\0\0\0", []),
    ("<", []),
]  # fmt: skip


def test_finds() -> None:
    wrong = []
    for markup, links in CASES:
        found = extract(markup.encode(), "text/html; charset=utf-8", URL)
        anchors = [href for href, found_as in links if found_as is F.A]
        if (found.links, anchors_of(found)) != ([link for link in links if link[1] is not F.A], anchors):
            wrong.append((markup, found.links, found.anchors))
    assert wrong == []


DIRECTIVES = [
    ("<meta name=ROBOTS content='NoIndex, NOFOLLOW'>", [("robots", "NoIndex, NOFOLLOW")]),
    (
        "<meta name=somebot content=none><meta name=robots content=noarchive>",
        [("somebot", "none"), ("robots", "noarchive")],
    ),
    ("<meta name=robots content='index, follow'><meta name=robots><meta content=nofollow>", []),
]


@pytest.mark.parametrize(("markup", "directives"), DIRECTIVES)
def test_directives(markup: str, directives: list[tuple[str, str]]) -> None:
    assert extract(markup.encode(), "text/html", URL).directives == directives


BASES = [
    ("<a href=x>", URL),
    ("<base href=/b/>", "http://site.example/b/"),
    ("<BASE target=x><base href=' //o.example/c '><base href=/second>", "http://o.example/c"),
    ("<base href=''>", URL),
    ("<base href='javascript:x'>", URL),
    ("<base href='data:x'>", URL),
    ("<base href='http://[bad'>", URL),
]


@pytest.mark.parametrize(("markup", "base"), BASES)
def test_base(markup: str, base: str) -> None:
    assert extract(markup.encode(), "text/html", URL).base == base


CHARSETS = [
    ("<a href=é>".encode(), "text/html; charset=utf-8"),
    ("<a href=é>".encode(), "text/html"),
    ("<a href=é>".encode(), "text/html; charset=no-such-thing"),
    ("<a href=é>".encode("latin-1"), 'text/html;CHARSET="iso-8859-1"'),
    ("<a href=é>".encode("latin-1"), "text/html"),
    (b"<meta charset=iso-8859-2><a href=\xe9>", "text/html"),
    ("\ufeff<a href=é>".encode(), "text/html; charset=iso-8859-1"),
    ("\ufeff<a href=é>".encode("utf-16-le"), "text/html"),
    ("\ufeff<a href=é>".encode("utf-16-be"), "text/html; charset=utf-8"),
    ("<a href=é>".encode("utf-16-le"), "text/html; charset=utf-16le"),
    ("<a href=é>".encode("utf-16-le"), "text/html; charset=Unicode"),
    ("<a href=é>".encode("utf-16-be"), "text/html; charset=UTF-16BE"),
]


@pytest.mark.parametrize(("payload", "content_type"), CHARSETS)
def test_charsets(payload: bytes, content_type: str) -> None:
    assert extract(payload, content_type, URL).anchors == ["é"]


def test_xhtml_empty_elements_do_not_swallow_what_follows() -> None:
    markup = (
        b'<html><head><script src="s"/><title/><style type="x"/></head><body><a href="a/"/><iframe src="f" /></body>'
    )
    found = extract(markup, "application/xhtml+xml", URL)
    assert (found.links, found.anchors) == ([("s", F.SCRIPT), ("f", F.IFRAME)], ["a/"])


def test_a_drawing_of_its_own_is_read_like_one_in_a_page() -> None:
    svg = (
        '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
        '<style>@import "s.css";</style><image href="i.png"/><use xlink:href="u.svg#x"/><a href="l.html"/></svg>'
    )
    found = extract(svg.encode(), "image/svg+xml", URL)
    assert found.links == [("s.css", F.CSS_IMPORT), ("i.png", F.IMG), ("u.svg#x", F.IMG)]
    assert found.anchors == ["l.html"]
