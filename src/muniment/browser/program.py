"""The program: which Chromium is used, whether it can be, and how it is kept to itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from muniment.errors import UsageError

__all__ = ["LEAST_MAJOR", "NAMES", "BrowserProgram", "command_of", "find_program"]

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
"""The programs that are looked for, the first one first."""
LEAST_MAJOR = 120
_ASKED_S = 20.0
_VERSION = re.compile(r"(?:Chrom(?:ium|e)|HeadlessChrome)\D*(\d+)(\.[\d.]+)")

_FLAGS = (
    "--remote-debugging-pipe", "--no-first-run", "--no-default-browser-check", "--no-startup-window", "--no-pings",
    "--disable-background-networking", "--disable-component-update", "--disable-domain-reliability", "--disable-sync",
    "--disable-default-apps", "--disable-extensions", "--disable-breakpad", "--disable-client-side-phishing-detection",
    "--disable-hang-monitor", "--disable-search-engine-choice-screen", "--metrics-recording-only", "--mute-audio",
    "--disable-quic", "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp", "--disable-gpu", "--disable-dev-shm-usage",
    "--hide-scrollbars", "--force-color-profile=srgb", "--password-store=basic", "--use-mock-keychain",
    "--autoplay-policy=no-user-gesture-required", "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding", "--disable-prompt-on-repost",
    "--disable-site-isolation-trials", "--deny-permission-prompts",
    # what has no port of ours goes to one that refuses: the browser's own traffic
    "--proxy-server=http://127.0.0.1:9", "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)  # fmt: skip
_OFF = (
    "IsolateOrigins", "site-per-process", "NetworkTimeServiceQuerying", "OptimizationHints", "MediaRouter", "Translate",
    "DialMediaRouteProvider", "InterestFeedContentSuggestions", "CertificateTransparencyComponentUpdater",
    "AutofillServerCommunication", "Prerender2", "SpeculationRulesPrefetchProxy", "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable", "BackForwardCache", "PaintHolding", "LocalNetworkAccessChecks",
    "AsyncDns", "DnsOverHttps", "WebBluetooth", "IdleDetection", "LensOverlay", "ServiceWorkerAutoPreload",
)  # fmt: skip


class BrowserProgram(Struct, frozen=True):
    """A Chromium that was found and says what it is."""

    path: str
    version: str

    @property
    def major(self) -> int:
        """The first number of its version."""
        return int(self.version.partition(".")[0])


def find_program(named: str | None) -> BrowserProgram:
    """The browser that is named, or the first in PATH; raises UsageError with one line when there is none to use."""
    if named is not None:
        return _asked(named if os.sep in named else shutil.which(named) or named)
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        raise UsageError(
            f"no browser found (looked for {' '.join(NAMES)}); install one: apt install chromium-headless-shell "
            "(or chromium), or name it with --browser-path"
        )
    return _asked(found)


def _asked(path: str) -> BrowserProgram:
    """The program, by its own word."""
    try:
        said = subprocess.run(
            [path, "--version"], capture_output=True, stdin=subprocess.DEVNULL, timeout=_ASKED_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"the browser {path} cannot be used: it did not answer --version") from None
    except OSError as error:
        raise UsageError(f"the browser {path} cannot be started: {error.strerror}") from None
    text = said.stdout.decode("utf-8", "replace")
    version = _VERSION.search(text)
    if version is None:
        lines = (said.stderr.decode("utf-8", "replace") + text).strip().splitlines()
        raise UsageError(f"{path} is not a Chromium: {lines[-1].strip() if lines else 'it said nothing'}")
    if int(version[1]) < LEAST_MAJOR:
        raise UsageError(f"{path} is Chromium {version[1]}, too old to be used; {LEAST_MAJOR} or newer is needed")
    return BrowserProgram(path, version[1] + version[2])


def command_of(
    program: BrowserProgram, profile: Path, trusted: Sequence[str], *, sandbox: bool, agent: str = ""
) -> list[str]:
    """The command line of a browser with this profile, which trusts the certificates of these keys (SPKI digests).

    Its `agent` is that of each request from the first one on; what a tab is set to is in force a moment later.
    """
    headless = [] if "headless-shell" in Path(program.path).name else ["--headless=new"]
    keys = [f"--ignore-certificate-errors-spki-list={','.join(trusted)}"] if trusted else []
    return [
        program.path,
        *headless,
        *_FLAGS,
        f"--disable-features={','.join(_OFF)}",
        *([] if sandbox else ["--no-sandbox"]),
        *keys,
        *([f"--user-agent={agent}"] if agent else []),
        f"--user-data-dir={profile}",
    ]
