"""The settings of guards against addresses without end."""

from __future__ import annotations

from typing import Annotated

from muniment.settings.option import Option
from muniment.settings.rendering import RenderSettings

__all__ = ["GUARDS", "GuardSettings"]

GUARDS = ("loops", "barren", "duplicates")


class GuardSettings(RenderSettings, frozen=True, kw_only=True):
    """Which guards are on, and how patient they are."""

    guards: Annotated[
        str,
        Option(
            ("--guards",),
            "Guards against addresses without end; see `muniment ignores show trap`.",
            "LIST|none",
            live=True,
            only="crawl",
            group="Guards",
        ),
    ] = "none"
    barren: Annotated[
        int,
        Option(
            ("--barren",),
            "Barren pages in a row until their family is set aside.",
            "N",
            live=True,
            only="crawl",
        ),
    ] = 20
