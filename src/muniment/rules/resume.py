"""Resume: which settings a second run on a directory may not change."""

from __future__ import annotations

import shlex
from typing import Any

from muniment.settings.option_table import Option, Settings, options

__all__ = ["changed_fixed"]


def changed_fixed(before: Settings, after: Settings) -> list[str]:
    """With what the first run was begun, in the words of the command line, where it differs and may not."""
    return [
        _given(option, getattr(before, name))
        for name, _, _, option in options()
        if option.on_resume == "fixed" and getattr(before, name) != getattr(after, name)
    ]


def _given(option: Option, value: Any) -> str:
    flag = option.flags[0]
    if isinstance(value, bool):
        return f"with {flag}" if value else f"with {option.off}" if option.off else f"without {flag}"
    values = value if isinstance(value, tuple) else () if value is None else (value,)
    return " ".join(["with", *(f"{flag} {shlex.quote(str(one))}" for one in values)]) if values else f"without {flag}"
