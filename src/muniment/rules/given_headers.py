"""Headers that a user adds to every request, and the agent's name: which are taken, and what to do about the others."""

from __future__ import annotations

import re

from muniment.errors import UsageError
from muniment.settings import redact

__all__ = ["parse_agent", "parse_header"]


def parse_header(text: str) -> str:
    """An extra request header as given, once it is known to be one: a token, a colon, a value on one line."""
    if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+[ \t]*:[^\r\n\0]*", text):
        raise UsageError(f"{redact(text)!r} is not a header; write 'NAME: VALUE'")
    name = text.partition(":")[0].strip()
    if reason := _NOT_TO_GIVE.get(name.lower()):
        raise UsageError(f"{name} is no header to give: {reason}")
    return text


def parse_agent(text: str) -> str:
    """A User-Agent as given, once it is known to begin with the name of a product."""
    if not text.partition("/")[0].strip():
        raise UsageError(f"{text!r} names no product; write it as 'NAME/VERSION (contact)', or leave the option out")
    return text


_NO_BODY = "a request for a page has no body"
_CONNECTIONS = "how connections are used is not for others to say"
_NOT_TO_GIVE = {
    "accept-encoding": "give --http-compression to ask for compressed bodies",
    "connection": _CONNECTIONS,
    "content-length": _NO_BODY,
    "cookie": "cookies belong to their hosts, and a header does not; give --cookies FILE",
    "expect": _NO_BODY,
    "host": "it is that of each URL",
    "keep-alive": _CONNECTIONS,
    "proxy-authorization": "sites would see it; give the account in the --proxy URL or with --auth-file",
    "proxy-connection": _CONNECTIONS,
    "te": _CONNECTIONS,
    "trailer": _NO_BODY,
    "transfer-encoding": _NO_BODY,
    "upgrade": _CONNECTIONS,
    "user-agent": "give --user-agent TEXT",
}
"""Headers that are ours to send, or not to send."""
