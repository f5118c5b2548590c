"""How this system keeps processes: by Linux's own means where the interpreter has them, else by those of every Unix."""

from __future__ import annotations

import os

if hasattr(os, "pidfd_open"):
    from muniment.procs.platform.linux import (
        RSS_UNIT,
        Awaited,
        booted_at,
        everyone,
        look,
        mark_of,
        place,
        send,
        started_at,
        unnamed_file,
    )
else:
    from muniment.procs.platform.portable import (  # type: ignore[assignment]
        RSS_UNIT,
        Awaited,
        booted_at,
        everyone,
        look,
        mark_of,
        place,
        send,
        started_at,
        unnamed_file,
    )

__all__ = [
    "RSS_UNIT",
    "Awaited",
    "booted_at",
    "everyone",
    "look",
    "mark_of",
    "place",
    "send",
    "started_at",
    "unnamed_file",
]
