"""A replay from its first request to its last: what is to be shown is found, and shown in one of two ways."""

from __future__ import annotations

import glob
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from muniment.app.listener import listener
from muniment.app.signals import ended_by_signals
from muniment.archive.reading.containers import Container, containers_of, is_foreign
from muniment.control.indexes import check_indexes, paths_of
from muniment.errors import UsageError
from muniment.procs.registry import ProcessRegistry
from muniment.replay.captures.catalog import Catalog
from muniment.replay.captures.url_keys import full_stamp, micros_of, wanted_url
from muniment.replay.plan import ReplayOptions, ReplayOrigins, ReplayPlan
from muniment.replay.wabac import find_wabac

__all__ = ["replay"]

_HOST = "127.0.0.1"


def replay(
    patterns: Sequence[str], options: ReplayOptions, registry: ProcessRegistry, ready: Callable[[ReplayOrigins], None]
) -> None:
    """Show archives until a signal comes; `ready` is called when requests are answered.

    Raises UsageError when there is nothing to show, the port is taken or wabac.js is missing.
    """
    first = _first_page(options)
    with ended_by_signals(), ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="muniment-replay-")))
        directories, foreign = _found(patterns, scratch)
        catalog = Catalog(scratch, directories, foreign)
        stack.callback(catalog.close)
        if not catalog.totals().captures:
            raise UsageError(f"{', '.join(patterns)}: no captures with a record in it yet")
        wabac = None if options.exact else find_wabac(options.wabac)
        plan = ReplayPlan(
            options=options,
            patterns=patterns,
            name=_name(patterns),
            first=first,
            directories=[one for one in directories if one.is_dir()],
            catalog=catalog,
            scratch=scratch,
            listening=stack.enter_context(listener(_HOST, options.port, "--port")),
            registry=registry,
            ready=ready,
        )
        if wabac is None:
            from muniment.replay.exact.session import show_exactly  # noqa: PLC0415  (a replay in the page needs no proxy)

            show_exactly(plan)
        else:
            from muniment.replay.rewriting_session import show_in_page  # noqa: PLC0415

            show_in_page(plan, wabac)


def _first_page(options: ReplayOptions) -> str:
    if options.at and (at := micros_of(options.at)) is None:
        raise UsageError(f"{options.at} is not a time; --at takes 4 to 20 digits, or ISO 8601 as 2026-11-25T12:00:00Z")
    if not options.url:
        return "/"
    url = wanted_url(options.url)
    if not url:
        raise UsageError(f"{options.url} is not a URL; --url takes one like https://example.com/")
    return f"/at/{full_stamp(at).removesuffix('000000') if options.at and at is not None else '2999'}/{url}"


def _found(patterns: Sequence[str], scratch: Path) -> tuple[list[Path], list[Container]]:
    """Output directories and index files, and the WARC files of others."""
    own: list[str] = []
    foreign: list[Container] = []
    for pattern in patterns:
        if Path(pattern).is_file() and Path(pattern).suffix not in {".parquet", ".pq"}:
            foreign += _foreign(Path(pattern), scratch)
        elif glob.has_magic(pattern) and not Path(pattern).exists():
            for path in map(Path, sorted(glob.glob(pattern, recursive=True))):  # noqa: PTH207 (absolute ones, too)
                if path.is_file() and path.name.endswith((".wacz", ".warc", ".warc.gz")):
                    foreign += _foreign(path, scratch)
                elif path.is_dir():
                    own.append(glob.escape(str(path)) if glob.has_magic(str(path)) and not path.exists() else str(path))
            if not own and not foreign:
                raise UsageError(f"{pattern} matches no output directory, WACZ or WARC file")
        else:
            own.append(pattern)
    directories = paths_of(own) if own else []
    if directories:
        check_indexes(directories)
    return directories, foreign


def _foreign(path: Path, scratch: Path) -> list[Container]:
    try:
        if not is_foreign(path):
            raise UsageError(f"{path} is neither an output directory nor a WACZ or WARC file")
        return containers_of(path, scratch)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None


def _name(patterns: Sequence[str]) -> str:
    return patterns[0] if len(patterns) == 1 else f"{patterns[0]} and {len(patterns) - 1} more"
