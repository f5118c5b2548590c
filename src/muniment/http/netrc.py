"""Accounts in netrc format: `machine HOST login NAME password WORD`, over any number of lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct, structs

from muniment.errors import UsageError

__all__ = ["NetrcEntry", "read_entries"]

# a word in quotes, or one without; a backslash takes the next sign as it is
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|((?:[^\s\\]|\\.)+)')


class NetrcEntry(Struct, frozen=True):
    """What the file says of one machine; the line is where it begins, counted from 1."""

    line: int
    machine: str
    login: str = ""
    password: str | None = None


def read_entries(text: str, file: str) -> list[NetrcEntry]:
    """The entries of a file; raises UsageError with the line that is wrong, and shows nothing of it."""
    words = _words(text)
    found: list[NetrcEntry] = []
    for line, word in words:
        if word == "default":
            raise UsageError(
                f"line {line} of the auth file {file} is a default entry; an account is for one host: name it"
            )
        _, value = next(words, (line, None))
        if value is None or not (word == "machine" or (found and word in _FIELDS)):
            # what stands there may be a password
            raise UsageError(f"line {line} of the auth file {file} is not in netrc format")
        if word == "machine":
            found.append(NetrcEntry(line, value))
        elif word == "password":
            found[-1] = structs.replace(found[-1], password=value)
        elif word != "account":
            found[-1] = structs.replace(found[-1], login=value)
    for entry in found:
        if entry.password is None:
            raise UsageError(f"line {entry.line} of the auth file {file} has a machine without a password")
    return found


_FIELDS = frozenset({"login", "user", "account", "password"})


def _words(text: str) -> Iterator[tuple[int, str]]:
    """Words with their lines; comments and macros, which end with an empty line, are left out."""
    key = True
    macro = False
    for number, line in enumerate(text.splitlines(), 1):
        macro = macro and bool(line.strip())
        for match in () if macro else _WORD.finditer(line):
            word = re.sub(r"\\(.)", r"\1", match[2] if match[1] is None else match[1])
            macro = key and word == "macdef"
            if macro or (key and match[0].startswith("#")):
                break
            yield number, word
            key = not key
