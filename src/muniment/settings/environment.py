"""What the environment of the user says: contact, operator, server, where processes are kept. Nothing else reads it."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

from msgspec import Struct

from muniment.errors import UsageError

__all__ = [
    "ArrayTask",
    "array_task",
    "browser_given",
    "contact_given",
    "node_folders",
    "operator_name",
    "own_variables",
    "processes_directory",
    "program_folders",
    "redis_given",
    "redis_password_given",
    "server_given",
    "token_given",
    "variable",
    "wabac_given",
]


class ArrayTask(Struct, frozen=True):
    """Which of several tasks alike this process is."""

    index: int
    count: int | None
    """None: the environment does not say, or not for certain."""


def array_task() -> ArrayTask | None:
    """The task of an Indexed Job of Kubernetes or of an array of Slurm; None outside of them. Raises UsageError."""
    if (index := _number("JOB_COMPLETION_INDEX")) is not None:
        # Kubernetes has no name for the count; a manifest may have this one
        return ArrayTask(index, _number("JOB_COMPLETIONS"))
    if (index := _number("SLURM_ARRAY_TASK_ID")) is None:
        return None
    count, first, last = map(_number, (f"SLURM_ARRAY_TASK_{name}" for name in ("COUNT", "MIN", "MAX")))
    # `--array=5` runs one task of an array again: its count is 1
    return ArrayTask(index, count if first == 0 and last is not None and count == last + 1 else None)


def _number(name: str) -> int | None:
    text = os.environ.get(name, "").strip()
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise UsageError(f"{name}: {text[:40]!r} is not a number")
    return int(text)


def browser_given() -> str:
    """MUNIMENT_BROWSER: the browser where none is given on the command line."""
    return os.environ.get("MUNIMENT_BROWSER", "").strip()


def contact_given() -> str:
    """MUNIMENT_CONTACT: the contact where none is given on the command line."""
    return os.environ.get("MUNIMENT_CONTACT", "").strip()


def operator_name() -> str:
    """The operator, for the warcinfo record: MUNIMENT_OPERATOR, else the login name."""
    try:
        name = os.environ.get("MUNIMENT_OPERATOR") or getpass.getuser()
    except (KeyError, OSError):
        return ""
    return name.encode("utf-8", "replace").decode()


def redis_given() -> str:
    """MUNIMENT_REDIS: the URL of Redis where none is given on the command line; it may have a password."""
    return os.environ.get("MUNIMENT_REDIS", "").strip()


def redis_password_given() -> str:
    """MUNIMENT_REDIS_PASSWORD: the password of Redis."""
    return os.environ.get("MUNIMENT_REDIS_PASSWORD", "")


def server_given() -> str:
    """MUNIMENT_SERVER: the URL of the server where none is given on the command line."""
    return os.environ.get("MUNIMENT_SERVER", "").strip()


def token_given() -> str:
    """MUNIMENT_TOKEN: the token where no file of one is given."""
    return os.environ.get("MUNIMENT_TOKEN", "").strip()


def wabac_given() -> str:
    """MUNIMENT_WABAC: the file of wabac.js where none is given on the command line."""
    return os.environ.get("MUNIMENT_WABAC", "")


def program_folders() -> str:
    """PATH, as programs for hooks are found."""
    return os.environ.get("PATH", os.defpath)


def node_folders() -> list[Path]:
    """NODE_PATH: where packages of Node are found."""
    return [Path(folder).absolute() for folder in os.environ.get("NODE_PATH", "").split(os.pathsep) if folder]


def own_variables() -> dict[str, str]:
    """All variables: what hooks may get of them is chosen by name."""
    return dict(os.environ)


def variable(name: str) -> str | None:
    """A variable that the operator hands on by its name."""
    return os.environ.get(name)


def processes_directory() -> Path:
    """The directory of this user's processes: MUNIMENT_PROCESSES, else `muniment` in the directory of program state.

    Raises UsageError when there is no home directory, and when its name is not text.
    """
    try:
        place = Path(os.environ.get("MUNIMENT_PROCESSES") or _state_home() / "muniment").absolute()
        str(place).encode()
    except RuntimeError:
        raise UsageError("there is no home directory for the store of processes: set MUNIMENT_PROCESSES=DIR") from None
    except (OSError, UnicodeEncodeError):
        raise UsageError(
            "the working directory is gone, or its name is not UTF-8: set MUNIMENT_PROCESSES=DIR"
        ) from None
    return place


def _state_home() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
