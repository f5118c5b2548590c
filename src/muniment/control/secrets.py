"""Secrets in files: the cookies and accounts that a crawl begins with, and the cookies that it leaves."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from msgspec import Struct

from muniment.archive.durable import archive_error
from muniment.errors import UsageError
from muniment.model.cookie import Cookie
from muniment.model.url import host_of, normalise
from muniment.rules.challenges import Account
from muniment.rules.netrc import Entry, read_entries
from muniment.rules.netscape import FIRST_LINE, lines_of, read_cookies

__all__ = ["COOKIE_FILE", "Secrets", "read_secrets", "save_cookies"]

COOKIE_FILE = "cookies.txt"
"""Where a run leaves its cookies, in the output directory."""


class Secrets(Struct, frozen=True):
    """What the user gave in files."""

    cookies: list[Cookie]
    accounts: dict[str, Account]
    """By host."""


def read_secrets(cookie_file: str | None, auth_file: str | None) -> Secrets:
    """Read both files, where given; raises UsageError that shows nothing of what is in them."""
    return Secrets(_cookies(cookie_file) if cookie_file else [], _accounts(auth_file) if auth_file else {})


def _cookies(file: str) -> list[Cookie]:
    try:
        # cookies are bytes, and go out as they came
        text = Path(file).read_text("latin-1")
        said_at = Path(file).stat().st_mtime_ns // 1000
    except OSError as error:
        raise UsageError(f"the cookie file {file} cannot be read: {error.strerror}") from None
    return read_cookies(text, file, said_at)


def _accounts(file: str) -> dict[str, Account]:
    try:
        text = Path(file).read_text("utf-8-sig")
    except OSError as error:
        raise UsageError(f"the auth file {file} cannot be read: {error.strerror}") from None
    except UnicodeError:
        raise UsageError(f"the auth file {file} is not a text in UTF-8") from None
    return {_host(entry, file): Account(entry.login, entry.password or "") for entry in read_entries(text, file)}


def _host(entry: Entry, file: str) -> str:
    name = entry.machine
    url = normalise(f"http://{name}/")
    if url is None or url.count("/") != 3 or (":" in name and not name.endswith("]")):
        raise UsageError(
            f"line {entry.line} of the auth file {file} has machine {name!r}; write a host name, without port or path"
        )
    return host_of(url)


def save_cookies(path: Path, cookies: Iterable[list[Cookie]]) -> None:
    """Write a cookie file that nobody but its owner can read, part after part; without cookies there is none."""
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
