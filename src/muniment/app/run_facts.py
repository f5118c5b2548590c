"""The facts of a run that its WARC files give in their first record."""

from __future__ import annotations

from muniment import __version__
from muniment.archive.warc.warcinfo import WarcInfo
from muniment.crawl.protocol import Setup
from muniment.http.user_agent import agent_text, operator_text

__all__ = ["warc_info"]


def warc_info(setup: Setup) -> WarcInfo:
    """The warcinfo record's content for a run."""
    return WarcInfo(
        software=f"muniment/{__version__}",
        user_agent=agent_text(setup.settings.user_agent, setup.settings.contact),
        robots="obey" if setup.settings.robots else "ignore",
        operator=operator_text(setup.operator, setup.settings.contact),
        command=setup.command_line,
        browser=f"Chromium {setup.browser.version}" if setup.browser is not None else "",
    )
