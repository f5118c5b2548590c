"""Fuzzes one target with atheris: `python -m fuzz.one TARGET` and arguments of libFuzzer."""

from __future__ import annotations

import sys
from importlib import import_module

import atheris


def main() -> None:
    """Fuzz until libFuzzer has had enough; it ends the process."""
    target = sys.argv.pop(1)
    with atheris.instrument_imports(include=["muniment"]):
        check = import_module(f"fuzz.{target}").check
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
