"""What the environment of the user says: contact, operator, server, where processes are kept. Nothing else reads it."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

from muniment.errors import UsageError

__all__ = [
    "contact_given",
    "node_folders",
    "operator_name",
    "own_variables",
    "processes_directory",
    "program_folders",
    "server_given",
    "token_given",
    "variable",
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


def server_given() -> str:
    """MUNIMENT_SERVER: the URL of the server where none is given on the command line."""
    return os.environ.get("MUNIMENT_SERVER", "").strip()


def token_given() -> str:
    """MUNIMENT_TOKEN: the token where no file of one is given."""
    return os.environ.get("MUNIMENT_TOKEN", "").strip()


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
