"""Replay without rewriting: what stands behind the proxy of a browser, and answers every request from the archive."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import chain
from urllib.parse import unquote, urlsplit

from muniment.http.head import Head
from muniment.proxy.answerer import Answered, AnswerTaker, ProxyRequest, TunnelEnd
from muniment.replay.catalog import Catalog, Entry
from muniment.replay.front_door import FrontDoor
from muniment.replay.lookup import http_date
from muniment.replay.ranges import ByteRange, wanted_range
from muniment.replay.records import Message, RecordError, message_of
from muniment.replay.site import AT_PATH, ReplaySite, url_of, micros_of

__all__ = ["ArchiveAnswerer"]
