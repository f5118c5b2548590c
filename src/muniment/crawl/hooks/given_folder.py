"""Folders with files that hooks are given: removed when the hooks have ended, whatever these made of them."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

__all__ = ["remove_given"]


def remove_given(folder: Path, *names: str) -> None:
    """Remove a folder that holds these files, as a rule; what a hook has put in its place is not followed."""
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        with suppress(OSError):
            folder.unlink()
        return
    try:
        for name in names:
            os.unlink(name, dir_fd=held)
        os.rmdir(folder)  # noqa: PTH106  (of every page)
    except OSError:  # hooks have changed it
        with suppress(OSError):
            shutil.rmtree(folder)
    finally:
        os.close(held)
