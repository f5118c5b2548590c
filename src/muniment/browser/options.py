"""The browser of a run, and how it renders pages: the part of a job's settings that it needs."""

from __future__ import annotations

from msgspec import Struct

from muniment.settings.option_table import Settings

__all__ = ["BrowserSetup", "RenderOptions", "words"]


class BrowserSetup(Struct, frozen=True, array_like=True):
    """What a worker needs to start browsers."""

    path: str
    version: str
    sandbox: bool = True
    """Whether it can start with its sandbox."""
    scripts: str = ""
    """The JavaScript of `--custom-js`."""
    storage: dict[str, dict[str, str]] = {}
    """The local storage that pages begin with, by origin: it may hold secrets."""
    processes: str = ""
    """The directory of the store of processes; empty for this user's own."""
    database: str = ""
    """Where the rows of processes are instead, by its URL."""


class RenderOptions(Struct, frozen=True, kw_only=True):
    """How pages are rendered; times are seconds."""

    width: int = 1280
    height: int = 720
    load_time: float = 30.0
    page_time: float = 90.0
    behaviors: tuple[str, ...] = ()
    behavior_time: float = 20.0
    screenshots: frozenset[str] = frozenset()
    render: frozenset[str] = frozenset()
    custom_js: str = ""
    storage: dict[str, dict[str, str]] = {}
    service_workers: bool = False

    @classmethod
    def of(cls, settings: Settings, setup: BrowserSetup) -> RenderOptions:
        """What a job's settings say, and what its files hold."""
        width, _, height = settings.viewport.partition("x")
        return cls(
            width=int(width),
            height=int(height),
            load_time=settings.load_time,
            page_time=settings.page_time,
            behaviors=words(settings.behaviors),
            behavior_time=settings.behavior_time,
            screenshots=frozenset(words(settings.screenshots)),
            render=frozenset(words(settings.render)),
            custom_js=setup.scripts,
            storage=setup.storage,
            service_workers=settings.service_workers == "on",
        )


def words(given: str) -> tuple[str, ...]:
    """The words of a list that is written with commas; `none` has none."""
    return () if given == "none" else tuple(dict.fromkeys(word for word in given.split(",") if word))
