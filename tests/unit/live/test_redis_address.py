"""The address of Redis, as given."""

from __future__ import annotations

import pytest

from muniment.errors import UsageError
from muniment.live.address import RedisAddress, parse_redis


def test_addresses() -> None:
    assert parse_redis("redis://box") == (RedisAddress("box"), "")
    assert parse_redis("rediss://me@box:7000/3") == (RedisAddress("box", 7000, "", 3, "me", True), "")
    assert parse_redis("unix:///run/redis.sock?db=2") == (RedisAddress(path="/run/redis.sock", db=2), "")
    assert parse_redis("redis://me:pa%40ss@box/1", secret=True) == (RedisAddress("box", db=1, user="me"), "pa@ss")


@pytest.mark.parametrize("text", ["http://box", "redis://", "redis://box:no", "redis://box/one", "unix:", "box"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="Redis"):
        parse_redis(text)


def test_a_password_on_a_command_line_is_refused_and_not_shown() -> None:
    with pytest.raises(UsageError, match="MUNIMENT_REDIS_PASSWORD") as refusal:
        parse_redis("redis://me:hunter2@box")
    assert "hunter2" not in str(refusal.value)
    assert "hunter2" not in str(parse_redis("redis://me:hunter2@box", secret=True)[0])
