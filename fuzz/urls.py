"""URLs: a normal form is its own normal form, is ASCII, and has a host, an origin and a path that fit together."""

from __future__ import annotations

from muniment.model.url import directory_of, host_of, normalise, normalise_any, origin_of, path_of, resolve, url_key

_BASE = "http://a.example:81/b/c?d"
SEEDS = [
    text.encode()
    for text in (
        "http://user:secret@Exämple.com:80/a/../b?c=%zz#d",
        "https://[::1]:8443/x?y",
        "//b.example\\c",
        "?q",
        "../../x y",
        "http://1.2.3/%2e%2e/",
        "mailto:a@b",
    )
]


def check(data: bytes) -> None:
    """Take a text as an absolute URL and as a reference; what is no UTF-8 becomes lone surrogates, as in JSON."""
    text = data.decode("utf-8", "surrogateescape")
    normalise_any(text)
    for url in (normalise(text), resolve(_BASE, text)):
        if url is not None:
            _is_normal(url)


def _is_normal(url: str) -> None:
    assert url.isascii(), url
    assert normalise(url) == url, url
    assert "#" not in url, url
    assert "@" not in origin_of(url), url
    assert host_of(url) in origin_of(url), url
    assert url.startswith(origin_of(url) + path_of(url)), url
    assert url.startswith(directory_of(url)), url
    assert directory_of(url).endswith("/"), url
    assert len(url_key(url)) == 16
