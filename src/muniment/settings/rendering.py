"""The settings of pages that need a browser."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from muniment.settings.option import Option

__all__ = ["BEHAVIORS", "RENDERED_TEXTS", "SCREENSHOTS", "EngineChoice", "RenderSettings"]

EngineChoice = Literal["http", "browser", "auto"]
BEHAVIORS = ("scroll", "more", "details", "play", "carousel")
SCREENSHOTS = ("view", "full", "thumbnail")
RENDERED_TEXTS = ("dom", "text")


class RenderSettings(Struct, frozen=True, kw_only=True):
    """Which pages are rendered, and how."""

    engine: Annotated[
        EngineChoice,
        Option(
            ("--engine",),
            "Which pages are loaded in a browser: none (http), every HTML page, or those that need it (auto).",
            "http|browser|auto",
            group="Browser",
        ),
    ] = "http"
    browser: Annotated[bool, Option(("--browser",), "The same as --engine browser.")] = False
    browser_path: Annotated[
        str | None,
        Option(
            ("--browser-path",),
            "The browser: Chromium or Chrome, 120 or newer (default: MUNIMENT_BROWSER, or the first in PATH).",
            "FILE",
            kind="machine",
        ),
    ] = None
    tabs: Annotated[
        int | None,
        Option(
            ("--tabs",),
            "Maximum pages open in browsers at once (default: the number of CPUs, at most 8).",
            "N",
            live=True,
            kind="machine",
        ),
    ] = None
    viewport: Annotated[str, Option(("--viewport",), "Size of the window, from 320x240 to 3840x2160.", "WxH")] = (
        "1280x720"
    )
    load_time: Annotated[
        float, Option(("--load-time",), "Maximum seconds until a page's load event; then it goes on as it is.", "S")
    ] = 30.0
    page_time: Annotated[
        float,
        Option(
            ("--page-time",), "Maximum seconds of a page in the browser, its last records included.", "S", live=True
        ),
    ] = 90.0
    behaviors: Annotated[
        str,
        Option(("--behaviors",), "What is done on a page, of scroll,more,details,play,carousel; or none.", "LIST"),
    ] = ",".join(BEHAVIORS)
    behavior_time: Annotated[
        float, Option(("--behavior-time",), "Maximum seconds of all behaviors of a page.", "S", live=True)
    ] = 20.0
    screenshots: Annotated[
        str, Option(("--screenshots",), "Pictures of a page, of view,full,thumbnail; or none.", "LIST")
    ] = ",".join(SCREENSHOTS)
    render: Annotated[str, Option(("--render",), "Final texts of a page, of dom,text; or none.", "LIST")] = ",".join(
        RENDERED_TEXTS
    )
    custom_js: Annotated[
        str | None,
        Option(("--custom-js",), "Run the JavaScript of this file in every rendered page.", "FILE", kind="file"),
    ] = None
    storage_state: Annotated[
        str | None,
        Option(
            ("--storage-state",),
            "Begin with the cookies and the local storage of this file, JSON as Playwright writes it.",
            "FILE",
            kind="file",
        ),
    ] = None
    service_workers: Annotated[
        Literal["off", "on"],
        Option(("--service-workers",), "Let service workers answer for servers.", "off|on"),
    ] = "off"
    browser_memory: Annotated[
        int,
        Option(
            ("--browser-memory",),
            "Maximum memory of one browser with all its processes.",
            "BYTES",
            kind="machine",
        ),
    ] = 2 << 30
