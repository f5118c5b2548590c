"""The state of a browser that a person has logged in with: cookies and local storage, JSON as Playwright writes it."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from muniment.app.inputs.bounded_file import bounded_bytes
from muniment.errors import UsageError
from muniment.model.cookie import Cookie

__all__ = ["StorageState", "read_storage_state"]

_MOST_BYTES = 16 << 20
Storage = dict[str, dict[str, str]]


class StorageState(Struct, frozen=True):
    """What a browser begins with."""

    cookies: list[Cookie] = []
    storage: Storage = {}
    """By origin, names and values of its local storage."""


class _StoredCookie(Struct, rename="camel"):
    name: str
    value: str
    domain: str
    path: str = "/"
    expires: float = -1
    http_only: bool = False
    secure: bool = False


class _StoredItem(Struct):
    name: str
    value: str


class _StoredOrigin(Struct, rename="camel"):
    origin: str
    local_storage: list[_StoredItem] = []


class _StateFile(Struct):
    cookies: list[_StoredCookie] = []
    origins: list[_StoredOrigin] = []


def read_storage_state(file: str) -> StorageState:
    """The state in a file; raises UsageError that shows nothing of what is in it."""
    what = f"the file {file} of --storage-state"
    raw = bounded_bytes(file, what, _MOST_BYTES)
    try:
        found = msgspec.json.decode(raw, type=_StateFile)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise UsageError(
            f"{what} is not what Playwright's storageState() writes: JSON with cookies and origins"
        ) from None
    said_at = Path(file).stat().st_mtime_ns // 1000
    storage = {one.origin: {item.name: item.value for item in one.local_storage} for one in found.origins}
    return StorageState([_cookie(one, said_at) for one in found.cookies], storage)


def _cookie(one: _StoredCookie, said_at: int) -> Cookie:
    domain = one.domain.lower()
    return Cookie(
        domain=domain.removeprefix("."),
        name=one.name,
        path=one.path,
        value=one.value,
        host_only=not domain.startswith("."),
        secure=one.secure,
        http_only=one.http_only,
        expires_at=max(0, int(one.expires)),
        set_at=said_at,
    )
