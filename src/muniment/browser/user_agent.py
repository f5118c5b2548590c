"""What a browser says of itself, by its version alone: the headers of a page's request, and what scripts read."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from muniment.http.user_agent import agent_text
from muniment.settings.option_table import DEFAULT_USER_AGENT

__all__ = ["BrowserAgent", "browser_agent", "named_agent", "page_headers"]

_ACCEPT = (
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,"
    "application/signed-exchange;v=b3;q=0.7"
)
_LANGUAGE = "en-US,en;q=0.9"
_CHROME = re.compile(r"Chrome/(\d+)")


class BrowserAgent(Struct, frozen=True):
    """A user agent, and the version that its client hints name; 0 where it is not a Chromium's, which sends none."""

    text: str
    major: int

    @property
    def brands(self) -> list[dict[str, str]]:
        """The brands that its client hints name."""
        return [{"brand": "Chromium", "version": str(self.major)}, {"brand": "Not A(Brand", "version": "24"}]

    @property
    def override(self) -> dict[str, Any]:
        """The arguments of `setUserAgentOverride`."""
        told: dict[str, Any] = {"userAgent": self.text, "acceptLanguage": _LANGUAGE, "platform": "Linux x86_64"}
        if self.major:
            mobile = "Mobile" in self.text
            told["userAgentMetadata"] = {
                "brands": self.brands,
                "platform": "Android" if mobile else "Linux",
                "platformVersion": "",
                "architecture": "" if mobile else "x86",
                "model": "",
                "mobile": mobile,
            }
        return told


def browser_agent(given: str, contact: str, major: int) -> BrowserAgent:
    """The agent of a job whose `--user-agent` is this: its own, or that of Chromium of this version with our name."""
    if given != DEFAULT_USER_AGENT:
        text = agent_text(given, contact)
    else:
        chrome = f"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{major}.0.0.0"
        text = f"{chrome} Safari/537.36 {agent_text(given, contact)}"
    return named_agent(text)


def named_agent(text: str) -> BrowserAgent:
    """The agent of a text."""
    found = _CHROME.search(text)
    return BrowserAgent(text, int(found[1]) if found else 0)


def page_headers(agent: BrowserAgent, url: str, *, came_from: bool) -> tuple[tuple[str, str], ...]:
    """The headers with which the browser asks for a page; hints and purposes go to secure origins alone."""
    headers = [("User-Agent", agent.text), ("Accept", _ACCEPT), ("Accept-Language", _LANGUAGE)]
    headers.append(("Upgrade-Insecure-Requests", "1"))
    if not url.startswith("https:"):
        return tuple(headers)
    if agent.major:
        brands = ", ".join(f'"{one["brand"]}";v="{one["version"]}"' for one in agent.brands)
        mobile = "Mobile" in agent.text
        headers += [("sec-ch-ua", brands), ("sec-ch-ua-mobile", "?1" if mobile else "?0")]
        headers.append(("sec-ch-ua-platform", '"Android"' if mobile else '"Linux"'))
    site = "cross-site" if came_from else "none"
    headers += [("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-User", "?1")]
    return (*headers, ("Sec-Fetch-Dest", "document"))
