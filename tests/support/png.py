"""Pictures in PNG, decoded by what the specification says of it, line by line; eight bits a channel."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy

__all__ = ["pixels", "rgb_at"]

_CHANNELS = {2: 3, 6: 4}
"""By colour type: RGB, and RGB with alpha."""


def pixels(png: bytes) -> Any:
    """The colours of a picture: an array of height, width and three channels."""
    return numpy.stack(list(_lines(png)))[:, :, :3]


def rgb_at(png: bytes, x: int, y: int) -> tuple[int, int, int]:
    """The colour of a point."""
    line = next(islice(_lines(png), y, None))
    red, green, blue = (int(part) for part in line[x][:3])
    return red, green, blue


def _lines(png: bytes) -> Iterator[Any]:
    """The lines of a picture, each with a row for each pixel."""
    at, packed, width, channels = 8, b"", 0, 3
    while at < len(png):
        length, kind = int.from_bytes(png[at : at + 4], "big"), png[at + 4 : at + 8]
        block = png[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, channels = int.from_bytes(block[:4], "big"), _CHANNELS[block[9]]
        elif kind == b"IDAT":
            packed += block
        at += length + 12
    above = numpy.zeros((width, channels), numpy.uint8)
    for line in numpy.frombuffer(zlib.decompress(packed), numpy.uint8).reshape(-1, 1 + width * channels):
        above = _unfiltered(int(line[0]), line[1:].reshape(width, channels), above)
        yield above


def _unfiltered(kind: int, raw: Any, above: Any) -> Any:
    if kind == 0:
        return raw
    if kind == 1:
        return raw.cumsum(axis=0, dtype=numpy.uint8)
    if kind == 2:
        return raw + above
    assert kind in (3, 4)
    made = _by_neighbours(kind, raw.tobytes(), above.tobytes(), raw.shape[1])
    return numpy.frombuffer(made, numpy.uint8).reshape(raw.shape)


def _by_neighbours(kind: int, line: bytes, above: bytes, step: int) -> bytes:
    """The filters Average and Paeth, which go by the pixel before."""
    out = bytearray(line)
    for at, up in enumerate(above):
        left = out[at - step] if at >= step else 0
        corner = above[at - step] if at >= step else 0
        near = (left + up) // 2 if kind == 3 else _paeth(left, up, corner)
        out[at] = (out[at] + near) & 0xFF
    return bytes(out)


def _paeth(left: int, up: int, corner: int) -> int:
    return min((left, up, corner), key=lambda one: abs(left + up - corner - one))
