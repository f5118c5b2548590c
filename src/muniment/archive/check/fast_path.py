"""The header of a record as Muniment writes it, read by one pattern; whatever else is valid is for `grammar`.

What it takes has no violation: it is a part of the grammar, not another one, and a test holds the two together.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["FastHeader", "usual_header"]

_URN = "<urn:uuid:[0-9a-f-]{36}>"
_SHA1 = "sha1:[A-Z2-7]{32}"
_HEADER = re.compile(
    r"WARC/1\.1\r\n"
    r"WARC-Type: (?:(response)|request|(metadata))\r\n"
    rf"WARC-Record-ID: ({_URN})\r\n"
    r"WARC-Date: ([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?Z)\r\n"
    r"WARC-Target-URI: (https?+:[!-;=?-~]*+)\r\n"
    rf"WARC-Warcinfo-ID: ({_URN})\r\n"
    rf"(?:WARC-Concurrent-To: ({_URN})\r\n)?"
    rf"(?(2)(?:WARC-Refers-To: ({_URN})\r\n)?)"
    r"(?:WARC-IP-Address: ([0-9A-Fa-f.:]++)\r\n)?"
    r"((?:WARC-Protocol: [!-~]++\r\n){0,16})"
    r"(?:WARC-Cipher-Suite: [!-~]++\r\n)?"
    r"(?:WARC-Page-ID: [0-9a-f-]{36}\r\n(?:WARC-Resource-Type: [a-z]++\r\n)?)?"
    rf"(?(1)(?:WARC-Truncated: (length|time|disconnect|unspecified)\r\n)?(?:WARC-Payload-Digest: ({_SHA1})\r\n)?)"
    rf"WARC-Block-Digest: ({_SHA1})\r\n"
    r"Content-Type: application/(?(2)warc-fields|http; msgtype=(?(1)response|request))\r\n"
    r"Content-Length: ([0-9]{1,18})\r\n\r\n"
).fullmatch


class FastHeader(NamedTuple):
    """The header of a response, a request or a metadata record; what it does not have is the empty string."""

    response: str
    """`response` for one."""
    metadata: str
    """`metadata` for one."""
    record_id: str
    date: str
    target: str
    warcinfo: str
    concurrent_to: str
    refers_to: str
    ip: str
    protocols: str
    """The lines of that field."""
    truncated: str
    payload_digest: str
    block_digest: str
    length: str
    """Digits."""


def usual_header(block: bytes) -> FastHeader | None:
    """A header with the empty line at its end; None when it is not one that Muniment writes often."""
    try:
        match = _HEADER(block.decode("ascii"))
    except UnicodeDecodeError:
        return None
    return FastHeader._make(match.groups("")) if match else None
