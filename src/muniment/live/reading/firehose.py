"""The firehose: each entry of a job's log once and in order, with the record of its job, as ArchiveBot's has it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import msgspec
from msgspec import Struct

from muniment.clock import monotonic
from muniment.errors import UsageError
from muniment.live import layout
from muniment.live.link import Client, RedisError, RedisLink, text_of, typed

__all__ = ["RedisFirehose", "with_record"]

_log = logging.getLogger(__name__)
_AT_ONCE = 1000
_WAIT_S, _LOOK_S = 0.5, 2.0
_GONE_S = 10.0
"""A record that is gone for so long does not come back: a database that was emptied has it again sooner."""
_ENDLESS = 1 << 53


def with_record(entries: Iterable[bytes], record: Mapping[str, str], ident: str) -> list[bytes]:
    """The lines of entries: each with the fields of its job and its ident as `job_data`."""
    rest = b',"job_data":' + msgspec.json.encode({**record, "ident": ident}) + b"}\n"
    return [entry.rstrip()[:-1] + rest for entry in entries]


class _FollowedJob(Struct):
    """How far the log of a job was read."""

    ident: str
    score: int
    ended: bool = False
    gone_at: float | None = None
    """Since when there is no record of it."""


class RedisFirehose:
    """Reads the logs that Redis has; what is published there says only that it is time to look."""

    def __init__(self, link: RedisLink, idents: Iterable[str], *, since: int | None, follow: bool) -> None:
        self._link, self._since, self._follow = link, since, follow
        self._jobs = {ident: _FollowedJob(ident, -1 if since is None else since) for ident in idents}
        self._all = not self._jobs
        self._listening: Client | None = None
        self._begun, self._looked = False, 0.0
        self._due = set[str]()
        self.missing = 0
        """Entries that were asked for, and had left Redis before they were read."""

    def batches(self) -> Iterator[list[bytes]]:
        """Lines as they come; UsageError for a job that Redis lacks, ServerLostError without a server to read once."""
        while not self._over():
            client = self._link.connect(wait=True) if self._follow else self._link.needed()
            if client is None:
                continue
            try:
                self._look(client)
                while self._due:
                    yield from self._news(client, self._jobs[self._due.pop()])
                self._link.worked()
                if self._follow:
                    self._hear()
            except (RedisError, OSError) as error:
                self._link.complain(error)

    def _over(self) -> bool:
        jobs = self._jobs.values()
        if not self._begun:
            return False
        return not self._follow or (not self._all and all(job.ended for job in jobs))

    def _look(self, client: Client) -> None:
        """Listen, and every two seconds see to every job that runs, whatever was published."""
        if client is not self._listening:
            self._link.listen(layout.UPDATES)
            self._listening, self._looked = client, -_LOOK_S
        if monotonic() - self._looked < _LOOK_S and self._follow:
            return
        self._looked = monotonic()
        if not self._begun:
            self._begin(client)
            self._begun = True
        elif self._all:
            for ident in typed(lambda: client.lrange(layout.WORKING, 0, -1)) or ():
                self._add(ident)
        self._due = {ident for ident, job in self._jobs.items() if not job.ended}

    def _begin(self, client: Client) -> None:
        if self._all and self._since is not None:
            for key in client.scan_iter(match="*_log", _type="zset", count=_AT_ONCE):
                self._add(key.removesuffix(b"_log"))
        elif self._all:
            for ident in typed(lambda: client.lrange(layout.WORKING, 0, -1)) or ():
                self._add(ident)
                self._jobs[text_of(ident)].score = -1
        for job in self._jobs.values():
            if not self._all and not client.exists(job.ident):
                raise UsageError(f"Redis at {self._link.address} has no job {job.ident}")
            if job.score < 0:
                job.score = _number(typed(partial(client.hget, job.ident, "log_score"))) if self._follow else 0

    def _add(self, ident: bytes) -> None:
        self._jobs.setdefault(text_of(ident), _FollowedJob(text_of(ident), 0)).ended = False

    def _hear(self) -> None:
        for _, ident in self._link.heard(wait_s=_WAIT_S):
            if self._all:
                self._add(ident)
            if text_of(ident) in self._jobs:
                self._due.add(text_of(ident))

    def _news(self, client: Client, job: _FollowedJob) -> Iterator[list[bytes]]:
        """What the log of a job has after the last look."""
        more = True
        while more:
            record, entries = self._read(client, job)
            if "url" not in record:  # or one that was emptied, and is written anew in a moment
                self._is_gone(job)
                return
            job.gone_at = None
            end, trimmed = _number(record.get("log_score")), _number(record.get("last_trimmed_log_entry"))
            if 0 < (lost := min(trimmed, end) - job.score) < _ENDLESS // 2:
                self._miss(job, lost)
            if entries:
                job.score = int(entries[-1][1])
                yield with_record((entry for entry, _ in entries if _is_object(entry)), record, job.ident)
            more = len(entries) == _AT_ONCE
            job.ended = not more and "finished_at" in record

    @staticmethod
    def _read(client: Client, job: _FollowedJob) -> tuple[dict[str, str], list[tuple[bytes, float]]]:
        """The record of a job and the next entries, as they were at one moment."""
        with client.pipeline() as pipe:
            pipe.hgetall(job.ident)
            pipe.zrangebyscore(layout.log_key(job.ident), f"({job.score}", "+inf", 0, _AT_ONCE, withscores=True)
            record, entries = pipe.execute(raise_on_error=False)
        if not isinstance(record, dict) or not isinstance(entries, list):
            return {}, []
        return {text_of(name): text_of(value) for name, value in record.items()}, entries

    def _miss(self, job: _FollowedJob, count: int) -> None:
        self.missing += count
        job.score += count
        _log.warning("%d entries of %s had left Redis before they were read", count, job.ident)

    def _is_gone(self, job: _FollowedJob) -> None:
        if job.gone_at is None:
            job.gone_at = monotonic()
        if self._follow and monotonic() - job.gone_at < _GONE_S:
            return
        job.ended = True
        if self._all:
            del self._jobs[job.ident]
        else:
            self.missing += 1
            _log.warning("the record of %s is gone, and with it what was not read of its log", job.ident)


def _is_object(entry: bytes) -> bool:
    """Whether a member of the log is an entry: others may write there, too."""
    try:
        msgspec.json.decode(entry, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return b"\n" not in entry


def _number(text: str | bytes | None) -> int:
    """The number of an entry in a record; the end, as ArchiveBot writes it, is after all of them."""
    try:
        return int(float(text or 0))
    except ValueError:
        return 0
    except OverflowError:
        return _ENDLESS
