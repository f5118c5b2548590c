"""Processes as the tests see them: what is gone, or waits as a zombie to be taken note of, is nobody."""

from __future__ import annotations

import contextlib

import psutil


def children(pid: int, word: str) -> list[psutil.Process]:
    """The living children of a process that have this word on their command line: `worker`, `index`."""
    found = []
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(pid).children():
            with contextlib.suppress(psutil.NoSuchProcess):  # a zombie has no command line
                if word in child.cmdline():
                    found.append(child)
    return found
