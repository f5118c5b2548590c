"""The server of Redis that a command names, or the environment."""

from __future__ import annotations

from muniment.errors import UsageError
from muniment.live.address import parse_redis
from muniment.live.link import Client, RedisLink
from muniment.settings.environment import redis_given, redis_password_given

__all__ = ["connected", "server_link"]


def server_link(url: str | None) -> RedisLink:
    """The way to it; raises UsageError when there is no address, or one that makes no sense."""
    if not (url or redis_given()):
        raise UsageError("there is no address of Redis: give --redis URL or set MUNIMENT_REDIS")
    address, password = parse_redis(url or redis_given(), secret=not url)
    return RedisLink(address, password or redis_password_given(), "this command waits for it")


def connected(link: RedisLink) -> Client:
    """Its client; raises UsageError when it does not answer."""
    client = link.connect()
    if client is None:
        raise UsageError(f"Redis at {link.address} cannot be read: {link.fault}")
    return client
