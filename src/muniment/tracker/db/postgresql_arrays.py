"""A column of values as PostgreSQL takes it in binary: one array, packed in a few calls.

psycopg packs lists value by value in Python, which costs more than what the server does with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format
from sqlalchemy.types import BigInteger, Boolean, Integer, LargeBinary, SmallInteger, Text, TypeEngine

__all__ = ["adapt_arrays", "array_of"]

_HEAD = Struct(">iiIii").pack
"""Dimensions, whether there are NULLs, type of the elements, their number, number of the first."""
_LENGTH = Struct(">i").pack
_NULL = _LENGTH(-1)


class _Array(bytes):
    """An array in PostgreSQL's binary form (its source: `array_recv`)."""

    element = 0
    """Number of its elements' type in the catalogue, which is the same on every server; `number` is its own."""
    number = 0
    letter = ""
    size = 0


class _Int8s(_Array):
    element, number, letter, size = 20, 1016, "q", 8


class _Int4s(_Array):
    element, number, letter, size = 23, 1007, "i", 4


class _Int2s(_Array):
    element, number, letter, size = 21, 1005, "h", 2


class _Bools(_Array):
    element, number, letter, size = 16, 1000, "?", 1


class _Texts(_Array):
    element, number = 25, 1009


class _Bytes(_Array):
    element, number = 17, 1001


_KINDS: dict[type[TypeEngine[Any]], type[_Array]] = {
    BigInteger: _Int8s,
    Integer: _Int4s,
    SmallInteger: _Int2s,
    Boolean: _Bools,
    Text: _Texts,
    LargeBinary: _Bytes,
}


def array_of(kind: TypeEngine[Any]) -> Callable[[Sequence[Any]], bytes]:
    """The function that packs one or more values of a column's type."""
    made = _KINDS[type(kind)]

    def pack(values: Sequence[Any]) -> bytes:
        has_null = None in values
        head = _HEAD(1, has_null, made.element, len(values), 1)
        if made.letter and not has_null:
            return made(head + _fixed(made, values))
        return made(head + b"".join(_varying(made, values)))

    return pack


def _fixed(made: type[_Array], values: Sequence[Any]) -> bytes:
    each = [made.size] * (2 * len(values))
    each[1::2] = values
    return Struct(">" + ("i" + made.letter) * len(values)).pack(*each)


def _varying(made: type[_Array], values: Sequence[Any]) -> list[bytes]:
    parts = []
    for value in values:
        if value is None:
            parts.append(_NULL)
            continue
        if made is _Texts:
            # PostgreSQL's text has no NUL: what a server sent with one is kept without
            packed = (value.replace("\0", "\ufffd") if "\0" in value else value).encode()
        else:
            packed = Struct(">" + made.letter).pack(value) if made.letter else value
        parts += (_LENGTH(len(packed)), packed)
    return parts


class _Packed(Dumper):
    format = Format.BINARY

    def dump(self, obj: _Array) -> Buffer | None:
        return obj


def adapt_arrays(driver: psycopg.Connection[Any]) -> None:
    """Let a connection send the arrays of `array_of` unchanged."""
    for made in _KINDS.values():
        dumper = type(f"{made.__name__}Dumper", (_Packed,), {"oid": made.number})
        driver.adapters.register_dumper(made, dumper)
