"""Resume: which settings a second run on a directory may not change."""

from __future__ import annotations

from muniment.settings import Settings, options

__all__ = ["changed_fixed"]


def changed_fixed(before: Settings, after: Settings) -> list[str]:
    """The options, as spelled on the command line, that differ and may not."""
    return [
        option.flags[0]
        for name, _, _, option in options()
        if option.on_resume == "fixed" and getattr(before, name) != getattr(after, name)
    ]
