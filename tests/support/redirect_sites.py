"""Sites that send visitors round: what a cookie opens, what a password guards, and what never ends."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from email.message import Message
from http.cookies import SimpleCookie

from tests.support.gated_site import Answer, GatedSite, Page

__all__ = ["BasicWall", "CookieGate", "DigestWall", "EndlessRedirects", "LoginWall", "TurningCookie", "moved"]


def moved(to: str, *cookies: str, status: int = 302) -> Answer:
    """A redirect that sets cookies."""
    return Answer("moved", status, (("Location", to), *(("Set-Cookie", cookie) for cookie in cookies)))


def _cookie(headers: Message[str, str], name: str) -> str:
    found = SimpleCookie(headers.get("Cookie", "")).get(name)
    return found.value if found else ""


class EndlessRedirects(GatedSite):
    """`/0` leads to `/1`, that to `/2`, and so on for longer than anybody follows."""

    def __init__(self) -> None:
        super().__init__({f"/{number}": moved(f"/{number + 1}") for number in range(100)})


class CookieGate(GatedSite):
    """Every page redirects to itself with a cookie, and answers whoever brings that."""

    def __init__(self, pages: Mapping[str, str]) -> None:
        super().__init__({path: self._gate(path, text) for path, text in pages.items()})

    @staticmethod
    def _gate(path: str, text: str) -> Page:
        return lambda headers: Answer(text) if _cookie(headers, "seen") == "1" else moved(path, "seen=1; Path=/")


class TurningCookie(GatedSite):
    """The start page redirects to itself, each time with another cookie, for ever."""

    def __init__(self) -> None:
        self._turns = iter(range(1_000_000))
        super().__init__({"/": lambda _: moved("/", f"turn={next(self._turns)}")})


class LoginWall(GatedSite):
    """Pages that send strangers to `/login`, which lets everybody in and sends them back."""

    def __init__(self, pages: Mapping[str, str]) -> None:
        walled = {path: self._page(path, text) for path, text in pages.items()}
        super().__init__({**walled, **dict(self._logins(pages))})

    @staticmethod
    def _page(path: str, text: str) -> Page:
        return lambda headers: Answer(text) if _cookie(headers, "session") == "in" else moved(f"/login?to={path}")

    @staticmethod
    def _logins(pages: Mapping[str, str]) -> Iterator[tuple[str, Page]]:
        for path in pages:
            yield f"/login?to={path}", moved(path, "session=in; Path=/; HttpOnly", status=303)


class BasicWall(GatedSite):
    """Asks for a Basic account; `authorizations` is what came, request by request."""

    def __init__(self, pages: Mapping[str, str], user: str, password: str, address: str = "127.0.0.1") -> None:
        self.authorizations: list[str] = []
        self._right = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        super().__init__({path: self._guard(text) for path, text in pages.items()}, address=address)

    def _guard(self, text: str) -> Page:
        def page(headers: Message[str, str]) -> Answer:
            given = headers.get("Authorization", "")
            self.authorizations.append(given)
            asks = (("WWW-Authenticate", 'Basic realm="the wall"'),)
            return Answer(text) if given == self._right else Answer("who are you?", 401, asks)

        return page


class DigestWall(GatedSite):
    """Asks for a Digest account and takes each nonce and count once (RFC 7616)."""

    def __init__(self, pages: Mapping[str, str], user: str, password: str, algorithm: str = "SHA-256") -> None:
        self._user, self._password, self._algorithm = user, password, algorithm
        self._hash = hashlib.md5 if algorithm == "MD5" else hashlib.sha256
        self._used: set[str] = set()
        super().__init__({path: self._guard(path, text) for path, text in pages.items()})

    def _guard(self, path: str, text: str) -> Page:
        asks = (
            f'Digest realm="the \\"wall\\"", qop="auth,auth-int", algorithm={self._algorithm}, nonce="n0", opaque="o"'
        )

        def page(headers: Message[str, str]) -> Answer:
            if self._right(path, headers.get("Authorization", "")):
                return Answer(text)
            return Answer("who are you?", 401, (("WWW-Authenticate", asks),))

        return page

    def _right(self, path: str, field: str) -> bool:
        said = {
            name: quoted or token for name, quoted, token in re.findall(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|(\w+))', field)
        }
        if said.get("uri") != path or said.get("nc") in self._used or said.get("opaque") != "o":
            return False
        self._used.add(said["nc"])
        secret = self._h(self._user, 'the "wall"', self._password)
        right = self._h(secret, "n0", said["nc"], said["cnonce"], "auth", self._h("GET", path))
        return said.get("response") == right

    def _h(self, *parts: str) -> str:
        return self._hash(":".join(parts).encode()).hexdigest()
