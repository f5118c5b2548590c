"""The frames of messages: a 32-bit big-endian length and a msgpack array whose first element names the message."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from muniment.errors import ProtocolError

__all__ = ["Frames", "encode"]

M = TypeVar("M")
_LENGTH = struct.Struct(">I")
_LARGEST = 1 << 30
_encoder = msgspec.msgpack.Encoder()


def encode(message: Struct) -> bytes:
    """The frame of a message."""
    body = _encoder.encode(message)
    return _LENGTH.pack(len(body)) + body


class Frames(Generic[M]):
    """Takes bytes as they come and gives whole messages."""

    def __init__(self, kind: type[M]) -> None:
        self._decoder = msgspec.msgpack.Decoder(kind)
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[M]:
        """The messages that these bytes complete; raises ProtocolError for anything else."""
        buffer = self._buffer
        buffer += data
        at = 0
        try:
            while len(buffer) - at >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(buffer, at)
                if length > _LARGEST:
                    raise ProtocolError(f"a message of {length} bytes")
                end = at + _LENGTH.size + length
                if end > len(buffer):
                    break
                message = self._decoder.decode(memoryview(buffer)[at + _LENGTH.size : end].tobytes())
                at = end
                yield message
        except msgspec.DecodeError as error:
            raise ProtocolError(f"an invalid message: {error}") from None
        finally:
            del buffer[:at]
