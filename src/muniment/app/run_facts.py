"""The facts of a run: what its workers are sent, and what its WARC files give in their first record."""

from __future__ import annotations

from collections.abc import Sequence

from muniment import __version__
from muniment.app.inputs.networks import reach_of
from muniment.archive.warc.warcinfo import WarcInfo
from muniment.crawl.protocol import Setup
from muniment.http.user_agent import agent_text, operator_text
from muniment.rules.proxies import proxy_rules
from muniment.settings.environment import operator_name
from muniment.settings.option_table import Settings

__all__ = ["plain_setup", "warc_info"]


async def plain_setup(
    out: str, settings: Settings, starts: Sequence[str], command_line: str, *, private: bool
) -> Setup:
    """What the workers of a run into `out`, an absolute path, are sent: one worker, no account and no browser.

    The networks of the start pages are allowed.
    """
    reach = await reach_of(starts, proxy_rules(settings.proxy), everything=settings.allow_private)
    return Setup(
        number=0,
        out=out,
        settings=settings,
        operator=operator_name(),
        command_line=command_line,
        allowed_classes=reach.classes,
        workers=1,
        private=private,
        late_names=reach.late_names,
    )


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
