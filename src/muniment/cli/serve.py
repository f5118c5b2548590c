"""`muniment serve`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import click
import msgspec

from muniment import __version__
from muniment.app.serve import ServedTracker, ServeOrder, served_tracker
from muniment.cli.click_options import log_option
from muniment.cli.fleet.plane import plane_options, plane_order
from muniment.cli.invocation import Invocation
from muniment.errors import UsageError
from muniment.model.pipeline import LEASE_S, LONGEST_LEASE_S, SHORTEST_LEASE_S

__all__ = ["serve"]


@click.command(epilog="Example: muniment serve --state tracker --listen 127.0.0.1:8600")
@click.option("--database", metavar="URL", help="PostgreSQL database of the tracker; several servers may share it.")
@click.option("--state", type=click.Path(path_type=Path), metavar="DIR", help="Directory of a SQLite tracker.")
@click.option(
    "--listen",
    default="127.0.0.1:8600",
    show_default=True,
    metavar="HOST:PORT",
    help="Address; port 0 is any free one.",
)
@click.option(
    "--lease",
    "lease_s",
    type=float,
    default=LEASE_S,
    metavar="SECONDS",
    help=f"How long a silent pipeline keeps its pages, {SHORTEST_LEASE_S} to {LONGEST_LEASE_S}; "
    f"servers of one database use the lowest. [default: {LEASE_S:g}]",
)
@click.option("--allow-private", is_flag=True, help="Take jobs for addresses that are not public.")
@click.option("--public-url", default="", metavar="URL", help="What its pages answer to [default: where it listens]")
@click.option(
    "--archives",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Directory of a pipeline, or a folder of them: its pages search and show the captures there; repeatable.",
)
@plane_options
@click.option("--json", "as_json", is_flag=True, help="Say as JSON where it listens.")
@click.option("--quiet", is_flag=True, help="Print only errors, and the address alone.")
@log_option
@click.pass_obj
def serve(
    invocation: Invocation,
    /,
    database: str | None,
    state: Path | None,
    listen: str,
    lease_s: float,
    allow_private: bool,
    public_url: str,
    archives: tuple[Path, ...],
    as_json: bool,
    quiet: bool,
    **plane: Any,
) -> int:
    """Serve a tracker to pipelines and operators, until Ctrl-C or SIGTERM.

    Encryption is for a proxy in front of it: listen on loopback addresses, or on a network that you trust.
    """
    if (database is None) == (state is None):
        raise UsageError("give either --database URL or --state DIR")
    if not SHORTEST_LEASE_S <= lease_s <= LONGEST_LEASE_S:
        raise UsageError(f"--lease must be between {SHORTEST_LEASE_S} and {LONGEST_LEASE_S} seconds, not {lease_s:g}")
    host, port = _address(listen)
    if public_url and not re.fullmatch(r"https?://[^/?#@\s]+/?", public_url):
        raise UsageError(
            f"--public-url {public_url[:100]!r} is not the origin of a site, as in https://crawls.example.org"
        )
    order = ServeOrder(
        host=host,
        port=port,
        state=state,
        database=database,
        lease_s=lease_s,
        allow_private=allow_private,
        public_url=public_url,
        plane=plane_order(**plane),
        archives=archives,
    )
    try:
        with served_tracker(order, invocation.row) as tracker:
            from muniment.web.serving import serve as run  # noqa: PLC0415  (wrong use is told sooner)

            run(tracker, lambda: _tell(tracker, as_json=as_json, quiet=quiet), invocation.row.leave)
            invocation.row.leave_soon(0)
    except KeyboardInterrupt:
        pass  # before it listened
    return 0


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not colon or not host or not port.isascii() or not port.isdecimal() or int(port) > 65535 or len(port) > 5:
        raise UsageError(f"--listen {text[:100]!r} is not HOST:PORT, as in 127.0.0.1:8600")
    return host, int(port)


def _tell(tracker: ServedTracker, *, as_json: bool, quiet: bool) -> None:
    told = {"url": tracker.url, "version": __version__, "pid": os.getpid()}
    text = tracker.url if quiet else f"serving {tracker.url}"
    click.echo(msgspec.json.encode(told).decode() if as_json else text)
