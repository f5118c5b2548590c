"""The options of the live plane of `serve`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from muniment.app.inputs.redis_server import redis_server
from muniment.app.inputs.secrets import read_accounts
from muniment.app.serve import PlaneOrder
from muniment.live.ports import PlaneOptions
from muniment.settings.environment import redis_given
from muniment.settings.live_plane import LOG_KEEP, REAP_AFTER_S, ROLES_HELP, parse_roles

__all__ = ["plane_options", "plane_order"]

_Command = TypeVar("_Command", bound=Callable[..., Any])
_OPTIONS = (
    click.option("--redis", metavar="URL", help="Show and steer jobs over this Redis [default: MUNIMENT_REDIS]"),
    click.option("--auth-file", metavar="FILE", help="The account of its host is in this file in netrc format."),
    click.option(
        "--redis-roles",
        default="all",
        show_default=True,
        metavar="LIST",
        help=ROLES_HELP,
    ),
    click.option(
        "--redis-log-keep",
        default=LOG_KEEP,
        show_default=True,
        metavar="N",
        help="Log entries of a job that stay there.",
    ),
    click.option(
        "--reap-after",
        default=REAP_AFTER_S,
        show_default="7200, 2 h",
        metavar="S",
        help="Seconds without a heartbeat until a job has failed; 0: never.",
    ),
    click.option(
        "--announce",
        type=click.Choice(["queue", "feed", "off"]),
        default="queue",
        show_default=True,
        help="Announce jobs there: in the queue of posts, or the feed.",
    ),
)


def plane_options(command: _Command) -> _Command:
    """Give a command these options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def plane_order(
    redis: str | None, auth_file: str | None, redis_roles: str, redis_log_keep: int, reap_after: float, announce: str
) -> PlaneOrder | None:
    """The live plane that is asked for; None for none. Raises UsageError."""
    roles = parse_roles(redis_roles)
    if not (redis or redis_given()):
        return None
    address, password = redis_server(redis, read_accounts(auth_file) if auth_file else {})
    options = PlaneOptions(roles=roles, keep=max(1, redis_log_keep), announce=announce, reap_after=reap_after)
    return PlaneOrder(address=address, password=password, options=options)
