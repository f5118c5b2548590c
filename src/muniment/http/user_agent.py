"""User agents by name: what a browser of that name says of itself."""

from __future__ import annotations

from muniment.settings.option_table import DEFAULT_USER_AGENT

__all__ = ["AGENTS", "agent_text", "operator_text", "robots_agent"]

_WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"
AGENTS = {
    "chrome": f"Mozilla/5.0 (X11; Linux x86_64) {_WEBKIT} Chrome/142.0.0.0 Safari/537.36",
    "firefox": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "safari": (
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) "
        "Version/18.5 Safari/605.1.15"
    ),
    "mobile-chrome": f"Mozilla/5.0 (Linux; Android 10; K) {_WEBKIT} Chrome/142.0.0.0 Mobile Safari/537.36",
    "mobile-safari": (
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
        "Version/18.5 Mobile/15E148 Safari/604.1"
    ),
}
"""Browsers only: another crawler is known by its addresses too, and its name would be false."""


def agent_text(given: str, contact: str = "") -> str:
    """The User-Agent field for a name of the list, or for the text itself, to which a contact is added."""
    browser = AGENTS.get(given.lower())
    if browser is not None:
        return browser
    return f"{given} (+{contact})" if contact and contact not in given else given


def operator_text(name: str, contact: str) -> str:
    """The operator of an archive, and a contact."""
    if not contact:
        return name
    return f"{name} <{contact}>" if name and "://" not in contact else f"{name} ({contact})" if name else contact


def robots_agent(given: str) -> str:
    """The agent whose rules in robots.txt are obeyed: a browser's name does not change who we are."""
    return DEFAULT_USER_AGENT if given.lower() in AGENTS else given
