"""Headers that a user adds, the agent's name and the contact: which are taken, and what to do about the others."""

from __future__ import annotations

import re

from muniment.errors import UsageError
from muniment.http.credentials import AddedHeader
from muniment.model.mask import MASK, masked_header, masked_url
from muniment.model.url import account_of, host_of, normalise

__all__ = ["given_header", "parse_agent", "parse_contact", "parse_header", "read_headers"]

_GIVEN = re.compile(
    r"(?:(?P<place>\*|(?:\[[^\s=@/\]]+\]|[^\s=:@/*\[\]]+)(?::[0-9]{1,5})?)=)?"
    r"(?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:(?P<value>.*)",
    re.DOTALL,
)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_HALVES = re.compile(r"[\ud800-\udfff]")
_MAIL = re.compile(r"(?:mailto:)?[^\s@:/<>()\"]+@[^\s@:/<>()\"]+")


def parse_header(text: str) -> str:
    """A `--header` value as given, once it is known to be a header or `@FILE`."""
    if not text.startswith("@"):
        given_header(text)
    return text


def given_header(text: str) -> AddedHeader:
    """What `[PLACE=]NAME: VALUE` says; raises UsageError, which does not show the value."""
    match = _GIVEN.fullmatch(text)
    if match is None or (match["name"].lower() in ("http", "https") and match["value"].startswith("//")):
        shown = MASK if text.startswith("@") else masked_header(text)
        raise UsageError(f"{shown!r} is not a header; write 'NAME: VALUE', 'HOST=NAME: VALUE' or '*=NAME: VALUE'")
    name, value = match["name"], match["value"].strip(" \t")
    if reason := _NOT_TO_GIVE.get(name.lower()):
        raise UsageError(f"the header {name} cannot be given: {reason}")
    if _CONTROL.search(value):
        raise UsageError(f"the value of the header {name} contains a control character; write one line of text")
    if _HALVES.search(value):
        raise UsageError(f"the value of the header {name} is not UTF-8 text")
    return AddedHeader(name, value, _place(match["place"] or ""))


def _place(given: str) -> str:
    """The host and port of a header, as in normalised URLs, where one is named."""
    if given in ("", "*"):
        return given
    host, colon, port = given.rpartition(":") if re.search(r":[0-9]+$", given) else (given, "", "")
    url = normalise(f"http://{host}/")
    if url is None or url.count("/") != 3 or (colon and not 0 < int(port) < 65_536):
        raise UsageError(f"{given!r} is not a host; write 'HOST=NAME: VALUE' or 'HOST:PORT=...'")
    return f"{host_of(url)}{colon}{int(port) if port else ''}"


def read_headers(text: str, file: str) -> list[AddedHeader]:
    """The headers of a file called `file`, one a line; empty lines and those that begin with # are left out.

    Raises UsageError with the line that is wrong, and shows nothing of it but a name.
    """
    headers = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.startswith("#"):
            try:
                headers.append(given_header(line.removesuffix("\r").strip(" \t")))
            except UsageError as error:
                raise UsageError(f"line {number} of the header file {file}: {error}") from None
    return headers


def parse_contact(text: str) -> str:
    """A contact as given, once it is known to be the URL of a page or a mail address."""
    page = normalise(text) if re.match("https?://", text, re.IGNORECASE) and account_of(text) is None else None
    if not text.isprintable() or " " in text or not (page or _MAIL.fullmatch(text)):
        raise UsageError(f"{masked_url(text)!r} is not a contact; give a URL (https://...) or a mail address")
    return page if page and not text.isascii() else text


def parse_agent(text: str) -> str:
    """A User-Agent as given, once it is known to begin with the name of a product."""
    if not text.partition("/")[0].strip():
        raise UsageError(f"{text!r} has no product name; write 'NAME/VERSION (contact)', or leave the option out")
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
