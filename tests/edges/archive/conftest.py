"""A directory to write archives in, and the segment that most tests begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from muniment import disk
from muniment.archive.check.directory import check
from muniment.archive.segment import Segment
from muniment.archive.warc.warcinfo import WarcInfo

INFO = WarcInfo(software="muniment/test", user_agent="muniment/test (+https://x.example/)", robots="obey")


class Directory:
    """An output directory."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.parts = out / "parts"

    def segment(self, number: int = 0) -> Segment:
        return Segment.open(self.out, self.parts, self.name(number), INFO)

    @staticmethod
    def name(number: int = 0) -> str:
        return f"muniment-{number:05d}.warc.gz"

    def warc(self, number: int = 0) -> Path:
        return self.out / self.name(number)

    def open_warc(self, number: int = 0) -> Path:
        return self.out / (self.name(number) + ".open")

    def journal(self, number: int = 0) -> Path:
        return self.parts / (self.name(number) + ".journal")

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.out)) for path in self.out.rglob("*") if path.is_file())


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    out = tmp_path / "out"
    out.mkdir()
    return Directory(out)


@pytest.fixture
def check_in_ranges(monkeypatch):
    """The check of a directory whose files are read in ranges of about so many bytes."""

    def run(out, size):
        with monkeypatch.context() as patch:
            patch.setattr("muniment.archive.check.directory._SMALLEST", size)
            patch.setattr("muniment.archive.check.directory._LARGEST", size)
            return check(out)

    return run


@pytest.fixture
def check_every_way(check_in_ranges):
    """The check of a directory, which must be the same in one piece, record by record, and between."""

    def run(out):
        whole = check(out)
        for size in (1, 900):
            assert check_in_ranges(out, size) == whole
        return whole

    return run


class Killed(BaseException):
    """Stands for the process being killed at this system call."""


@pytest.fixture
def kill_at(monkeypatch):
    """Run a step with every durable system call numbered, and die just before the n-th."""
    import os

    names = ("fsync", "fdatasync", "replace", "rename", "unlink", "rmdir", "ftruncate")
    real = {name: getattr(os, name) for name in names if hasattr(os, name)}
    real["_renameat2"] = disk._renameat2

    def run(step, n: int) -> bool:
        """Whether the step came to its end before the n-th call."""
        count = 0

        def counted(name):
            def call(*args, **kwargs):
                nonlocal count
                count += 1
                if count == n:
                    raise Killed
                return real[name](*args, **kwargs)

            return call

        with monkeypatch.context() as patch:
            # the call that is none of Python's
            patch.setattr(disk, "_renameat2", counted("_renameat2"))
            for name in real:
                if name == "_renameat2":
                    continue
                patch.setattr(os, name, counted(name))
            try:
                step()
            except Killed:
                return False
        return True

    return run
