"""Cookies as a browser has them, and as a job's jar does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from muniment.model.cookie import Cookie

__all__ = ["from_browser", "to_browser"]


def to_browser(cookies: Iterable[Cookie]) -> tuple[dict[str, Any], ...]:
    """The arguments of `setCookies` for cookies of a jar."""
    return tuple(_given(cookie) for cookie in cookies)


def _given(cookie: Cookie) -> dict[str, Any]:
    given: dict[str, Any] = {
        "name": cookie.name,
        "value": cookie.value,
        "path": cookie.path,
        "secure": cookie.secure,
        "httpOnly": cookie.http_only,
        "url": f"{'https' if cookie.secure else 'http'}://{cookie.domain}/",
    }
    if not cookie.host_only:
        given["domain"] = f".{cookie.domain}"
    if cookie.expires_at:
        given["expires"] = cookie.expires_at
    return given


def from_browser(cookies: Iterable[Mapping[str, Any]], *, secure: bool) -> list[Cookie]:
    """The cookies of a context; `secure`: its page came over TLS."""
    return [_taken(one, secure=secure) for one in cookies if one["value"].isascii() and one["name"].isascii()]


def _taken(one: Mapping[str, Any], *, secure: bool) -> Cookie:
    domain = one["domain"].lower()
    bare = domain.removeprefix(".")
    return Cookie(
        domain=bare,
        name=one["name"],
        path=one["path"],
        value=one["value"],
        host_only=not domain.startswith("."),
        secure=one["secure"],
        http_only=one["httpOnly"],
        expires_at=0 if one.get("session") else max(0, int(one["expires"])),
        set_at=0,
        http_host="" if secure or one["secure"] else bare,
    )
