"""The two sides of a port: who answers requests, and who takes the answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from muniment.model.exchange import Body, RequestOutcome

__all__ = ["AnswerTaker", "Answerer", "Headers", "ProxyRequest", "RequestBody", "StoredBytes", "TunnelEnd"]

Headers = tuple[tuple[str, str], ...]


class ProxyRequest(Struct, frozen=True, kw_only=True):
    """A request as the client wrote it."""

    number: int
    method: str
    url: str
    """Absolute and normalised: http or https, for a websocket too."""
    target: str
    """Path and query as the client wrote them."""
    version: str
    """`1.1` or `1.0`."""
    headers: Headers
    """Names and values in their order and case, Latin-1 decoded; those of the proxy itself left out."""
    body: Body | None = None
    """As it came, its transfer coding kept; whoever answers closes it."""
    upgrade: bool = False
    """The client wants another protocol on the connection: a websocket."""

    def header(self, name: str) -> str:
        """The first value of a header (name in lower case), or the empty string."""
        return next((value for other, value in self.headers if other.lower() == name), "")


class AnswerTaker(Protocol):
    """The client's side of one request; its calls do nothing once the client has hung up."""

    @property
    def gone(self) -> bool:
        """Whether the client has hung up."""

    def hold(self, *, held: bool) -> None:
        """The request waits for the turn of its host, or no more."""

    def begin(self, head: bytes, *, keep: bool, streamed: bool = False) -> None:
        """The header block, exactly as it is sent.

        `keep`: its body ends by itself, the connection may stay; `streamed`: it may never end.
        """

    def more(self, piece: bytes | memoryview, stored: StoredBytes | None = None) -> None:
        """More bytes of the body, as on the wire; those so far can be read from `stored` again when it is given.

        Without it, they are held until the client takes them; await `room` between.
        """

    async def room(self) -> None:
        """Wait until the client has taken nearly all, or has hung up."""

    def end(self, *, whole: bool) -> None:
        """Nothing more comes; what is not `whole` ends by a closed connection."""

    def refuse(self, status: int, code: str, text: str) -> None:
        """Answer with a page of the proxy's own: 403 for a refusal, 502 for a failure. Nothing was begun before."""


class StoredBytes(Protocol):
    """The bytes of a body so far, in a file."""

    length: int

    def read(self, at: int, most: int) -> bytes:
        """Bytes from a place on."""

    def close(self) -> None:
        """They are read no more."""


class TunnelEnd(Protocol):
    """One end of a connection whose bytes are passed on as they are."""

    def receive(self, data: bytes) -> None:
        """Bytes from the other end."""

    def hang_up(self) -> None:
        """The other end is closed."""

    def pause(self) -> None:
        """The other end takes nothing for now: read nothing."""

    def resume(self) -> None:
        """It does again."""


class Answerer(Protocol):
    """Answers the requests of one page."""

    async def answer(self, request: ProxyRequest, taker: AnswerTaker) -> RequestOutcome:
        """Give the answer to `taker` as it comes, and say what became of it when it has ended."""

    async def tunnel(self, request: ProxyRequest, client: TunnelEnd) -> TunnelEnd | RequestOutcome:
        """Connect a websocket to its server and send the request; why not, when that is refused or fails."""

    def cut(self) -> None:
        """The page has ended, and what is under way ends with what has come; called once, when its port is closed."""


class RequestBody(Protocol):
    """Takes the body of a request as it comes."""

    length: int

    def begin_chunked(self) -> None:
        """It has the chunked transfer coding."""

    def add(self, wire: bytes | memoryview, payload: Sequence[bytes | memoryview] | None) -> None:
        """More bytes, and the payload among them (None: all of it). Raises OSError when they cannot be kept."""

    def finish(self) -> Body:
        """The body as it is now."""

    def discard(self) -> None:
        """Throw away what was kept."""
