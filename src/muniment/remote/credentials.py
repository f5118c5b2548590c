"""How a server is reached: its address, the token that opens it, and the certificates that it is known by."""

from __future__ import annotations

import ipaddress
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from muniment.errors import UsageError
from muniment.settings.environment import token_given

__all__ = ["ServerAddress", "server_address"]

_MOST_TOKEN = 1_000


class ServerAddress(Struct, frozen=True):
    """A server, and what is necessary to ask it."""

    url: str
    """Without a slash at the end."""
    token: str
    ca_file: Path | None = None

    def certificates(self) -> ssl.SSLContext:
        """What its certificate is checked with; raises UsageError for a file that holds none."""
        try:
            return ssl.create_default_context(cafile=str(self.ca_file) if self.ca_file else None)
        except (OSError, ssl.SSLError) as error:
            why = getattr(error, "strerror", None) or "it holds no certificates"
            raise UsageError(f"the file of --ca-file {self.ca_file} cannot be used: {why}") from None

    def __repr__(self) -> str:
        """Without the token."""
        return f"ServerAddress({self.url!r})"


def server_address(
    text: str, token_file: Path | None, *, plain_http: bool = False, ca_file: Path | None = None
) -> ServerAddress:
    """The address that a command line names, with the token of a file or of MUNIMENT_TOKEN. Raises UsageError."""
    url = _checked(text, plain_http=plain_http)
    return ServerAddress(url, _token(token_file), ca_file)


def _checked(text: str, *, plain_http: bool) -> str:
    shown = text.partition("?")[0].rpartition("@")[2][:200]
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not text.isprintable() or " " in text:
        raise UsageError(f"{shown!r} is not the URL of a server; write it as http://HOST:PORT or https://HOST")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise UsageError(
            f"the URL of the server {shown!r} holds more than its address: give a token with --token-file or in "
            "MUNIMENT_TOKEN"
        )
    if parts.scheme == "http" and not plain_http and not _is_loopback(str(parts.hostname)):
        raise UsageError(
            f"{shown} would get the token unencrypted: use https://, or give --plain-http when the network is trusted"
        )
    return text.rstrip("/")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _token(file: Path | None) -> str:
    if file is None:
        token, where = token_given(), "MUNIMENT_TOKEN"
        if not token:
            raise UsageError("no token given: give --token-file FILE, or set MUNIMENT_TOKEN")
    else:
        where = f"the token file {file}"
        try:
            with file.open("rb") as stream:
                token = stream.read(_MOST_TOKEN + 1).decode().strip()
        except OSError as error:
            raise UsageError(f"{where} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            token = ""
    if not 0 < len(token) <= _MOST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(f"{where} does not hold a token: it must be one word of ASCII characters")
    return token
