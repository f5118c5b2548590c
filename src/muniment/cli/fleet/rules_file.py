"""Rules of a job in a file: a JSON array of objects."""

from __future__ import annotations

import msgspec

from muniment.app.inputs.bounded_file import bounded_bytes
from muniment.errors import UsageError
from muniment.model.rule import Rule

__all__ = ["read_rules"]

_MOST = 16 << 20


def read_rules(file: str) -> list[Rule]:
    """The rules of a file; raises UsageError that says which of them is not one."""
    raw = bounded_bytes(file, f"the file of rules {file}", _MOST)
    names = set(Rule.__struct_fields__)
    try:
        for number, fields in enumerate(msgspec.json.decode(raw, type=list[dict[str, msgspec.Raw]]), 1):
            if unknown := sorted(set(fields) - names):
                raise UsageError(f"rule {number} of {file} has an unknown field {unknown[0][:60]!r}")
        return msgspec.json.decode(raw, type=list[Rule])
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"{file} is not a JSON array of rules: {error}") from None
