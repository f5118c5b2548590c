"""Causes: why pages are left out, by how their reason begins. All pure."""

from __future__ import annotations

from muniment.rules import rule_engine
from muniment.rules.guards.family import TRAP

__all__ = ["BEGINNINGS", "DEAD", "IGNORED", "INSIDE", "LIMIT", "NOT_KEPT", "OTHER", "ROBOTS", "SET_ASIDE"]

OTHER = "other"
IGNORED, ROBOTS, DEAD, LIMIT, NOT_KEPT = "ignore", "robots", "dead-host", "limit", "noarchive"
INSIDE = "private-address"
SET_ASIDE = "trap"
BEGINNINGS = (
    (TRAP, SET_ASIDE),
    (rule_engine.IGNORED, IGNORED),
    (rule_engine.RULED, IGNORED),
    ("robots: the page ", NOT_KEPT),
    ("robots: ", ROBOTS),
    ("dead-host: ", DEAD),
    ("private-address: ", INSIDE),
    ("noarchive: ", NOT_KEPT),
    ("url: ", LIMIT),
    ("limit: ", LIMIT),
)
"""How reasons and errors begin, and the cause that each stands for; the first that fits counts."""
