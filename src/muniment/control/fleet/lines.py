"""The lines of a job's list, which come over a network a part at a time."""

from __future__ import annotations

import re

import msgspec

from muniment.control.fleet.jobs import job_of
from muniment.errors import UsageError
from muniment.extract.seed_lines import seed_line
from muniment.model.network.jobs import LinesAnswer, LinesCall, ListLine
from muniment.model.seed import BadLine, SeedBatch, SeedLine, SeedPlace
from muniment.tracker.db.database import Database
from muniment.tracker.open import load_list

__all__ = ["add_lines"]

_MOST_LINES = 10_000
_MOST_TEXT = 100_000
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def add_lines(db: Database, job_id: int, call: LinesCall) -> LinesAnswer:
    """Take in the next lines of a job's list.

    Raises NotFoundError, PlaceError when they do not begin where those before them ended, and UsageError.
    """
    job_of(db, job_id)
    if len(call.lines) > _MOST_LINES:
        raise UsageError(f"there are {len(call.lines):,} lines: the maximum at once is {_MOST_LINES:,}")
    store = load_list(db, job_id)
    if store is None:
        raise UsageError(f"job {job_id} has no list: only a job of `job add --fetch` takes one")
    if not 0 <= call.at < 1 << 62:
        raise UsageError("at must be the number of lines that came before")
    lines: list[SeedLine] = []
    bad: list[BadLine] = []
    for number, given in enumerate(call.lines, call.at + 1):
        line, wrong = _read(number, given)
        if line is not None:
            lines.append(line)
        if wrong:
            bad.append(BadLine(number, wrong))
    end = call.at + len(call.lines)
    store.admit_after(SeedBatch(lines, bad, SeedPlace(end, end)), call.at, last=call.end)
    return LinesAnswer(end)


def _read(number: int, given: ListLine) -> tuple[SeedLine | None, str]:
    texts = given.digest, given.etag, given.last_modified
    if any(_CONTROL.search(text) for text in texts) or max(map(len, (*texts, given.meta_json))) > _MOST_TEXT:
        raise UsageError(f"line {number}: a field has a control character, or more than {_MOST_TEXT:,} characters")
    known = {name: text for name, text in zip(("digest", "etag", "last_modified"), texts, strict=True) if text}
    line, wrong = seed_line(number, given.url, _object(number, given.meta_json), known)
    if line is not None and line.account is not None:
        raise UsageError(
            f"line {number}: the URL has an account, which every reader of the tracker would see: give it to "
            "`muniment pipeline --auth-file`"
        )
    return line, wrong


def _object(number: int, text: str) -> str:
    if not text:
        return ""
    try:
        return msgspec.json.encode(msgspec.json.decode(text, type=dict[str, str])).decode()
    except (msgspec.DecodeError, RecursionError):
        raise UsageError(f"line {number}: meta_json is not a JSON object of texts") from None
