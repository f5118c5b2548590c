"""The connection to Redis, with short patience: what is lost is found again from the tracker."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, RedisError, ResponseError
from redis.retry import Retry

from muniment.clock import monotonic, now_ms
from muniment.errors import ServerLostError, UsageError
from muniment.live.address import RedisAddress

__all__ = [
    "Client",
    "RedisError",
    "RedisLink",
    "carry_out",
    "carry_out_for",
    "left_alone",
    "of_another_type",
    "plain",
    "text_of",
    "texts",
    "typed",
]

_MOST_HEARD = 10_000
"""Messages that are taken from the channels at once."""

Client = Any
"""A client of Redis: its library says of each method that it may be one to wait for."""

_log = logging.getLogger(__name__)
_PATIENCE_S = 2.0
_AGAIN_S = 1.0
_COMPLAIN_S = 5.0


class RedisLink:
    """Makes connections, one after the other is lost."""

    def __init__(self, address: RedisAddress, password: str, without: str = "the crawl goes on without it") -> None:
        """`without` is what a warning says of the time until it answers; empty: there is no warning."""
        self.address, self._without = address, without
        self._options = {
            **address.options(password),
            "socket_timeout": _PATIENCE_S,
            "socket_connect_timeout": _PATIENCE_S,
            "retry": Retry(NoBackoff(), 0),
            "protocol": 2,
        }
        self.client: Client | None = None
        self.server = ""
        """The run id of the server: another one has other data, or old ones."""
        self.fault = ""
        """Why it could not be used the last time."""
        self.fault_at = 0
        """When that was, in Unix ms."""
        self._pubsub: Any = None
        self._next, self._complained, self._refused = 0.0, -_COMPLAIN_S, False
        self._warned = False
        """There was a warning of this outage."""

    def connect(self, *, wait: bool = False) -> Client | None:
        """The client, when there is a server that answers; with `wait`, not before it is time to ask again."""
        if self.client is not None:
            return self.client
        if (early := self._next - monotonic()) > 0:
            if not wait:
                return None
            time.sleep(early)
        client: Client = redis.Redis(**self._options)
        try:
            info: Any = client.info("server")
        except (RedisError, OSError) as error:
            client.close()
            self.complain(error)
            return None
        self.server = str(info["run_id"])
        self.client = client
        return client

    def needed(self) -> Client:
        """The client; raises ServerLostError when no server answers, UsageError when it lets nobody in."""
        client = self.connect()
        if client is None:
            kind = UsageError if self._refused else ServerLostError
            raise kind(f"Redis at {self.address} cannot be read: {self.fault}")
        return client

    def worked(self) -> None:
        """A step was carried out; a server that answers may still refuse every write."""
        if self._warned and self.client is not None:
            _log.warning("Redis at %s answers again", self.address)
            self._warned = False

    def complain(self, error: BaseException) -> None:
        """Give the connection up for a moment; said once in an outage, and every 5 s at most."""
        self.close()
        self._next = monotonic() + _AGAIN_S
        self.fault, self.fault_at = " ".join(str(error).split())[:200], now_ms()
        self._refused = isinstance(error, AuthenticationError | ResponseError)
        if self._without and not self._warned and monotonic() - self._complained >= _COMPLAIN_S:
            self._complained, self._warned = monotonic(), True
            _log.warning("Redis at %s cannot be used, %s: %s", self.address, self._without, self.fault)

    def listen(self, *channels: str) -> None:
        """Hear of what is published on these channels."""
        assert self.client is not None  # who listens is connected
        if self._pubsub is None:
            self._pubsub = self.client.pubsub(ignore_subscribe_messages=True)
        self._pubsub.subscribe(*channels)

    def mute(self, channel: str) -> None:
        """Hear no more of what is published on a channel."""
        if self._pubsub is not None:
            self._pubsub.unsubscribe(channel)

    def heard(self, *, wait_s: float = 0) -> list[tuple[str, bytes]]:
        """Channel and text of what was published since, waiting for a first one; of very many, the first."""
        found: list[tuple[str, bytes]] = []
        while self._pubsub is not None and len(found) < _MOST_HEARD:
            message = self._pubsub.get_message(timeout=0 if found else wait_s)
            if message is None:
                if not self._pubsub.connection or not self._pubsub.connection.can_read(timeout=0):
                    break
                continue
            if isinstance(message["data"], bytes):
                found.append((message["channel"].decode("utf-8", "replace"), message["data"]))
        return found

    def close(self) -> None:
        """Give the connections back."""
        for one in (self._pubsub, self.client):
            if one is not None:
                one.close()
        self._pubsub = self.client = None


def carry_out(pipe: Any, say: Callable[[str], None]) -> None:
    """Carry out a step; a key of another type costs that key, and is said."""
    carry_out_for(pipe, [say] * len(pipe.command_stack))


def carry_out_for(pipe: Any, said: Sequence[Callable[[str], None]]) -> None:
    """The same of a step for several jobs; each command has the one that says what is wrong with its key."""
    commands = [args for args, _ in pipe.command_stack]
    for args, say, result in zip(commands, said, pipe.execute(raise_on_error=False), strict=False):
        if isinstance(result, ResponseError):
            if not of_another_type(result):
                raise result
            say(left_alone(args[1]))


def left_alone(key: object) -> str:
    """The line for a key of another type."""
    return f"The key {key} of Redis has another type: it is left alone."


def typed(ask: Callable[[], Any]) -> Any:
    """The answer of Redis; None for a key of another type."""
    try:
        return ask()
    except ResponseError as error:
        if of_another_type(error):
            return None
        raise


def plain(answer: Any) -> Any:
    """An answer of a batch; None for a key of another type."""
    if isinstance(answer, RedisError) and not (isinstance(answer, ResponseError) and of_another_type(answer)):
        raise answer
    return None if isinstance(answer, RedisError) else answer


def texts(found: Iterable[bytes | None]) -> list[str]:
    """What Redis answered, as text; what is absent is empty."""
    return [text_of(one) for one in found]


def text_of(found: bytes | None) -> str:
    """The same of one answer."""
    return (found or b"").decode("utf-8", "replace")


def of_another_type(error: ResponseError) -> bool:
    """Whether Redis refused a command because a key has another type."""
    return "WRONGTYPE" in str(error)
