"""Waiting for the disk, where a system has a call of its own for it and where a filesystem does not take that."""

from __future__ import annotations

import fcntl
import os

import pytest

from muniment import disk
from muniment.archive.durable import GrowingFile, remove, rename, sync_path


@pytest.fixture
def calls(monkeypatch):
    """The calls that reach the kernel, by name."""
    made: list[str] = []
    for module, name in ((os, "fsync"), (os, "fdatasync"), (fcntl, "fcntl")):
        if hasattr(module, name):
            real = getattr(module, name)
            monkeypatch.setattr(module, name, lambda *given, name=name, real=real: made.append(name) or real(*given))
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


@pytest.mark.linux
def test_linux_has_no_other_call(tmp_path, calls):
    everything(tmp_path)
    assert calls == ["fdatasync", "fsync", "fsync", "fsync"]


def test_a_call_that_empties_the_disks_memory_is_enough(tmp_path, calls, monkeypatch):
    monkeypatch.setattr(disk, "_THROUGH", fcntl.F_GETFD)  # any that the filesystem takes
    everything(tmp_path)
    assert calls == ["fcntl"] * 4


def test_where_a_filesystem_does_not_take_it_there_is_fsync(tmp_path, calls, monkeypatch):
    monkeypatch.setattr(disk, "_THROUGH", 0x7FFF)
    everything(tmp_path)
    assert [name.removeprefix("fdata").removeprefix("f") for name in calls] == ["cntl", "sync"] * 4


def test_a_disk_that_fails_is_told_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "_THROUGH", 0x7FFF)
    reader, writer = os.pipe()
    try:
        for wait in (disk.sync, disk.sync_data):
            with pytest.raises(OSError, match=r"Invalid argument|not supported"):
                wait(writer)
    finally:
        os.close(reader)
        os.close(writer)
