"""Cookie files in Netscape's format, as browsers' extensions, curl and wget write and read them."""

from __future__ import annotations

from collections.abc import Iterable

from muniment.errors import UsageError
from muniment.model.cookie import Cookie
from muniment.rules.domains import is_public_suffix

__all__ = ["FIRST_LINE", "lines_of", "read_cookies", "write_cookies"]

_HTTP_ONLY = "#HttpOnly_"
FIRST_LINE = "# Netscape HTTP Cookie File\n"
_YES_NO = {"TRUE": True, "FALSE": False}


def read_cookies(text: str, name: str, set_at: int) -> list[Cookie]:
    """The cookies of a file called `name`; raises UsageError with the first line that makes no sense, its value apart.

    `set_at` (Unix µs) is when the file said so.
    """
    cookies = []
    for number, whole in enumerate(text.split("\n"), 1):
        http_only = whole.startswith(_HTTP_ONLY)
        line = whole.removesuffix("\r").removeprefix(_HTTP_ONLY)
        if not line.strip() or (line.startswith("#") and not http_only):
            continue
        where = f"line {number} of the cookie file {name}"
        cookies.append(_cookie(line.split("\t", 6), where, set_at, http_only=http_only))
    return cookies


def _cookie(fields: list[str], where: str, set_at: int, *, http_only: bool) -> Cookie:
    if len(fields) != 7:
        raise UsageError(f"{where} has {len(fields)} fields, not 7 with tabs between them")
    host, below, path, secure, expires, name, value = fields
    domain = host.removeprefix(".").lower()
    if not domain or not domain.isascii() or not path.startswith("/"):
        raise UsageError(f"{where} does not begin with a host name, TRUE or FALSE, and a path")
    if below not in _YES_NO or secure not in _YES_NO:
        raise UsageError(f"{where} needs TRUE or FALSE in its second and fourth field")
    if _YES_NO[below] and is_public_suffix(domain):
        raise UsageError(f"{where} is for all of {domain}, a domain of many owners; name a host")
    whole, _, rest = expires.partition(".")
    if not whole.isdigit() or not (rest or "0").isdigit() or len(whole) > 15:
        raise UsageError(f"{where} needs Unix seconds, or 0, in its fifth field")
    return Cookie(domain, name, path, value, not _YES_NO[below], _YES_NO[secure], http_only, int(whole), set_at)


def write_cookies(cookies: Iterable[Cookie]) -> str:
    """The text of a cookie file, in the order of domain, path and name.

    The format cannot hold a tab in a name or a path: such a cookie is left out. One in a value reads back as it was.
    """
    return FIRST_LINE + lines_of(cookies)


def lines_of(cookies: Iterable[Cookie]) -> str:
    """The same without the first line, for a file that is written in parts."""
    held = (cookie for cookie in cookies if "\t" not in cookie.name + cookie.path)
    ordered = sorted(held, key=lambda cookie: (cookie.domain, cookie.path, cookie.name))
    return "".join(f"{_line(cookie)}\n" for cookie in ordered)


def _line(cookie: Cookie) -> str:
    domain = cookie.domain if cookie.host_only else f".{cookie.domain}"
    fields = (
        domain,
        "FALSE" if cookie.host_only else "TRUE",
        cookie.path,
        "TRUE" if cookie.secure else "FALSE",
        str(cookie.expires_at),
        cookie.name,
        cookie.value,
    )
    return (_HTTP_ONLY if cookie.http_only else "") + "\t".join(fields)
