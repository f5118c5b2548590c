"""The Redis of a live plane, and its password, which no command line may have."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from muniment.http.auth import Account
from muniment.live.address import RedisAddress, parse_redis
from muniment.settings.environment import redis_given, redis_password_given

__all__ = ["redis_server"]


def redis_server(given: str | None, accounts: Mapping[str, Account]) -> tuple[RedisAddress, str]:
    """Where Redis is, and its password, the last choice being an account of its host; raises UsageError."""
    address, password = parse_redis(given or redis_given(), secret=not given)
    if password := password or redis_password_given():
        return address, password
    account = accounts.get(address.host)
    if account is None or address.user not in {"", account.user}:
        return address, ""
    return structs.replace(address, user=account.user), account.password
