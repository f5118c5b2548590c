"""Where a command of a fleet acts: a server, a database, or a directory, which its options name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec import Struct

from muniment.control.fleet.backends import FleetBackend, JobBackend
from muniment.control.tracker_location import database_url
from muniment.errors import UsageError
from muniment.model.job import JobState
from muniment.settings.environment import operator_name, server_given

__all__ = ["CommandTarget", "fleet_backend", "job_backend", "one_job", "target_options"]

_F = TypeVar("_F", bound=Callable[..., Any])
_STATES = f"Only jobs in this state: {', '.join(JobState)}. With a directory instead: "
_STATE = "Act on the SQLite tracker in this directory, while nothing serves it."
_FLEET = "--server URL, --database URL or --state DIR"
_FILE = click.Path(path_type=Path)
_MOST_NUMBER = (1 << 31) - 1


class CommandTarget(Struct, frozen=True, kw_only=True):
    """What a command line says of where it acts."""

    server: str | None = None
    token_file: Path | None = None
    plain_http: bool = False
    ca_file: Path | None = None
    database: str | None = None
    state: Path | None = None
    out: Path | None = None


def target_options(*, directory: bool = False, job_states: bool = False) -> Callable[[_F], _F]:
    """Options that say where a command acts; it gets them as one value, `where`.

    With `directory` also `-o`. With `job_states`, `--state` may also name a state of jobs: the command's `job_state`.
    """
    options = [
        click.option("--server", metavar="URL", help="Ask this server. [default: MUNIMENT_SERVER]"),
        click.option(
            "--token-file", type=_FILE, metavar="FILE", help="Read the token from this file. [default: MUNIMENT_TOKEN]"
        ),
        click.option("--plain-http", is_flag=True, help="Send the token over http:// to other machines, too."),
        click.option("--ca-file", type=_FILE, metavar="FILE", help="Trust the certificates in this file."),
        click.option("--database", metavar="URL", help="Act on this PostgreSQL tracker, without a server."),
        click.option(
            "--state",
            type=_FILE,
            multiple=job_states,
            metavar="DIR|STATE" if job_states else "DIR",
            help=f"{_STATES}{_STATE[0].lower()}{_STATE[1:]}" if job_states else _STATE,
        ),
    ]
    if directory:
        out = click.Path(path_type=Path, exists=True, file_okay=False)
        options.append(
            click.option(
                "-o", "--out", type=out, metavar="DIR", help="Act on the crawl in this directory, without JOB."
            )
        )

    def give(function: _F) -> _F:
        @functools.wraps(function)
        def with_where(**given: Any) -> Any:
            # elsewhere `out` is an option of the command itself
            named = {name: given.pop(name) for name in CommandTarget.__struct_fields__ if name != "out" or directory}
            if job_states:
                given["job_state"], named["state"] = _divided(named["state"])
            return function(where=CommandTarget(**named), **given)

        decorated: Any = with_where
        for option in reversed(options):
            decorated = option(decorated)
        return decorated  # type: ignore[no-any-return]

    return give


def _divided(given: Sequence[Path]) -> tuple[str, Path | None]:
    """The state of jobs, and the directory, among the values of `--state`."""
    states = [str(one) for one in given if str(one) in set(JobState)]
    places = [one for one in given if str(one) not in states]
    if len(states) > 1 or len(places) > 1:
        raise UsageError("--state names more than one state, or more than one directory")
    return states[0] if states else "", places[0] if places else None


def one_job(where: CommandTarget, words: Sequence[str], what: str = "") -> tuple[int, Sequence[str]]:
    """The number of a job, and the other arguments; a directory has one crawl, without a number. Raises UsageError."""
    if where.out is not None:
        number, rest = 0, words
    else:
        if not words:
            raise UsageError(f"no JOB given: give its number, as `muniment job list` shows it{_or_directory(where)}")
        number, rest = _number(words[0]), words[1:]
    if not what and rest:
        hint = ": with -o, leave the number of the job out" if where.out is not None else ""
        raise UsageError(f"unexpected argument {rest[0][:100]!r}{hint}")
    if what and not rest:
        raise UsageError(f"no {what} given")
    return number, rest


def _or_directory(where: CommandTarget) -> str:
    return "" if where.server or where.database or where.state else ", or -o DIR for the crawl in a directory"


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:20]) <= _MOST_NUMBER:
        raise UsageError(f"{text[:100]!r} is not the number of a job; `muniment job list` shows them")
    return int(text)


@contextmanager
def fleet_backend(where: CommandTarget, *, make: bool = False) -> Iterator[FleetBackend]:
    """The backend that a command line names; raises UsageError for none, and for two.

    With `make`, a tracker that is not there is made.
    """
    server = where.server
    if server is None and where.database is None and where.state is None:
        server = server_given() or None
    given = [one for one in (server, where.database, where.state) if one is not None]
    if len(given) != 1:
        raise UsageError(f"{'no place' if not given else 'more than one place'} given: give {_FLEET}")
    if server is None and (where.token_file or where.plain_http or where.ca_file):
        raise UsageError("--token-file, --plain-http and --ca-file are for --server")
    # who asks a server needs no tracker, and the other way round
    if server is not None:
        from muniment.remote.credentials import server_address  # noqa: PLC0415
        from muniment.remote.operator import ServerClient  # noqa: PLC0415
        from muniment.remote.server_backend import ServerBackend  # noqa: PLC0415

        address = server_address(server, where.token_file, plain_http=where.plain_http, ca_file=where.ca_file)
        with ServerClient(address) as client:
            yield ServerBackend(client)
        return
    from muniment.control.fleet.database_backend import database_backend  # noqa: PLC0415

    database = database_url(where.database) if where.database is not None else ""
    with database_backend(where.state, database, operator_name(), make=make) as backend:
        yield backend


@contextmanager
def job_backend(where: CommandTarget, *, make: bool = False) -> Iterator[JobBackend]:
    """The same for jobs, which may also be the crawl of a directory."""
    if where.out is None:
        with fleet_backend(where, make=make) as backend:
            yield backend
        return
    if where.server is not None or where.database is not None or where.token_file or where.plain_http or where.ca_file:
        raise UsageError("-o names the crawl of a directory: leave the options of a server or a database out")
    from muniment.cli.set import the_job  # noqa: PLC0415  (as above)
    from muniment.control.fleet.directory_backend import DirectoryBackend  # noqa: PLC0415

    yield DirectoryBackend(the_job(where.out, where.state))
