"""The kinds of lines of a robots.txt, as leniently as its parser."""

from __future__ import annotations

import re

__all__ = ["is_agent_line", "is_rule"]

_AGENT = re.compile(r"\s*user[ -]?agent(?=[\s:]|$)", re.IGNORECASE).match
_RULE = re.compile(r"\s*(?:allow|diss?all?ow|diasllow|disallaw)(?=[\s:]|$)", re.IGNORECASE).match


def is_agent_line(line: str) -> bool:
    """Whether a line says for whom what follows is."""
    return _AGENT(line) is not None


def is_rule(line: str) -> bool:
    """Whether a line allows or disallows something; only such a line ends the names of a group (§2.2.1)."""
    return _RULE(line) is not None
