"""Time-outs of stopping: the seconds between asking a process to end and ending it by force."""

from __future__ import annotations

__all__ = ["COMMAND_S", "FORCED_S", "HOOK_S", "SHIM_S", "SUBTREE_S"]

SUBTREE_S = 30.0
"""A subtree of Muniment's own: a crawl lets what is in flight end for ten seconds, then seals its files."""
COMMAND_S = 5.0
"""A command that is not Muniment's, unless its launcher gives another grace."""
HOOK_S = 2.0
"""A hook at its time-out; one in the background has its own time-out before that, from the end of its page."""
SHIM_S = 3.0
"""A shim, to end by force what it keeps."""
FORCED_S = 5.0
"""What was ended by force, to be gone."""
