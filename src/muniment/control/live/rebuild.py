"""Having the layout of a job in Redis written anew, by the process that runs the job."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from muniment.clock import monotonic
from muniment.errors import UsageError
from muniment.live import layout
from muniment.live.link import RedisLink, typed

__all__ = ["rebuild"]

_PATIENCE_S, _LOOK_S = 10.0, 0.1


def rebuild(link: RedisLink, ident: str) -> None:
    """Ask for it, and wait; raises UsageError when nobody does it, ServerLostError without a server."""
    client = link.needed()
    written: Any = partial(client.hget, layout.own_key(ident), "written_at")
    before = typed(written)
    if not client.publish(layout.rebuild_channel(ident), "now"):
        raise UsageError(f"no process shows {ident} in Redis now: its next run writes the layout")
    give_up = monotonic() + _PATIENCE_S
    while typed(written) == before:
        if monotonic() > give_up:
            raise UsageError(f"the process that shows {ident} did not write it within {_PATIENCE_S:.0f} s")
        time.sleep(_LOOK_S)
