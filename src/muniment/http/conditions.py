"""Conditional requests and unchanged content: what may be asked, and what the answer means (RFC 9110 §13)."""

from __future__ import annotations

import re

from muniment.model.exchange import Exchange
from muniment.model.seed import Prior

__all__ = ["conditions", "is_unchanged"]

# What a seed list holds was typed or stored by somebody: only what the grammar allows is sent, so that no value begins
# another header. `*` stands outside of it, and would make every answer a 304. Spaces are sent by real servers.
_TAG = r'(?:W/)?"[ !#-~\x80-\xff]*"'
_TAGS = re.compile(rf"{_TAG}(?:[ \t]*,[ \t]*{_TAG})*")
_DATE = re.compile(r"[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT", re.ASCII)
_LONGEST = 1000


def conditions(prior: Prior) -> tuple[tuple[str, str], ...]:
    """The headers that ask for an answer only if it has changed; none without a well-formed validator."""
    found = []
    if len(prior.etag) <= _LONGEST and _TAGS.fullmatch(prior.etag):
        found.append(("If-None-Match", prior.etag))
    if _DATE.fullmatch(prior.last_modified):
        # a server that knows entity tags ignores it beside one; the others know only this
        found.append(("If-Modified-Since", prior.last_modified))
    return tuple(found)


def is_unchanged(prior: Prior, exchange: Exchange, *, asked: bool) -> bool:
    """Whether a whole answer is what the earlier capture was; `asked` says that conditions went along."""
    if exchange.failure is not None:
        return False
    if exchange.status == 304:
        return asked and bool(conditions(prior))
    body = exchange.body
    return bool(prior.digest and body.payload_length) and body.payload_sha1.hex() == prior.digest
