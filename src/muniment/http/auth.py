"""Answers to 401: what a server asks for, and the Authorization that satisfies it (RFC 7617, RFC 7616)."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable

from msgspec import Struct

__all__ = ["Account", "Challenge", "authorization", "challenge_of"]


class Account(Struct, frozen=True):
    """A name and its password, for one host."""

    user: str
    password: str


class Challenge(Struct, frozen=True):
    """The challenge of a server: the strongest of its offers that is supported."""

    scheme: str
    """`basic` or `digest`."""
    realm: str
    algorithm: str = ""
    nonce: str = ""
    opaque: str | None = None
    qop: str = ""
    """`auth`, or empty for a server of RFC 2069."""
    stale: bool = False
    """Only the nonce was too old; the account was right."""


_HASHES = {"MD5": hashlib.md5, "SHA-256": hashlib.sha256}
_PART = re.compile(
    r"""\s*(?:,\s*)*
    (?: (?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*=\s*(?: "(?P<quoted>(?:[^"\\]|\\.)*)" | (?P<token>[^\s,="]+) )
          (?=\s*(?:,|$))
      | (?P<scheme>[!#$%&'*+.^_`|~0-9A-Za-z-]+)(?:\s+(?P<token68>[A-Za-z0-9._~+/-]+=*)(?=\s*(?:,|$)))?
    )""",
    re.VERBOSE,
)


def challenge_of(fields: Iterable[str]) -> Challenge | None:
    """The best of the challenges in WWW-Authenticate fields: Digest with SHA-256, with MD5, then Basic."""
    offers = [made for field in fields for scheme, said in _offers(field) if (made := _challenge(scheme, said))]
    return max(offers, key=_strength, default=None)


def _strength(challenge: Challenge) -> int:
    return 0 if challenge.scheme == "basic" else 1 + challenge.algorithm.upper().startswith("SHA-256")


def _offers(field: str) -> list[tuple[str, dict[str, str]]]:
    offers: list[tuple[str, dict[str, str]]] = []
    at = 0
    while match := _PART.match(field, at):
        at = match.end()
        if match["scheme"]:
            offers.append((match["scheme"].lower(), {}))
        elif offers:
            quoted = match["quoted"]
            value = match["token"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            offers[-1][1].setdefault(match["name"].lower(), value)
    return offers


def _challenge(scheme: str, said: dict[str, str]) -> Challenge | None:
    realm = said.get("realm", "")
    if scheme == "basic":
        return Challenge("basic", realm)
    algorithm = said.get("algorithm", "MD5")
    offered = {word.strip().lower() for word in said["qop"].split(",")} if "qop" in said else {""}
    qop = "auth" if "auth" in offered else ""
    known = algorithm.upper().removesuffix("-SESS") in _HASHES
    if scheme != "digest" or "nonce" not in said or not known or not offered & {"auth", ""}:
        return None
    stale = said.get("stale", "").lower() == "true"
    return Challenge("digest", realm, algorithm, said["nonce"], said.get("opaque"), qop, stale)


def authorization(
    challenge: Challenge, account: Account, target: str, count: int, cnonce: str, method: str = "GET"
) -> str:
    """The Authorization field of a request for `target`; `count`: how often the nonce was used, this time included."""
    if challenge.scheme == "basic":
        pair = f"{account.user}:{account.password}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"
    return _digest(challenge, account, (method, target), f"{count:08x}", cnonce)


def _digest(challenge: Challenge, account: Account, request: tuple[str, str], count: str, cnonce: str) -> str:
    name = challenge.algorithm.upper()
    function = _HASHES[name.removesuffix("-SESS")]

    def h(*parts: str) -> str:
        return function(":".join(parts).encode()).hexdigest()

    secret = h(account.user, challenge.realm, account.password)
    if name.endswith("-SESS"):
        secret = h(secret, challenge.nonce, cnonce)
    asked = h(*request)
    counted = (count, cnonce, challenge.qop) if challenge.qop else ()
    fields = [
        ("username", _quoted(account.user)),
        ("realm", _quoted(challenge.realm)),
        ("nonce", _quoted(challenge.nonce)),
        ("uri", _quoted(request[1])),
        ("response", _quoted(h(secret, challenge.nonce, *counted, asked))),
        ("algorithm", challenge.algorithm),
    ]
    if challenge.opaque is not None:
        fields.append(("opaque", _quoted(challenge.opaque)))
    if challenge.qop:
        fields += [("qop", challenge.qop), ("nc", count)]
    if challenge.qop or name.endswith("-SESS"):
        fields.append(("cnonce", _quoted(cnonce)))
    return "Digest " + ", ".join(f"{name}={value}" for name, value in fields)


def _quoted(text: str) -> str:
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'
