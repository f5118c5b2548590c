"""Secrets in files: the headers, cookies and accounts that a crawl begins with, and the cookies that it leaves."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from msgspec import Struct

from muniment.app.inputs.bounded_file import bounded_text
from muniment.app.inputs.storage_state import StorageState, read_storage_state
from muniment.archive.durable import archive_error
from muniment.errors import UsageError
from muniment.http.added_headers import given_header, read_headers
from muniment.http.auth import Account
from muniment.http.credentials import AddedHeader
from muniment.http.netrc import NetrcEntry, read_entries
from muniment.http.netscape import FIRST_LINE, lines_of, read_cookies
from muniment.model.cookie import Cookie
from muniment.model.url import host_of, normalise
from muniment.seeds.plain import plain_text
from muniment.settings.option_table import Settings
from muniment.settings.values import split_proxy

__all__ = [
    "COOKIE_FILE",
    "Secrets",
    "holds_secrets",
    "read_accounts",
    "read_cookie_file",
    "read_secrets",
    "save_cookies",
]

COOKIE_FILE = "cookies.txt"
"""Where a run leaves its cookies, in the output directory."""
_MOST_HEADERS = 1 << 16
"""Bytes of a header file."""


class Secrets(Struct, frozen=True):
    """The cookies, accounts and headers that the user gave in files."""

    cookies: list[Cookie]
    accounts: dict[str, Account]
    """By host."""
    headers: tuple[AddedHeader, ...] = ()
    """Those of the command line and those of files."""
    storage: dict[str, dict[str, str]] = {}
    """The local storage that pages in a browser begin with, by origin."""


def read_secrets(settings: Settings) -> Secrets:
    """Read the files of the settings; raises UsageError that shows nothing of what is in them."""
    state = read_storage_state(settings.storage_state) if settings.storage_state else StorageState()
    return Secrets(
        [*(read_cookie_file(settings.cookies) if settings.cookies else []), *state.cookies],
        read_accounts(settings.auth_file) if settings.auth_file else {},
        tuple(header for given in settings.header for header in _headers(given)),
        state.storage,
    )


def holds_secrets(settings: Settings) -> bool:
    """Whether cookies or a proxy's account were given, which go their own ways."""
    given = settings.cookies or settings.storage_state
    return given is not None or any("@" in split_proxy(text)[1] for text in settings.proxy)


def _headers(given: str) -> list[AddedHeader]:
    if not given.startswith("@"):
        return [given_header(given)]
    file = given.removeprefix("@")
    remedy = "; no server accepts that many headers"
    text = bounded_text(file, f"the header file {file}", _MOST_HEADERS, remedy)
    return read_headers(text, file)


def read_cookie_file(file: str) -> list[Cookie]:
    """The cookies of a file in Netscape format; raises UsageError that shows nothing of their values."""
    try:
        # cookies are bytes, and go out as they came
        text = plain_text(Path(file), f"the cookie file {file}", "latin-1")
        said_at = Path(file).stat().st_mtime_ns // 1000
    except OSError as error:
        raise UsageError(f"the cookie file {file} cannot be read: {error.strerror}") from None
    return read_cookies(text, file, said_at)


def read_accounts(file: str) -> dict[str, Account]:
    """The accounts of a file in netrc format, by host; raises UsageError that shows nothing of them."""
    try:
        text = plain_text(Path(file), f"the auth file {file}", "utf-8-sig")
    except OSError as error:
        raise UsageError(f"the auth file {file} cannot be read: {error.strerror}") from None
    except UnicodeError:
        raise UsageError(f"the auth file {file} is not UTF-8 text") from None
    return {_host(entry, file): Account(entry.login, entry.password or "") for entry in read_entries(text, file)}


def _host(entry: NetrcEntry, file: str) -> str:
    name = entry.machine
    url = normalise(f"http://{name}/")
    if url is None or url.count("/") != 3 or (":" in name and not name.endswith("]")):
        raise UsageError(
            f"line {entry.line} of the auth file {file} has machine {name!r}; write a host name, without port or path"
        )
    return host_of(url)


def save_cookies(path: Path, cookies: Iterable[list[Cookie]]) -> None:
    """Write a cookie file that only its owner can read, part after part; no file without cookies."""
    parts = iter(cookies)
    first = next((part for part in parts if part), None)
    if first is None:
        return
    aside = path.with_name(f".{path.name}.new")
    try:
        aside.unlink(missing_ok=True)
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(FIRST_LINE.encode())
            for part in chain((first,), parts):
                file.write(lines_of(part).encode("latin-1", "replace"))
        aside.replace(path)
    except OSError as error:
        raise archive_error(error, path) from error
