"""What `muniment job add` is given, made into a specification of a job; files that it names are read here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import structs

from muniment.app.inputs.ignore_sets import imported_set
from muniment.app.inputs.scripts import read_script
from muniment.app.inputs.secrets import read_cookie_file
from muniment.app.inputs.start_urls import start_urls
from muniment.cli.click_options import click_option, read_settings
from muniment.control.fleet.values import refusal_of
from muniment.errors import UsageError
from muniment.model.network.jobs import GivenCookie, JobSpec
from muniment.settings.option_table import Command, options
from muniment.settings.settings_json import option_name, written_settings

__all__ = ["job_options", "read_slots", "read_tags", "spec_of"]

_F = TypeVar("_F", bound=Callable[..., Any])
_OWN = {"state", "database", "explanation"}
"""Settings of a crawl whose options `job add` has by itself: the first two name where the job is made."""


def job_options(function: _F) -> _F:
    """The options of `crawl` and `fetch`; those that a job cannot have are hidden, and refused with a remedy."""
    for name, kind, default, option in reversed(list(options())):
        if name not in _OWN:
            function = click_option(name, kind, default, option, hidden=option.kind in ("machine", "run"))(function)
    return function


def spec_of(urls: tuple[str, ...], given: dict[str, Any], *, is_list: bool, **terms: Any) -> JobSpec:
    """The specification of a command line; raises UsageError."""
    command: Command = "fetch" if is_list else "crawl"
    _refuse_others(command, given)
    settings = read_settings(command, given)
    starts = None if is_list else start_urls(urls, settings.input, routes=settings.engine != "http")
    if starts is not None and starts.accounts:
        raise UsageError(
            f"a URL of {next(iter(starts.accounts))} has an account, which every reader of the tracker would see: give "
            "it to `muniment pipeline --auth-file`"
        )
    if settings.storage_state:
        raise UsageError(
            "--storage-state holds secrets that every reader of the tracker would see: give it to `muniment crawl`, or "
            "the cookies alone with --cookies"
        )
    imported = [pattern for file in settings.import_ignores for pattern in imported_set(file).patterns]
    return JobSpec(
        urls=list(starts.urls) if starts is not None else [],
        settings=written_settings(structs.replace(settings, seed="list" if is_list else "")),
        ignores=imported,
        custom_js=read_script(settings.custom_js) if settings.custom_js else "",
        cookies=_cookies(settings.cookies),
        is_list=is_list,
        **terms,
    )


def _refuse_others(command: Command, given: dict[str, Any]) -> None:
    for name, _, _, option in options():
        value = given.get(name)
        if value is None or value == ():
            continue
        flag = f"--{option_name(option)}"
        if option.kind in ("machine", "run"):
            raise UsageError(refusal_of(flag, option))
        if option.only not in (None, command):
            raise UsageError(f"{flag} is for a {'list (--fetch)' if option.only == 'fetch' else 'crawl of URLs'} alone")


def _cookies(file: str | None) -> list[GivenCookie]:
    found = read_cookie_file(file) if file else []
    return [
        GivenCookie(
            domain=one.domain,
            name=one.name,
            value=one.value,
            path=one.path,
            host_only=one.host_only,
            secure=one.secure,
            http_only=one.http_only,
            expires_at=one.expires_at,
        )
        for one in found
    ]


def read_tags(text: str) -> list[str]:
    """Tags with commas between them."""
    return [tag.strip() for tag in text.split(",") if tag.strip()]


def read_slots(text: str | None) -> int | None:
    """A number of slots, or `none`; raises UsageError."""
    if text is None or text == "none":
        return None
    if not text.isascii() or not text.isdigit():
        raise UsageError(f"--max-slots {text!r} is not a number of slots; write a number or none")
    return int(text)
