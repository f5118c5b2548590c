"""Where a command of a fleet acts: a server, a database, or a directory, which its options name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec import Struct

from muniment.control.fleet.direct import direct_door
from muniment.control.fleet.doors import JobDoor
from muniment.control.place import database_url
from muniment.errors import UsageError
from muniment.model.job import JobState
from muniment.settings.environment import operator_name

__all__ = ["Where", "job_door", "where_options"]

_F = TypeVar("_F", bound=Callable[..., Any])
_STATES = f"Only jobs in this state: {', '.join(JobState)}. With a directory instead: "
_PLACES = "--server URL, --database URL or --state DIR"


class Where(Struct, frozen=True, kw_only=True):
    """What a command line says of where it acts."""

    server: str | None = None
    token_file: Path | None = None
    plain_http: bool = False
    ca_file: Path | None = None
    database: str | None = None
    state: Path | None = None
    out: Path | None = None


def where_options(function: _F, *, job_states: bool = False) -> _F:
    """Options that say where a command acts; it gets them as one value, `where`.

    With `job_states`, `--state` is also that of jobs, which the command gets as `job_state`.
    """

    @functools.wraps(function)
    def with_where(**given: Any) -> Any:
        named = {name: given.pop(name) for name in Where.__struct_fields__ if name in given}
        if isinstance(named.get("state"), tuple):
            given["job_state"], named["state"] = _divided(named["state"])
        return function(where=Where(**named), **given)

    options = [
        click.option("--server", metavar="URL", help="Ask this server. [default: MUNIMENT_SERVER]"),
        click.option(
            "--token-file",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Read the token from this file. [default: MUNIMENT_TOKEN]",
        ),
        click.option("--plain-http", is_flag=True, help="Send the token over http:// to other machines, too."),
        click.option("--ca-file", type=click.Path(path_type=Path), metavar="FILE", help="Trust these certificates."),
        click.option("--database", metavar="URL", help="Act on this PostgreSQL tracker, without a server."),
        click.option(
            "--state",
            type=click.Path(path_type=Path),
            multiple=job_states,
            metavar="DIR|STATE" if job_states else "DIR",
            help=(_STATES if job_states else "")
            + "Act on the SQLite tracker in this directory, while nothing serves it.",
        ),
    ]
    decorated: Any = with_where
    for option in reversed(options):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def _divided(given: Sequence[Path]) -> tuple[str, Path | None]:
    """The state of jobs, and the directory, among the values of `--state`."""
    states = [str(one) for one in given if str(one) in set(JobState)]
    places = [one for one in given if str(one) not in states]
    if len(states) > 1 or len(places) > 1:
        raise UsageError("--state names more than one state, or more than one directory")
    return states[0] if states else "", places[0] if places else None


@contextmanager
def job_door(where: Where, *, make: bool = False) -> Iterator[JobDoor]:
    """The door to jobs that a command line names; raises UsageError for none, and for two."""
    given = [name for name in (where.server, where.database, where.state) if name is not None]
    if len(given) != 1:
        raise UsageError(f"{'no place' if not given else 'more than one place'} given: give {_PLACES}")
    database = database_url(where.database) if where.database is not None else ""
    with direct_door(where.state, database, operator_name(), make=make) as door:
        yield door
