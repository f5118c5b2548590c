"""Links out of documents: bytes in, references out, with no IO, no await and no clock."""

from __future__ import annotations

from muniment.extract.links import Extracted, extract

__all__ = ["Extracted", "extract"]
