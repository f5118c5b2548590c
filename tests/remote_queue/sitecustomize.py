"""Gives every crawl of this Python a queue far away (tests/support/remote_queue.py). Python loads this first."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import ModuleType

LOCAL = "muniment.tracker.queue.local"
REMOTE = Path(__file__).resolve().parents[1] / "support" / "remote_queue.py"


class _Replacing(importlib.abc.Loader):
    """Loads the module of the local queue, and puts the other one in its place."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        spec = importlib.util.spec_from_file_location("remote_queue", REMOTE)
        assert spec is not None
        assert spec.loader is not None
        remote = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(remote)
        module.LocalQueue = partial(remote.RemoteQueue, local=module.LocalQueue)  # type: ignore[attr-defined]


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != LOCAL:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        assert spec.loader is not None
        spec.loader = _Replacing(spec.loader)
        return spec


sys.meta_path.insert(0, _Finder())
