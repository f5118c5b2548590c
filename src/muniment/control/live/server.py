"""The server of Redis that a command names, or the environment."""

from __future__ import annotations

from muniment.errors import UsageError
from muniment.live.address import parse_redis
from muniment.live.link import RedisLink
from muniment.settings.environment import redis_given, redis_password_given

__all__ = ["server_link"]


def server_link(url: str | None, without: str = "") -> RedisLink:
    """The way to it, with what a warning says when it is lost; raises UsageError when there is no valid address."""
    if not (url or redis_given()):
        raise UsageError("there is no address of Redis: give --redis URL or set MUNIMENT_REDIS")
    address, password = parse_redis(url or redis_given(), secret=not url)
    return RedisLink(address, password or redis_password_given(), without)
