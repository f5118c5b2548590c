"""The configuration of the HTTP engine: one frozen value per worker."""

from __future__ import annotations

from msgspec import Struct

from muniment.http.credentials import Credentials
from muniment.rules.proxies import ProxyRule

__all__ = ["FetchConfig"]


class FetchConfig(Struct, frozen=True, kw_only=True):
    """The engine's settings; times are in seconds."""

    user_agent: str
    headers: tuple[tuple[str, str], ...] = ()
    """Sent with every request; one of a built-in name takes that one's place."""
    polite: bool = False
    """Send the headers that a browser sends with a page, besides the few that matter."""
    compression: bool = False
    """Ask for gzip and deflate; else for `identity`."""
    connect_timeout: float = 20.0
    """For everything before the request can be sent: TCP, proxy and TLS, each time anew; names have `dns_timeout`."""
    timeout: float = 60.0
    """The longest silence, before the header block's end and within the body; any received byte starts it anew."""
    longest: float = 3600.0
    """The longest exchange, from the request: what still comes then would never end."""
    max_body: int | None = None
    """Bytes of body after which a response is cut off, counted as on the wire."""
    insecure: bool = False
    """Accept any certificate."""
    ca_file: str = ""
    """Trust the certificates of this PEM file instead of the system's."""
    credentials: Credentials = Credentials()
    """Its headers are sent like `headers`, each where it may go."""
    proxies: tuple[ProxyRule, ...] = ()
    """`http://`, `socks4://`, `socks5://` or `socks5h://`, with user and password where needed."""
    allowed_classes: frozenset[str] = frozenset()
    """The address classes besides `public` that may be reached: see `address_policy.address_class`."""
    late_names: frozenset[str] = frozenset()
    """Names that add the classes of what they resolve to, once: they did not resolve when those were found."""
    per_host: int = 6
    """Connections to a host that was given no limit of its own."""
    idle: float = 10.0
    """How long a kept connection may wait for its next request."""
    most_open: int = 500
    """Connections over all hosts from which on idle ones are closed before their time."""
    nameservers: tuple[str, ...] = ()
    """`address` or `address:port`; empty for the system's."""
    dns_timeout: float = 10.0
    """The longest wait for a name."""
