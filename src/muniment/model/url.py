"""URLs: the one normal form, the key by which a page is known, and the host.

Normalisation is the WHATWG URL Standard's, by Ada; the fragment goes. All functions are pure.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

import ada_url
import xxhash

__all__ = [
    "MOST_URL",
    "account_of",
    "did_you_mean",
    "directory_of",
    "full_length",
    "host_of",
    "is_web",
    "normalise",
    "normalise_any",
    "normalise_page",
    "origin_of",
    "path_of",
    "resolve",
    "route_of",
    "shortened",
    "url_key",
    "without_account",
    "without_route",
]

MOST_URL = 8000
"""Characters of a normalised URL that is asked for: what every server should take (RFC 9110 §4.1), few take more."""
_KEPT = 500
_CUT = "\u2026"
"""Stands in no normalised URL, which is ASCII."""

_HTTP = ("http://", "https://")
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_PATH_TEXT = "[A-Za-z0-9_.~!$&()*+,;=:@/-]*+"
_NORMAL = re.compile(
    r"https?://(?![^/]*xn--)(?![^?]*/\.)"
    rf"(?:(?:[a-z0-9-]++\.)*?[a-z][a-z0-9-]*+|(?:{_OCTET}\.){{3}}{_OCTET})"
    r"(?::(?!80/|443/)(?:[1-5][0-9]{4}|[1-9][0-9]{0,3}))?"
    rf"/{_PATH_TEXT}(?:%(?!2[Ee])[0-9A-Fa-f]{{2}}{_PATH_TEXT})*"
    r"(?:\?[A-Za-z0-9_.~!$&()*+,;=:@/?%-]*+)?"
).fullmatch
"""What is in normal form beyond doubt, as most URLs of a list are: no account, no dots for directories, no IDNA."""
_ROUTE = re.compile(r"#!?/.").match
_ACCOUNT = re.compile(r"^([a-z][a-z0-9+.-]*://)[^/?]*@")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!\d)")
# 443 is the port of https
_PORT = re.compile(r"[^/?#]*:(?!443\b)\d+(?:[/?#]|$)")


def normalise(text: str) -> str | None:
    """The normal form of an absolute http or https URL without fragment, or None for anything else."""
    if _NORMAL(text):
        return text
    try:
        url = ada_url.normalize_url(text)
    except (ValueError, UnicodeError):
        return None
    return _web(url)


def normalise_any(text: str) -> str | None:
    """The normal form of an absolute URL of any scheme without fragment, or None for anything else."""
    if _NORMAL(text):
        return text
    try:
        url: str = ada_url.normalize_url(text)
    except (ValueError, UnicodeError):
        return None
    return _web(url) or _ACCOUNT.sub(r"\1", url.partition("#")[0])


def normalise_page(text: str) -> str | None:
    """The same, but with a fragment that is a route, which is a page of its own in a browser."""
    url = normalise(text)
    return url if url is None or "#" not in text else url + route_of(text)


def route_of(text: str) -> str:
    """The fragment of an absolute URL where scripts show a page by it (`#/…`, `#!/…`), normalised; empty for others.

    The slash alone is the document itself.
    """
    try:
        url: str = ada_url.normalize_url(text)
    except (ValueError, UnicodeError):
        return ""
    cut = url.find("#")
    return url[cut:] if cut >= 0 and _ROUTE(url, cut) else ""


def without_route(url: str) -> str:
    """The URL that is asked for of a page."""
    return url.partition("#")[0] if "#" in url else url


def did_you_mean(text: str) -> str:
    """A suggestion for a URL without a scheme, to be added to an error; empty for others."""
    scheme = "http" if _PORT.match(text) else "https"
    meant = f"{scheme}://{text.removeprefix('//')}"
    return f"; did you mean {meant}?" if text.isprintable() and normalise(meant) and not _SCHEME.match(text) else ""


def is_web(url: str) -> bool:
    """Whether a URL in normal form is http or https."""
    return url.startswith(_HTTP)


def resolve(base: str, href: str) -> str | None:
    """`href` as seen from the absolute URL `base`, in normal form; None if it is not an http or https URL."""
    try:
        url = ada_url.join_url(base, href)
    except (ValueError, UnicodeError):
        return None
    return _web(url)


def _web(url: str) -> str | None:
    if not url.startswith(_HTTP):
        return None
    cut = url.find("#")
    if cut >= 0:
        url = url[:cut]
    return without_account(url) if "@" in url else url


def without_account(url: str) -> str:
    """The URL without a name and password, which are secrets and no part of a page's identity."""
    start, end = _authority(url)
    return url[:start] + url[url.rfind("@", start, end) + 1 :] if "@" in url[start:end] else url


def account_of(text: str) -> tuple[str, str] | None:
    """The name and the password in an absolute http or https URL as given; None without."""
    if "@" not in text:
        return None
    try:
        url = ada_url.URL(text)
    except (ValueError, UnicodeError):
        return None
    if url.protocol not in ("http:", "https:") or not (url.username or url.password):
        return None
    return unquote(url.username), unquote(url.password)


def shortened(url: str) -> str:
    """The URL, or of one that is too long to be asked for, how it begins and its length: `http://a.example/x…(9000)`."""
    return url if len(url) <= MOST_URL else f"{url[:_KEPT]}{_CUT}({len(url)})"


def full_length(url: str) -> int:
    """Characters of a URL that may be `shortened`."""
    return len(url) if url.isascii() else int(url.rpartition(_CUT)[2][1:-1])


def url_key(url: str) -> bytes:
    """The sixteen bytes by which a normalised URL is known in a job."""
    return xxhash.xxh3_128_digest(url.encode())


def _authority(url: str) -> tuple[int, int]:
    start = url.index("://") + 3
    end = url.find("/", start)
    return start, len(url) if end < 0 else end


def host_of(url: str) -> str:
    """The host name of a normalised URL: lower case, punycode, no port; IPv6 in brackets."""
    start, end = _authority(url)
    authority = url[start:end]
    if authority.startswith("["):
        return authority[: authority.index("]") + 1]
    colon = authority.find(":")
    return authority if colon < 0 else authority[:colon]


def origin_of(url: str) -> str:
    """Scheme, host and port, without path: `https://example.com:8443`."""
    return url[: _authority(url)[1]]


def path_of(url: str) -> str:
    """The path of a normalised URL, query left out."""
    url = without_route(url)
    _, end = _authority(url)
    query = url.find("?", end)
    return url[end:] if query < 0 else url[end:query]


def directory_of(url: str) -> str:
    """The part of a normalised URL through the last slash of its path: what relative links are seen from."""
    _, end = _authority(url)
    query = url.find("?", end)
    stop = len(url) if query < 0 else query
    return url[: url.rfind("/", 0, stop) + 1]
