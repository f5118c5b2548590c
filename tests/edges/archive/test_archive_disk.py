"""Waiting for the disk: which calls each way makes."""

from __future__ import annotations

import os

import pytest

from muniment.archive.durable import GrowingFile, remove, rename, sync_path


@pytest.fixture
def calls(monkeypatch):
    """The calls that reach the kernel, by name."""
    made: list[str] = []
    for name in ("fsync", "fdatasync"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *given, name=name, real=real: made.append(name) or real(*given))
    return made


def everything(tmp_path):
    """Each way to wait for the disk, once."""
    file = GrowingFile(tmp_path / "a")
    file.append(b"kept")
    file.sync()
    file.close()
    sync_path(tmp_path / "a")
    rename(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"kept"
    remove(tmp_path / "b")


def test_bytes_and_names_are_synced(tmp_path, calls):
    everything(tmp_path)
    assert calls == ["fdatasync", "fsync", "fsync", "fsync"]
