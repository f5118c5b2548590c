"""What the environment of the user says: contact, operator, server, where processes are kept. Nothing else reads it."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

from muniment.errors import UsageError

__all__ = [
    "contact_given",
    "operator_name",
    "processes_directory",
    "redis_given",
    "redis_password_given",
    "server_given",
    "token_given",
]


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
