"""What pages ask about captures, whether indexes in directories answer or the attempts of a tracker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from muniment.model.network.captures import CaptureQuery, CaptureRow

__all__ = ["CaptureSource"]


class CaptureSource(Protocol):
    """Where captures are searched, and their bytes found; every call may raise UsageError and NotFoundError."""

    def captures(self, wanted: CaptureQuery) -> list[CaptureRow]:
        """A page of captures, and one more."""

    def record(self, job: int, file: str, offset: int) -> Iterator[bytes]:
        """A record as it is stored."""

    def payload(self, job: int, file: str, offset: int) -> Iterator[bytes]:
        """The payload of a capture."""

    def view_address(self, job: int, url: str, at: int) -> str:
        """Where the capture of a URL nearest to a moment is shown."""
