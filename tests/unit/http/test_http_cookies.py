"""Cookies: what a field means, who may set it, where it goes, and files that hold it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.errors import UsageError
from muniment.http.cookies import parse_set_cookie
from muniment.http.jar import Jar
from muniment.http.netscape import read_cookies, write_cookies

NOW_S = 1_795_000_000
NOW = NOW_S * 1_000_000
URL = "https://www.site.example/a/b?c=/d"


def said(field: str, url: str = URL, at: int = NOW):
    return parse_set_cookie(field, url, at)


def jar(*fields: str, url: str = URL) -> Jar:
    made = Jar()
    for number, field in enumerate(fields):
        cookie = said(field, url, NOW + number)
        if cookie:
            made.keep(cookie)
    return made


@pytest.mark.parametrize(
    ("field", "name", "value"),
    [("a=b", "a", "b"), (" a = b c ", "a", "b c"), ('a="b"', "a", '"b"'), ("a=b=c", "a", "b=c"), ("a=", "a", ""),
     ("alone", "", "alone"), ("=x", "", "x"), ("a=b; x; y=z", "a", "b")],
)  # fmt: skip
def test_names_and_values(field, name, value):
    cookie = said(field)
    assert (cookie.name, cookie.value) == (name, value)
    assert (cookie.domain, cookie.path, cookie.host_only, cookie.expires_at) == ("www.site.example", "/a", True, 0)


@pytest.mark.parametrize("field", ["", ";", "=", "a=b\x00", "a=b\x01c", "a=" + "x" * 5000, "a=b; Domain=other.example"])
def test_what_is_no_cookie(field):
    assert said(field) is None


@pytest.mark.parametrize(
    ("domain", "kept"),
    [("site.example", "site.example"), (".site.example", "site.example"), ("SITE.example", "site.example"),
     ("www.site.example", "www.site.example"), ("example", None), ("a.www.site.example", None), ("ite.example", None),
     ("site.example.", None), ("127.0.0.1", None)],
)  # fmt: skip
def test_domains(domain, kept):
    cookie = said(f"a=b; Domain={domain}")
    assert (cookie and cookie.domain) == kept


def test_a_public_suffix_is_refused_except_for_the_host_of_that_name():
    assert said("a=b; Domain=co.uk", "https://shop.co.uk/") is None
    assert said("a=b; Domain=github.io", "https://me.github.io/") is None
    assert said("a=b; Domain=github.io", "https://github.io/").host_only
    assert said("a=b; Domain=localhost", "http://www.localhost/") is None
    assert said("a=b; Domain=0.0.1", "http://127.0.0.1/") is None


@pytest.mark.parametrize(
    ("field", "url", "good"),
    [("a=b; Secure", "http://h.example/", False), ("a=b; Secure", "https://h.example/", True),
     ("__Secure-a=b", "https://h.example/", False), ("__Secure-a=b; Secure", "https://h.example/", True),
     ("__Host-a=b; Secure; Path=/", "https://h.example/", True), ("__Host-a=b; Secure", "https://h.example/x/y", False),
     ("__Host-a=b; Secure; Path=/; Domain=h.example", "https://h.example/", False),
     ("__host-a", "https://h.example/", False)],
)  # fmt: skip
def test_what_an_origin_may_claim(field, url, good):
    assert (said(field, url) is not None) == good


@pytest.mark.parametrize(
    ("said_of_time", "expires"),
    [("Max-Age=10", NOW_S + 10), ("Max-Age=0", 1), ("Max-Age=-5", 1), ("Max-Age=x", 0),
     ("Max-Age=5; Expires=Wed, 01 Jan 2020 00:00:00 GMT", NOW_S + 5), ("Max-Age=" + "9" * 30, NOW_S + 34_560_000),
     ("Expires=Wed, 01 Jan 2020 00:00:00 GMT", 1_577_836_800),
     ("Expires=Wednesday, 01-Jan-20 00:00:00 GMT", 1_577_836_800),
     ("Expires=Wed Jan  1 00:00:00 2020", 1_577_836_800), ("Expires=1 jan 1970 00:00:00", 1), ("Expires=tomorrow", 0),
     ("Expires=Wed, 32 Jan 2020 00:00:00 GMT", 0), ("Expires=Wed, 30 Feb 2020 00:00:00 GMT", 0)],
)  # fmt: skip
def test_when_it_is_over(said_of_time, expires):
    assert said(f"a=b; {said_of_time}").expires_at == expires


@given(st.text(st.characters(max_codepoint=255)))
def test_any_field_is_a_cookie_or_none(field):
    cookie = said(field)
    assert cookie is None or cookie.domain in {"www.site.example", "site.example"}


def test_where_cookies_go():
    kept = jar(
        "one=1; Path=/",
        "deep=2; Path=/a",
        "wide=3; Path=/; Domain=site.example",
        "safe=4; Path=/; Secure",
        "x=5; Path=/b",
    )
    assert kept.header(URL, NOW_S) == "deep=2; one=1; wide=3; safe=4"
    assert kept.header("http://www.site.example/ab", NOW_S) == "one=1; wide=3"
    assert kept.header("http://img.site.example/", NOW_S) == "wide=3"
    assert kept.header("http://othersite.example/", NOW_S) == ""
    assert not Jar()


def test_the_later_one_counts_and_deletions_are_remembered():
    late, early, gone = said("a=late", at=NOW + 5), said("a=early", at=NOW), said("a=; Max-Age=0", at=NOW + 9)
    made = Jar()
    assert made.keep(late) == []
    assert made.keep(early) is None
    assert made.header(URL, NOW_S) == "a=late"
    made.keep(gone)
    assert made.keep(late) is None
    assert made.header(URL, NOW_S) == ""


HTTP = "http://www.site.example/a/b"


@pytest.mark.parametrize(
    ("safe", "plain", "left"),
    [("a=good; Secure", "a=evil", "a=good"), ("a=good; Secure", "a=; Max-Age=0", "a=good"),
     ("a=good; Secure; Path=/", "a=evil", "a=good"), ("a=good; Secure; Domain=site.example", "a=evil", "a=good"),
     ("a=good; Secure", "a=evil; Domain=site.example", "a=good"), ("a=good", "a=evil", "a=evil"),
     ("a=good; Secure", "b=other", "a=good; b=other"), ("a=good; Secure; Path=/a", "a=x; Path=/", "a=good; a=x"),
     ("a=; Secure; Max-Age=0", "a=new", "a=new")],
)  # fmt: skip
def test_what_comes_over_http_replaces_no_secure_cookie(safe, plain, left):
    made = Jar()
    made.keep(said(safe))
    made.keep(said(plain, HTTP, NOW + 1))
    assert made.header(URL, NOW_S) == left
    made.keep(said("a=last", at=NOW + 2))
    assert "a=last" in made.header(URL, NOW_S)


def test_nor_when_the_secure_one_is_heard_of_later():
    made = Jar()
    assert made.keep(said("a=evil", HTTP, NOW + 1)) == []
    assert made.keep(said("a=good; Secure")) == []
    assert made.header(URL, NOW_S) == "a=good"


def test_nor_by_being_one_of_many():
    made = Jar()
    made.keep(said("a=good; Secure"))
    for number in range(200):
        made.keep(said(f"n{number}=1", HTTP, NOW + 1 + number))
    assert "a=good" in made.header(URL, NOW_S)


def test_a_jar_is_bounded_in_bytes():
    gone = []
    made = Jar(5_000, gone.append)
    for host in ("a", "b", "c"):
        made.keep(said("n=" + "v" * 1_000, f"https://{host}.example/"))
        assert made.header("https://a.example/", NOW_S)
    assert gone == ["b.example"], "the one that nobody asked for longest"
    assert [bool(made.header(f"https://{host}.example/", NOW_S)) for host in "abc"] == [True, False, True]
    made.keep(said("n=short", "https://a.example/", NOW + 1))
    assert made.bytes < 4_000
    whole = Jar()
    for number in range(1_000):
        whole.keep(said(f"n{number}=1", f"https://h{number % 5}.example/", NOW + number))
    kept = sum(len(whole.of(f"h{number}.example")) for number in range(5))
    assert 700 * kept < whole.bytes < 800 * kept


def test_a_field_has_the_longest_paths_first_and_as_many_as_servers_take():
    made = Jar()
    for number in range(40):
        path = "/" if number < 20 else "/a"
        made.keep(said(f"n{number}={'v' * 1_000}; Path={path}", at=NOW + number))
    made.keep(said("short=1; Path=/", at=NOW + 50))
    field = made.header(URL, NOW_S)
    assert 14_000 < len(field) <= 16_000
    assert field.startswith("n20=v")
    assert field.endswith("; short=1"), "it still fits"
    assert [pair.partition("=")[0] for pair in field.split("; ")][:-1] == [f"n{number}" for number in range(20, 35)]


def test_no_more_of_a_domain_than_browsers_keep():
    made = Jar()
    fallen = [out for number in range(200) for out in made.keep(said(f"n{number}=1", at=NOW + number))]
    assert [out.name for out in fallen] == [f"n{number}" for number in range(20)]


def test_a_cookie_file_comes_back_as_it_was():
    cookies = [said("a=b; HttpOnly; Path=/"), said("c=\xe9 d; Domain=site.example; Secure; Max-Age=9")]
    text = write_cookies(cookies)
    assert sorted(read_cookies(text, "f", NOW), key=lambda cookie: cookie.name) == cookies


def test_a_tab_in_a_value_comes_back_and_one_in_a_name_is_left_out():
    held, lost = said("a=b\tc\x85d"), said("a\tb=c")
    assert held is not None
    assert lost is not None
    assert read_cookies(write_cookies([held, lost]), "f", NOW) == [held]


@pytest.mark.parametrize(
    "line",
    ["x", "h\tTRUE\t/\tFALSE\t0\thush", "h\tTRUE\t/\tFALSE\tx\ta\thush", "\tTRUE\t/\tFALSE\t0\ta\thush",
                                  "h.example\tTRUE\t/\tNO\t0\ta\thush", ".com\tTRUE\t/\tFALSE\t0\ta\thush"],
)  # fmt: skip
def test_a_line_that_makes_no_sense_is_named_and_not_shown(line):
    with pytest.raises(UsageError) as caught:
        read_cookies(f"# a comment\n\n{line}\n", "jar.txt", NOW)
    assert "line 3 of the cookie file jar.txt" in str(caught.value)
    assert "hush" not in str(caught.value)
