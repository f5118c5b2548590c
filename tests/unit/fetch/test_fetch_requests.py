from __future__ import annotations

import subprocess

import pytest

from muniment.fetch.address_policy import address_class
from muniment.fetch.config import FetchConfig
from muniment.fetch.dns import literal_address
from muniment.fetch.request import Requests, UnsupportedSchemeError
from muniment.fetch.tls import iana_cipher_name
from muniment.http.credentials import AddedHeader, Credentials

PLAIN = FetchConfig(user_agent="agent/1")


def request(url: str, extra: tuple[tuple[str, str], ...] = (), config: FetchConfig = PLAIN) -> bytes:
    requests = Requests(config)
    origin, target = requests.split(url)
    return requests.build(origin, target, extra)


def test_the_whole_request() -> None:
    assert request("http://site.test/a/b?c=d&e") == (
        b"GET /a/b?c=d&e HTTP/1.1\r\nHost: site.test\r\nUser-Agent: agent/1\r\nAccept: */*\r\n"
        b"Accept-Encoding: identity\r\nConnection: keep-alive\r\n\r\n"
    )


def test_polite_requests_say_what_browsers_say_and_can_be_told_otherwise() -> None:
    polite = FetchConfig(user_agent="agent/1", polite=True)
    assert request("http://site.test/", (), polite) == (
        b"GET / HTTP/1.1\r\nHost: site.test\r\nUser-Agent: agent/1\r\n"
        b"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n"
        b"Accept-Language: en-US,en;q=0.5\r\nAccept-Encoding: identity\r\nConnection: keep-alive\r\n"
        b"Upgrade-Insecure-Requests: 1\r\n\r\n"
    )
    german = FetchConfig(user_agent="agent/1", polite=True, headers=(("accept-language", "de"),))
    assert request("http://site.test/", (), german).count(b"ccept-") == 2
    assert b"accept-language: de\r\n" in request("http://site.test/", (), german)


@pytest.mark.parametrize("polite", [False, True])
def test_referer_stands_after_what_is_always_said_and_before_cookies(polite: bool) -> None:
    config = FetchConfig(user_agent="agent/1", polite=polite)
    always = request("http://site.test/x", (), config)
    extra = (("Referer", "http://site.test/"), ("Cookie", "a=b"))
    assert request("http://site.test/x", extra, config) == (
        always[:-2] + b"Referer: http://site.test/\r\nCookie: a=b\r\n\r\n"
    )


def test_a_referer_that_the_user_gives_wins_where_it_goes() -> None:
    extra = (("Referer", "http://site.test/page"), ("Accept", "image/*"))
    mine = FetchConfig(user_agent="agent/1", headers=(("referer", "http://me.test/"),))
    sent = request("http://site.test/", extra, mine)
    assert b"\r\nreferer: http://me.test/\r\n" in sent
    assert sent.lower().count(b"referer") == 1
    assert sent.count(b"Accept:") == 1
    assert b"Accept: image/*\r\n" in sent
    given = Credentials((AddedHeader("Referer", "http://me.test/", "mine.test"),))
    own = FetchConfig(user_agent="agent/1", credentials=given)
    assert b"\r\nReferer: http://me.test/\r\n" in request("http://mine.test/", extra, own)
    assert b"\r\nReferer: http://site.test/page\r\n" in request("http://site.test/", extra, own)


@pytest.mark.parametrize(
    ("url", "host", "target"),
    [
        ("http://site.test/", b"site.test", b"/"),
        ("http://site.test", b"site.test", b"/"),
        ("http://site.test:8080/", b"site.test:8080", b"/"),
        ("https://site.test/x", b"site.test", b"/x"),
        ("https://site.test:80/x", b"site.test:80", b"/x"),
        ("http://me:secret@site.test/", b"site.test", b"/"),
        ("http://[2001:db8::1]/", b"[2001:db8::1]", b"/"),
        ("http://[2001:db8::1]:81/", b"[2001:db8::1]:81", b"/"),
        ("http://site.test/a#b", b"site.test", b"/a"),
        ("http://site.test/?a=http://other.test/", b"site.test", b"/?a=http://other.test/"),
        ("http://site.test/%7Ea|b", b"site.test", b"/%7Ea|b"),
        ("http://site.test/ä b\r\n", b"site.test", b"/%C3%A4%20b%0D%0A"),
    ],
)
def test_host_and_target(url: str, host: bytes, target: bytes) -> None:
    assert request(url).startswith(b"GET " + target + b" HTTP/1.1\r\nHost: " + host + b"\r\n")
    assert b"secret" not in request(url)


@pytest.mark.parametrize("url", ["ftp://site.test/", "mailto:me@site.test", "", "//site.test/", "http://", "http:///x"])
def test_what_cannot_be_asked_for(url: str) -> None:
    with pytest.raises(UnsupportedSchemeError):
        Requests(PLAIN).split(url)


def test_headers_take_the_place_of_built_in_ones() -> None:
    config = FetchConfig(user_agent="agent/1", headers=(("accept", "text/html"), ("X-One", "1")), compression=True)
    assert request("http://h/", (), config).split(b"\r\n")[2:-2] == [
        b"User-Agent: agent/1",
        b"Accept-Encoding: gzip, deflate",
        b"Connection: keep-alive",
        b"accept: text/html",
        b"X-One: 1",
    ]
    extra = (("user-agent", "other"), ("Cookie", "a=b"))
    assert request("http://h/", extra, config).split(b"\r\n")[1:-2] == [
        b"Host: h",
        b"user-agent: other",
        b"Accept-Encoding: gzip, deflate",
        b"Connection: keep-alive",
        b"accept: text/html",
        b"X-One: 1",
        b"Cookie: a=b",
    ]


def test_a_value_cannot_begin_another_header() -> None:
    made = request("http://h/", (("If-None-Match", '"a"\r\nX-Evil: 1\0'), ("X", "\xe9"), ("Y", "€")))
    assert b'If-None-Match: "a" X-Evil: 1 \r\nX: ' in made
    assert made.count(b"\r\n\r\n") == 1


def test_latin1_values_go_back_as_they_came() -> None:
    assert b"\r\nX: \xe9\r\n" in request("http://h/", (("X", "\xe9"),))


ADDRESSES = [
    ("93.184.216.34", "public"),
    ("2606:4700::1111", "public"),
    ("127.0.0.1", "loopback"),
    ("127.255.0.1", "loopback"),
    ("::1", "loopback"),
    ("::ffff:127.0.0.1", "loopback"),
    ("169.254.169.254", "link-local"),
    ("fe80::1", "link-local"),
    ("fe80::1%eth0", "link-local"),
    ("10.0.0.1", "private"),
    ("172.16.0.1", "private"),
    ("172.32.0.1", "public"),
    ("192.168.1.1", "private"),
    ("::ffff:192.168.1.1", "private"),
    ("fc00::1", "private"),
    ("fd12:3456::1", "private"),
    ("fec0::1", "private"),
    ("64:ff9b::10.0.0.1", "private"),
    ("64:ff9b::8.8.8.8", "public"),
    ("2002:7f00:1::", "loopback"),
    ("0.0.0.0", "reserved"),
    ("0.1.2.3", "reserved"),
    ("::", "reserved"),
    ("100.64.0.1", "reserved"),
    ("192.0.2.1", "reserved"),
    ("198.18.0.1", "reserved"),
    ("224.0.0.1", "reserved"),
    ("233.252.0.1", "reserved"),
    ("239.1.1.1", "reserved"),
    ("240.0.0.1", "reserved"),
    ("255.255.255.255", "reserved"),
    ("ff02::1", "reserved"),
    ("ff0e::1", "reserved"),
    ("2001:db8::1", "reserved"),
    ("::ffff:0.0.0.0", "reserved"),
    ("::127.0.0.1", "reserved"),
    ("64:ff9b:1::1", "reserved"),
]


def test_address_classes() -> None:
    assert {ip: address_class(ip) for ip, _ in ADDRESSES} == dict(ADDRESSES)


def test_literal_addresses() -> None:
    assert literal_address("[2001:DB8:0::1]") == "2001:db8::1"
    assert literal_address("127.0.0.1") == "127.0.0.1"
    assert literal_address("site.test") == ""


def test_cipher_names_are_ianas() -> None:
    listed = subprocess.run(["openssl", "ciphers", "-stdname", "ALL"], check=True, capture_output=True, text=True)
    pairs = [(words[0], words[2]) for line in listed.stdout.splitlines() if (words := line.split())]
    usable = [(iana, name) for iana, name in pairs if "PSK" not in name and "SRP" not in name]
    assert len(usable) > 40
    assert [iana_cipher_name(name) for _, name in usable] == [iana for iana, _ in usable]
