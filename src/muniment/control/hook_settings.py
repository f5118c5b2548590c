"""Settings for hooks as they are given: on the command line, in a file, or as a variable of the operator's own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from muniment.errors import UsageError
from muniment.settings.environment import variable

__all__ = ["given_settings"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST = 1 << 20


def given_settings(given: Iterable[str], file: Path | None = None) -> dict[str, str]:
    """By name: the lines of a file, then what the command line says. Raises UsageError, which shows no value."""
    settings: dict[str, str] = {}
    for number, line in enumerate(_lines(file), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            name, equals, value = line.partition("=")
            if not equals:
                raise UsageError(f"--hook-env-file {file}: line {number} is not NAME=VALUE")
            settings[_checked(name.strip(), f"--hook-env-file {file}: line {number}")] = value
    for one in given:
        name, equals, value = one.partition("=")
        _checked(name, "--hook-env")
        found = value if equals else variable(name)
        if found is None:
            raise UsageError(f"--hook-env {name}: there is no such variable; write {name}=VALUE")
        settings[name] = found
    return settings


def _lines(file: Path | None) -> list[str]:
    if file is None:
        return []
    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST + 1)
        if len(data) > _MOST:
            raise UsageError(f"--hook-env-file {file} is over 1 MiB")
        return data.decode().splitlines()
    except OSError as error:
        raise UsageError(f"--hook-env-file {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"--hook-env-file {file} is not UTF-8") from None


def _checked(name: str, where: str) -> str:
    if not _NAME.fullmatch(name):
        raise UsageError(f"{where}: a name has letters, digits and _")
    if name.startswith(("LD_", "MUNIMENT_")):
        raise UsageError(f"{where}: {name} is not a setting of hooks")
    return name
