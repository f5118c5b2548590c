"""The browser of an exact replay: a Chromium with a throw-away profile that knows no way but our proxy."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from muniment.errors import UsageError
from muniment.procs.children.run import launch
from muniment.procs.registry import ProcessRegistry

__all__ = ["ExactBrowser", "browser_program", "held_flags"]

_LOOK_S = 0.3
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_QUIET = (
    "--no-first-run", "--no-default-browser-check", "--no-pings", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-extensions",
    "--disable-breakpad", "--disable-domain-reliability", "--disable-client-side-phishing-detection",
    "--disable-search-engine-choice-screen", "--password-store=basic",
    "--disable-features=NetworkTimeServiceQuerying,OptimizationHints,MediaRouter,DialMediaRouteProvider,Translate,"
    "HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,SpeculationRulesPrefetchProxy,LocalNetworkAccessChecks,"
    "WebRtcHideLocalIpsWithMdns",
)  # fmt: skip


def held_flags(proxy: str, spki: str) -> list[str]:
    """What makes a Chromium ask our proxy for everything, and to believe its certificates."""
    return [
        f"--proxy-server=http://{proxy}",
        "--proxy-bypass-list=<-loopback>",
        f"--ignore-certificate-errors-spki-list={spki}",
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
        "--disable-quic",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    ]


def browser_program() -> str:
    """The Chromium in PATH. Raises UsageError when there is none."""
    found = next((path for name in _PROGRAMS if (path := shutil.which(name))), None)
    if found is None:
        raise UsageError(
            f"no browser found (looked for {' '.join(_PROGRAMS)}); --exact needs one: apt install chromium"
        )
    return found


class ExactBrowser:
    """A running browser with a profile of its own. It ends with this process at the latest."""

    def __init__(self, registry: ProcessRegistry, command: Sequence[str], scratch: Path, url: str) -> None:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        command = [*command, *_QUIET, *sandbox, f"--user-data-dir={scratch / 'browser'}", url]
        self._run = launch(registry, command, label="browser", pwd=str(scratch), background=True)

    async def closed(self) -> None:
        """Wait until the reader has closed it."""
        while self._run.poll() is None:  # noqa: ASYNC110 (a process sends no event)
            await asyncio.sleep(_LOOK_S)

    def end(self) -> None:
        """End it and all that it began."""
        self._run.terminate()
