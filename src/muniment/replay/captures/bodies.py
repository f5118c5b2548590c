"""The body of an answer: a payload, or a range of it, with or without its content coding, as long as what is there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from msgspec import Struct

from muniment.extract.coding_stream import CODINGS, decoded
from muniment.http.head import Head
from muniment.replay.captures.ranges import BodyPart, ByteRange, part_of, run_from, wanted_range
from muniment.replay.captures.records import Message, kept_lines
from muniment.replay.choice import Choice, Entry

__all__ = ["AT_ONCE", "AnswerBody", "BodyRequest", "answer_body", "header_lines", "measured"]

AT_ONCE = 1 << 20
"""Bytes that are read before an answer begins, so that it can say its length."""
_ABOUT_LENGTH = re.compile(
    rb"(?i)(?:content-length|transfer-encoding|connection|keep-alive|trailer|upgrade|content-range)[ \t]*:"
)
_ABOUT_CODING = re.compile(rb"(?i)content-encoding[ \t]*:")
_BEGINNINGS = {"gzip": b"\x1f\x8b", "x-gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
"""Some tools keep the name of a coding that they have removed."""

OpenMessage = Callable[[Entry], Message]


class BodyRequest(Struct, frozen=True):
    """What is wanted of a body."""

    head_only: bool
    byte_range: str
    """A Range header, or nothing."""
    coded: bool
    """The content coding is kept."""


class AnswerBody(Struct, frozen=True):
    """A body and what it makes of the answer."""

    status: int
    reason: str
    pieces: Iterator[bytes]
    length: int | None
    """Bytes of the pieces; None: not known before they end."""
    coded: bool
    """They have the content coding that the head names."""
    content_range: str = ""


def answer_body(asked: BodyRequest, choice: Choice, message: Message, open_message: OpenMessage) -> AnswerBody | None:
    """The body; None where parts were captured, and not the one that is asked for.

    `open_message` gives the message of a capture from its beginning. Raises RecordError.
    """
    head = message.head
    if choice.headless:
        return AnswerBody(head.status, reason_of(head), iter(()), 0, coded=False)
    if choice.parts:
        return _joined(asked, choice, message, open_message)
    whole = _whole(asked, choice.entry, message)
    if asked.head_only:
        length = _told_length(head) if choice.entry.method == "HEAD" else whole.length
        return AnswerBody(whole.status, whole.reason, iter(()), length, coded=whole.coded)
    if not asked.byte_range or whole.status != 200:
        return whole
    total = whole.length
    if total is None:
        total = sum(map(len, _whole(asked, choice.entry, open_message(choice.entry)).pieces))
    wanted = wanted_range(asked.byte_range, total)
    return whole if wanted is None else _cut(whole, wanted, total)


def header_lines(head: Head, body: AnswerBody) -> list[bytes]:
    """The lines of a head as recorded, but for what the body changes in them."""
    lines = kept_lines(head, _ABOUT_LENGTH)
    if not body.coded:
        lines = [line for line in lines if not _ABOUT_CODING.match(line)]
    return [*lines, f"Content-Range: {body.content_range}".encode()] if body.content_range else lines


def reason_of(head: Head) -> str:
    """The reason phrase, as sent."""
    return head.raw.split(b"\n", 1)[0].strip().partition(b" ")[2].lstrip()[4:].decode("latin-1")


# -- wholes


def _whole(asked: BodyRequest, entry: Entry, message: Message) -> AnswerBody:
    head, codings = message.head, _codings(message.head)
    first = next(message.payload, b"")
    pieces = chain((first,), message.payload)
    mislabelled = bool(codings) and not first.startswith(_BEGINNINGS.get(codings[-1], b""))
    as_stored = asked.coded or not codings or mislabelled
    if not as_stored:
        pieces = chain(decoded(pieces, ",".join(codings)))
    counted, length = measured(pieces, message.length if as_stored else None)
    is_all = entry.part is not None and entry.part.is_all
    status, reason = (200, "OK") if is_all else (head.status, reason_of(head))
    return AnswerBody(status, reason, counted, length, coded=asked.coded and not mislabelled)


def _codings(head: Head) -> list[str]:
    """The codings that mean something, in the order in which they were applied."""
    named = ",".join(value for name, value in head.headers if name == "content-encoding")
    return [name for one in named.split(",") if (name := one.strip().lower()) in CODINGS]


def _told_length(head: Head) -> int | None:
    told = [value for name, value in head.headers if name == "content-length"]
    return int(told[0]) if told and re.fullmatch("[0-9]{1,18}", told[0]) else None


def measured(pieces: Iterator[bytes], known: int | None) -> tuple[Iterator[bytes], int | None]:
    """A body and its length: a small one is read, of a large one the known length is taken."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size > AT_ONCE:
            body = chain(held, pieces)
            return (part_of(body, ByteRange(0, known)), known) if known is not None and known >= size else (body, None)
    return iter(held), size


def _cut(whole: AnswerBody, wanted: ByteRange, total: int) -> AnswerBody:
    if wanted.start == wanted.stop:
        return _not_there(total)
    said = f"bytes {wanted.start}-{wanted.stop - 1}/{total}"
    pieces = part_of(whole.pieces, wanted)
    return AnswerBody(206, "Partial Content", pieces, wanted.stop - wanted.start, whole.coded, said)


def _not_there(total: int) -> AnswerBody:
    return AnswerBody(416, "Range Not Satisfiable", iter(()), 0, coded=False, content_range=f"bytes */{total}")


# -- parts


def _joined(asked: BodyRequest, choice: Choice, message: Message, open_message: OpenMessage) -> AnswerBody | None:
    parts = [one.part for one in choice.parts if one.part is not None]
    total = parts[0].total
    end = max(part.stop for part in parts) if total is None else total
    wanted = wanted_range(asked.byte_range, end) if asked.byte_range else None
    if wanted is not None and wanted.start == wanted.stop:
        return _not_there(end)
    run = run_from(wanted.start, parts) if wanted else run_from(0, parts) or run_from(_own_start(choice), parts)
    if not run:
        return None
    start, stop = run[0][1].start, min(run[-1][1].stop, wanted.stop if wanted else end)
    pieces = (
        iter(()) if asked.head_only else part_of(_run(choice, parts, run, open_message), ByteRange(0, stop - start))
    )
    coded = bool(_codings(message.head))
    if wanted is None and start == 0 and stop == total:
        return AnswerBody(200, "OK", pieces, stop, coded)
    said = f"bytes {start}-{stop - 1}/{'*' if total is None else total}"
    return AnswerBody(206, "Partial Content", pieces, stop - start, coded, said)


def _own_start(choice: Choice) -> int:
    return choice.entry.part.start if choice.entry.part else 0


def _run(
    choice: Choice, parts: Sequence[BodyPart], run: Sequence[tuple[int, ByteRange]], open_message: OpenMessage
) -> Iterator[bytes]:
    for number, taken in run:
        start = parts[number].start
        payload = open_message(choice.parts[number]).payload
        yield from part_of(payload, ByteRange(taken.start - start, taken.stop - start))
