"""What every WARC file of a run says about its making."""

from __future__ import annotations

from muniment import __version__
from muniment.archive.records import WarcInfo
from muniment.crawl.messages import Setup
from muniment.rules.agents import agent_text

__all__ = ["warc_info"]


def warc_info(setup: Setup) -> WarcInfo:
    """The warcinfo record's content for a run."""
    return WarcInfo(
        software=f"muniment/{__version__}",
        user_agent=agent_text(setup.settings.user_agent),
        robots="obey" if setup.settings.robots else "ignore",
        operator=setup.operator,
        command=setup.command_line,
    )
