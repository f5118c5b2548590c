"""The record of one job in Redis: written after the tracker's commits, read for what others want of the job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct
from redis.exceptions import ResponseError, WatchError

from muniment.clock import monotonic, now_ms
from muniment.live import layout
from muniment.live.ident import candidates
from muniment.live.joblog import JobLog, LogReader
from muniment.live.link import Client
from muniment.live.steering import AGE, READ, Reading, asked, own_changes, whole_number
from muniment.model.job import JobOutcome, JobState
from muniment.model.live import LiveJob, LogState, Outside
from muniment.settings.values import ROLES

__all__ = ["JobPort", "JobRecord", "PlaneOptions"]

KEPT_S, ABORTED_S = 172_800, 5
"""How long the record of a job that has ended stays."""
_MOST_ENTRIES = 100_000
"""Of a job in Redis, however far others are behind."""
_MOST_PATTERNS = 10_000
_BATCH = 5_000
_TRIM_BY = 500
"""Entries that are taken out at once, so that not every batch has a command for it."""
_ALL_AGAIN_S, _READING_S = 30.0, 0.2
_CURSORS = ("last_broadcasted_log_entry", "last_analyzed_log_entry")
_COUNTERS = {
    JobOutcome.COMPLETED: "jobs_completed",
    JobOutcome.ABORTED: "jobs_aborted",
    JobOutcome.FAILED: "jobs_failed",
}
_ENDED = ("finished_at", "aborted", "counted")


class PlaneOptions(Struct, frozen=True, kw_only=True):
    """How the live plane is run."""

    roles: frozenset[str] = frozenset(ROLES)
    keep: int = 10_000
    announce: str = "queue"
    reap_after: float = 7200.0


class JobPort(Protocol):
    """What the record asks of the tracker, from its own thread; LookupError when nobody answers."""

    def job(self) -> LiveJob:
        """The job as it stands."""

    def keep_ident(self, ident: str, url: str) -> None:
        """Keep its name in Redis."""

    def keep_epoch(self, epoch: str) -> None:
        """Keep which server has all of it."""

    def steer(self, outside: Outside) -> list[str]:
        """Change the job; a line for each thing that is refused."""


class JobRecord:
    """Knows what it wrote last, so that what is otherwise comes from others."""

    def __init__(self, log: JobLog, port: JobPort, options: PlaneOptions, pipeline_id: str, target: str) -> None:
        self._log, self._port, self._options, self._pipeline_id = log, port, options, pipeline_id
        self._target = target
        self.ident = ""
        self.queued = 0
        """Pages in scope, as the crawl last said."""
        self.beat = 0
        self._written: dict[str, str] = {}
        self._patterns: frozenset[str] = frozenset()
        self._age = self._job_age = 0
        self._reader: LogReader | None = None
        self._sent = LogState()
        self._sent_score = self._trimmed = self._heard = 0
        self._due = True
        self._read_at = self._read_all_at = -_ALL_AGAIN_S
        self._whole, self._said = "", set[str]()
        self._failed_outside = False

    # -- a connection has been made

    def arrive(self, client: Client, server: str) -> None:
        """Have the layout stand; what the server has of it is read, unless it may be another or have old data."""
        job = self._port.job()
        if not job.ident:
            job = self._named(client, job)
        if not self.ident:
            self._log.say(f"Received item {job.ident}.")
        self.ident = job.ident
        there = job.epoch == server and bool(client.exists(self.ident))
        self._whole = server
        if there:
            self._remember(client, job)
        self._stand(client, job, anew=not there)
        if job.epoch != server:
            self._port.keep_epoch(server)
        self._due = True

    def _named(self, client: Client, job: LiveJob) -> LiveJob:
        for ident, url in candidates(layout.target_of(self._target, job.settings.seed)):
            if not client.exists(ident):
                self._port.keep_ident(ident, url)
                break
        return self._port.job()

    def _remember(self, client: Client, job: LiveJob) -> None:
        """What an earlier run wrote, so that changes made meanwhile are known as such."""
        if self._written:
            return
        kept: Any = client.hgetall(self._copy_key)
        kept_patterns: Any = client.smembers(f"{self._copy_key}_ignores")
        text = {name.decode(): value.decode("utf-8", "replace") for name, value in kept.items()}
        if all(name in text for name in (*layout.IN_FORCE, AGE)):
            self._written = {name: text[name] for name in layout.IN_FORCE}
            self._patterns = frozenset(pattern.decode("utf-8", "replace") for pattern in kept_patterns)
            self._age = whole_number(text[AGE]) or 0
        else:
            self._written, self._patterns, self._age = layout.setting_fields(job), job.patterns, job.age

    @property
    def _copy_key(self) -> str:
        return f"muniment:{self.ident}"

    def _stand(self, client: Client, job: LiveJob, *, anew: bool) -> None:
        ident, log, state = self.ident, layout.log_key(self.ident), self._log.state
        counted, score, beat, trimmed, known_age = _texts(
            client.hmget(ident, "counted", "log_score", "heartbeat", "last_trimmed_log_entry", AGE)
        )
        self.beat = max(self.beat, whole_number(beat) or 0)
        before, lines = self._log.tail(self._options.keep)
        self._reader = self._log.reader_after(state)
        missing = state.position.score - (whole_number(score) or 0)
        follows = not anew and 0 <= missing <= len(lines)
        with client.pipeline() as pipe:
            if follows:
                lines = lines[len(lines) - missing :]
                self._trimmed = whole_number(trimmed) or 0
            else:
                pipe.delete(log)
                self._trimmed = before
            first = state.position.score - len(lines) + 1
            if lines:
                pipe.zadd(log, dict(zip(lines, range(first, first + len(lines)), strict=True)))
            # what ended an earlier run does not end this one
            pipe.hdel(ident, *_ENDED, *(("abort_requested", "failed") if anew or counted else ()))
            if counted in set(JobOutcome):
                pipe.decr(_COUNTERS[JobOutcome(counted)])
            pipe.hset(ident, mapping=layout.begun_fields(job, ident, self._pipeline_id))
            pipe.hset(ident, mapping=self._sums(state, state.position.score))
            if anew:
                self._put_settings(pipe, job, max(job.age, whole_number(known_age) or 0, self._age))
            for key in (ident, log, layout.ignores_key(ident), self._copy_key, f"{self._copy_key}_ignores"):
                pipe.persist(key)
            pipe.lrem(layout.WORKING, 0, ident)
            pipe.rpush(layout.WORKING, ident)
            pipe.publish(layout.UPDATES, ident)
            self._execute(pipe)
        self._sent, self._sent_score = state, state.position.score
        self._announce(client, job)

    def _announce(self, client: Client, job: LiveJob) -> None:
        text = f"Archiving {job.url.partition('#')[0]}"
        if self._options.announce == "off" or _typed(lambda: self._announced(client, text)):
            return
        key = layout.QUEUED if self._options.announce == "queue" else layout.ANNOUNCED
        _typed(lambda: client.zadd(key, {text: now_ms() / 1000}))
        _typed(lambda: client.zremrangebyrank(key, 0, -1001))

    def _announced(self, client: Client, text: str) -> bool:
        return any(client.zscore(key, text) is not None for key in (layout.QUEUED, layout.ANNOUNCED))

    # -- what the crawl does

    def send(self, client: Client, *, beat: bool) -> None:
        """Write what was committed since: entries, sums, cursors; in one step, so that a reader sees all or nothing."""
        state = self._log.state
        assert self._reader is not None  # it has arrived
        if state is self._sent and self._sent_score == state.position.score and not beat:
            return
        if state.position.score - self._sent_score > self._options.keep + _BATCH and self._cuts:
            self._skip_ahead(client)
        lines = self._reader.read(state.position.length, _BATCH)
        score = self._sent_score + len(lines)
        with client.pipeline() as pipe:
            if lines:
                scores = range(self._sent_score + 1, score + 1)
                pipe.zadd(layout.log_key(self.ident), dict(zip(lines, scores, strict=True)))
                pipe.publish(layout.UPDATES, self.ident)
            self._trim(pipe, score)
            pipe.hset(self.ident, mapping=self._sums(state, score))
            self._execute(pipe)
        self._sent, self._sent_score = state, score

    @property
    def _cuts(self) -> bool:
        return {"analyzer", "broadcaster", "trimmer"} <= self._options.roles

    def _skip_ahead(self, client: Client) -> None:
        """Far behind after an outage: what would be taken out again at once is not written."""
        state = self._log.state
        before, lines = self._log.tail(self._options.keep)
        self._reader = self._log.reader_after(state)
        with client.pipeline() as pipe:
            pipe.delete(layout.log_key(self.ident))
            if lines:
                scores = range(before + 1, state.position.score + 1)
                pipe.zadd(layout.log_key(self.ident), dict(zip(lines, scores, strict=True)))
            self._trimmed = before
            pipe.hset(self.ident, mapping=self._sums(state, state.position.score))
            self._execute(pipe)
        self._sent_score = state.position.score

    def _trim(self, pipe: Any, score: int) -> None:
        most = _MOST_ENTRIES
        if "trimmer" in self._options.roles:
            most = self._options.keep if self._cuts else max(self._options.keep, score - self._heard)
        to = score - min(most, _MOST_ENTRIES)
        if to - self._trimmed >= min(_TRIM_BY, self._options.keep):
            pipe.zremrangebyscore(layout.log_key(self.ident), "-inf", to)
            self._trimmed = to

    def _sums(self, state: LogState, score: int) -> dict[str, str]:
        roles = self._options.roles
        fields = layout.counter_fields(
            state, self.queued + state.position.robots, now_ms(), analyzer="analyzer" in roles
        )
        fields |= {"log_score": str(score), "last_trimmed_log_entry": str(self._trimmed), "heartbeat": str(self.beat)}
        for role, cursor in zip(("broadcaster", "analyzer"), _CURSORS, strict=True):
            if role in roles:
                fields[cursor] = str(score)
        return fields

    # -- what others do

    def look(self) -> None:
        """Somebody published something: read the settings."""
        self._due = True

    def check(self, client: Client, *, ending: bool = False) -> None:
        """Read what others want, when something says that they want it, and every 30 s."""
        now = monotonic()
        if now - self._read_at < _READING_S:
            return
        self._read_at = now
        job = self._port.job()
        self._due |= job.age != self._job_age or now - self._read_all_at >= _ALL_AGAIN_S
        if not self._due:
            found = _typed(lambda: client.hmget(self.ident, AGE, "abort_requested", "failed", "url", *_CURSORS))
            if found is None:
                return
            age, abort, failed, url, *cursors = found
            if url is None:
                raise LookupError("the record is gone")
            self._heard = min((int(float(_texts([one])[0] or 0)) for one in cursors), default=0)
            self._due = abort is not None or failed is not None or age != str(self._age).encode()
        if self._due and not ending:
            self._due, self._read_all_at = False, now
            _typed(lambda: self._sync(client, job))

    def _sync(self, client: Client, job: LiveJob) -> None:
        with client.pipeline() as pipe:
            try:
                pipe.watch(self.ident, layout.ignores_key(self.ident))
                reading, flooded = self._reading(pipe)
                if reading.fields["url"] is None:
                    raise LookupError("the record is gone")
                self._settle(pipe, job, reading, flooded=flooded)
            except WatchError:
                self._due = True  # somebody else was quicker: it is read again

    def _reading(self, pipe: Any) -> tuple[Reading, bool]:
        fields = dict(zip(READ, pipe.hmget(self.ident, *READ), strict=True))
        key = layout.ignores_key(self.ident)
        count = pipe.scard(key)
        gone = not count and len(self._patterns) > 1 and (fields[AGE] or b"0") == str(self._age).encode()
        flooded = count > _MOST_PATTERNS or gone
        there = {one.encode() for one in self._patterns} if flooded else pipe.smembers(key)
        if count > _MOST_PATTERNS:
            self._say(f"Refused: {count} ignore patterns, the maximum is {_MOST_PATTERNS}.")
        return Reading(fields, frozenset(there)), flooded

    def _settle(self, pipe: Any, job: LiveJob, reading: Reading, *, flooded: bool) -> None:
        """Take over what others changed, then write what is otherwise in the tracker."""
        own = own_changes(layout.setting_fields(job), self._written)
        own_age = max(job.age, self._age + 1) if own else self._age
        changed = reading.changed(self._written)
        if reading.age <= own_age:
            changed -= own
        outside, refused = asked(reading, changed, self._written, self._patterns)
        if own and reading.age <= own_age:
            own_added, own_removed = job.patterns - self._patterns, self._patterns - job.patterns
            outside = Outside(
                **{
                    **{name: getattr(outside, name) for name in Outside.__struct_fields__},
                    "added": tuple(one for one in outside.added if one not in own_removed),
                    "removed": tuple(one for one in outside.removed if one not in own_added),
                }
            )
        if outside != Outside() and job.state != JobState.ABORTED:
            self._failed_outside |= outside.failed
            refused += self._port.steer(outside)
            job = self._port.job()
        for line in refused:
            self._say(f"Refused: {line}.")
        self._job_age = job.age
        wanted = layout.setting_fields(job)
        same = all((reading.text(name) or "") == wanted[name] for name in layout.IN_FORCE)
        there = {one.decode("utf-8", "replace") for one in reading.patterns}
        if same and there == job.patterns and not flooded and reading.age >= job.age and not refused:
            if (self._written, self._patterns, self._age) != (wanted, job.patterns, reading.age):
                self._written, self._patterns, self._age = wanted, job.patterns, reading.age
                pipe.multi()
                self._put_copy(pipe)
                pipe.execute()
            return
        pipe.multi()
        self._put_settings(pipe, job, max(job.age, reading.age + 1))
        pipe.publish(layout.job_channel(self.ident), self._age)
        self._execute(pipe)

    def _put_settings(self, pipe: Any, job: LiveJob, age: int) -> None:
        fields = layout.setting_fields(job)
        ignores = layout.ignores_key(self.ident)
        pipe.hset(self.ident, mapping={name: value for name, value in fields.items() if value} | {AGE: str(age)})
        if absent := [name for name, value in fields.items() if not value]:
            pipe.hdel(self.ident, *absent)
        pipe.delete(ignores)
        if job.patterns:
            pipe.sadd(ignores, *sorted(job.patterns))
        self._written, self._patterns, self._age, self._job_age = fields, job.patterns, age, job.age
        self._put_copy(pipe)

    def _put_copy(self, pipe: Any) -> None:
        pipe.hset(self._copy_key, mapping={**self._written, AGE: str(self._age)})
        pipe.sunionstore(f"{self._copy_key}_ignores", layout.ignores_key(self.ident))

    # -- the end

    def end(self, client: Client, job: LiveJob) -> None:
        """The run has ended: the rest of the log, the outcome, its count, and how long the record stays."""
        while self._sent_score < self._log.state.position.score:
            before = self._sent_score
            self.send(client, beat=True)
            if self._sent_score == before:
                break
        over = job.state in {JobState.FINISHED, JobState.ABORTED} and bool(job.outcome)
        outcome = JobOutcome(job.outcome) if over else None
        kept_s = ABORTED_S if outcome is JobOutcome.ABORTED else KEPT_S
        counted = client.hget(self.ident, "counted")
        with client.pipeline() as pipe:
            fields = {"finished_at": f"{now_ms() / 1000:.3f}"}
            if outcome is JobOutcome.ABORTED:
                fields["aborted"] = "true"
            if outcome is not None:
                fields["counted"] = outcome.value
                if not counted and not self._failed_outside:
                    pipe.incr(_COUNTERS[outcome])
            pipe.hset(self.ident, mapping=fields)
            pipe.lrem(layout.WORKING, 0, self.ident)
            for key in (self.ident, layout.log_key(self.ident), layout.ignores_key(self.ident)):
                pipe.expire(key, kept_s, lt=True) if self._failed_outside else pipe.expire(key, kept_s)
            for key in (self._copy_key, f"{self._copy_key}_ignores"):
                pipe.expire(key, kept_s)
            pipe.publish(layout.UPDATES, self.ident)
            self._execute(pipe)

    # -- faults

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._log.say(text)
            if len(self._said) > 1000:
                self._said.clear()

    def _execute(self, pipe: Any) -> None:
        """Carry out a step; a key of another type costs that key and one line."""
        commands = [args for args, _ in pipe.command_stack]
        for args, result in zip(commands, pipe.execute(raise_on_error=False), strict=False):
            if isinstance(result, ResponseError):
                if "WRONGTYPE" not in str(result):
                    raise result
                self._say(f"The key {args[1]} of Redis has another type: it is left alone.")


def _texts(found: Any) -> list[str]:
    return [(one or b"").decode("utf-8", "replace") for one in found]


def _typed(ask: Callable[[], Any]) -> Any:
    """The answer; None for a key of another type."""
    try:
        return ask()
    except ResponseError as error:
        if "WRONGTYPE" in str(error):
            return None
        raise
