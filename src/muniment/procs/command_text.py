"""What of a process's arguments and environment may be written down, and how a command is quoted for a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from functools import lru_cache

from muniment.model.mask import MASK, mask_of, redact

__all__ = ["MASK", "plain_text", "script_of", "told_command", "told_environment"]

_SECRET = re.compile(
    r"auth(?!or)|cookie|(?:^|[_-])key|apikey|token|secret|session|passw|pwd$|credential|dsn", re.IGNORECASE
)
_NAMED = re.compile(r"(-{0,2}[\w.-]+)=(.*)", re.DOTALL)
_QUERY = re.compile(r"([?&;][\w.-]*(?:key|token|secret|passw\w*|signature|credential)[\w.-]*=)[^&;#\s]*", re.IGNORECASE)
_TOLD = re.compile(
    r"PATH|HOME|LANG|LC_\w+|TZ|TMPDIR|USER|LOGNAME|SHELL|TERM|PYTHON\w*|XDG_\w+|MUNIMENT_\w+|MALLOC_\w+|ARROW_\w+"
)
_FILES = ("-file", "-dir", "-path")


def plain_text(text: str) -> str:
    """Text that any database takes: no NUL, no halves of surrogate pairs."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def told_command(arguments: Iterable[str]) -> tuple[str, ...]:
    """The arguments of a process with passwords, tokens and secret headers masked."""
    told: list[str] = []
    hidden, mask = False, None
    for argument in arguments:
        if mask is not None:
            told.append(plain_text(mask(argument)))
            mask = None
            continue
        mask = mask_of(argument)
        if hidden and not argument.startswith("--"):
            told.append(MASK)
            hidden = False
            continue
        told.append(plain_text(_masked(argument)))
        hidden = argument.startswith("--") and "=" not in argument and _is_secret(argument)
    return tuple(told)


def _is_secret(name: str) -> bool:
    return _SECRET.search(name) is not None and not name.endswith(_FILES) and name != "--cookies"


def _masked(argument: str) -> str:
    named = _NAMED.fullmatch(argument)
    if named and _is_secret(named[1]):
        return f"{named[1]}={MASK}"
    return _QUERY.sub(rf"\1{MASK}", redact(argument))


def told_environment(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The variables that say how a process ran; all others may hold secrets and are left out."""
    told = ((name, value) for name, value in sorted(environment.items()) if _TOLD.fullmatch(name))
    return tuple((name, MASK if _is_secret(name) else _told_value(value)) for name, value in told)


@lru_cache(256)
def _told_value(value: str) -> str:
    """A value that may be shown; commands that are launched one after the other have most of them in common."""
    return plain_text(redact(value))


def script_of(command: Iterable[str], directory: str) -> str:
    """A shell script that shows a command and could give it again; every word is quoted."""
    return f"#!/bin/sh\ncd {shlex.quote(directory)} && exec {shlex.join(command)}\n"
