"""Masks: texts without the secrets in them, for whatever is kept or shown."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = [
    "MASK",
    "is_secret_name",
    "mask_of",
    "masked_header",
    "masked_proxy",
    "masked_setting",
    "masked_url",
    "redact",
]

MASK = "***"
_PLACE = r"(?:[^\s=@/]*=)?"
_HEADER = re.compile(rf"({_PLACE}[!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:")
_SECRET_HEADER = re.compile(
    rf"^({_PLACE}[\w-]*(?:auth|cookie|key|token|secret|session|passw|credential)[\w-]*)\s*:.*",
    re.DOTALL | re.IGNORECASE,
)
_URL = re.compile(r"(\s*(?:[a-z][a-z0-9+.-]*:[\\/]{2,}|https?:[\\/]*))[^/\\?#]*@", re.IGNORECASE)
"""An account where a browser sees one: up to the last @ before the path, spaces included."""
_BROKEN_URL = re.compile(
    r"(\s*https?:[\\/]*)(?!\[)[^/\\?#@]*:(?!\d*(?:[/\\?#]|$))[^/\\?#]*[/\\?#].*@", re.DOTALL | re.IGNORECASE
)
"""A password with a slash in it: the text before the slash is not a port."""
_IN_TEXT = re.compile(r"(?<=://)[^/?#\s]*@")
_NO_SCHEME = re.compile(r"((?!mailto:|https?:)[^\s:/?#=@]+:)(?!//|\d+/)\S*@")
"""NAME:PASSWORD@HOST alone."""
_PROXY_ACCOUNT = re.compile(r"(?<=://).*@", re.DOTALL)
_BEFORE_AT = re.compile(r"(\s*(?:[a-z][a-z0-9+.-]*:)?[\\/]*).*@", re.DOTALL | re.IGNORECASE)


def redact(argument: str) -> str:
    """A command-line argument without accounts in URLs, values of secret headers, and those of `--header`."""
    option, equals, value = argument.partition("=")
    mask = mask_of(option) or mask_of(f"--{option}")
    if equals and mask is not None:
        return f"{option}={mask(value)}"
    if "@" in argument:
        for pattern in (_BROKEN_URL, _URL, _NO_SCHEME):
            if match := pattern.match(argument):
                argument = f"{match[1]}{MASK}@{argument[match.end() :]}"
        argument = _IN_TEXT.sub(f"{MASK}@", argument)
    return _SECRET_HEADER.sub(rf"\1: {MASK}", argument)


def masked_header(text: str) -> str:
    """A `--header` value without the header's: its place and its name, or the file that it is in."""
    if text.startswith("@"):
        return text
    match = _HEADER.match(text)
    return f"{match[1]}: {MASK}" if match else MASK


def masked_proxy(text: str) -> str:
    """A `--proxy` value without the account of its URL, whatever that holds."""
    return _PROXY_ACCOUNT.sub(f"{MASK}@", text, count=1)


def mask_of(option: str) -> Callable[[str], str] | None:
    """The function that masks the values of an option, also if its name has an extra s; None for most."""
    return _MASKS.get(option.removesuffix("s"))


def masked_setting(text: str) -> str:
    """A `--hook-env` value without the secret of it."""
    name, equals, _ = text.partition("=")
    return f"{name}={MASK}" if equals and is_secret_name(name) else text


def is_secret_name(name: str) -> bool:
    """Whether the value of a setting is masked wherever it is shown."""
    return _SECRET_SETTING.search(name) is not None


_SECRET_SETTING = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|COOKIE", re.IGNORECASE)
_MASKS: dict[str, Callable[[str], str]] = {
    "--header": masked_header,
    "--proxy": masked_proxy,
    "--hook-env": masked_setting,
}


def masked_url(text: str) -> str:
    """An invalid URL as given, masked: before its last @, only a scheme is shown."""
    return _BEFORE_AT.sub(rf"\1{MASK}@", text, count=1)
