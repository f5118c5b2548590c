"""The record of one job in Redis: written after the tracker's commits, read for what others want of the job."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from muniment.clock import monotonic, now_ms
from muniment.live import layout
from muniment.live.endings import ABORTED_S, COUNTERS, KEPT_S, add_notice, end_record, rest_of
from muniment.live.ident import candidates
from muniment.live.layout import ReadFirst
from muniment.live.link import Client, carry_out, carry_out_for, plain, text_of, texts, typed
from muniment.live.log_trimming import MOST_ENTRIES, cuts, trimmed_to
from muniment.live.ports import EntryReader, JobPort, PlaneOptions, ReadLog
from muniment.live.steered_settings import SteeredSettings
from muniment.live.steering import READ, whole_number
from muniment.model.job import JobOutcome, JobState
from muniment.model.network.live import LiveJob, LogState

__all__ = ["Arrival", "JobSync", "arrive"]

_BATCH = 5_000
_ALL_AGAIN_S, _READING_S = 30.0, 0.25
"""Between readings of everything, and of what somebody says has changed."""
_REPORT_S = 5.0
_CURSORS = ("last_broadcasted_log_entry", "last_analyzed_log_entry")
_ENDED = ("finished_at", "aborted", "counted")
_OTHER_PROGRAMS = ("grabber", "youtube_dl")
"""Fields that ask for programs of ArchiveBot's pipelines."""
_MOST_SAID, _MOST_ANNOUNCED, _MOST_NAME = 1000, 1000, 60
_ANNOUNCED_S = 30 * 86_400
_ASKED = 5  # commands, for what is there of a job


class Arrival(Struct):
    """A job whose layout is to be written."""

    sync: JobSync
    job: LiveJob
    before: int
    """The number of the entry before these lines."""
    lines: list[bytes]
    ended: bool
    """It has ended: its record is for the rest of its time."""


def arrive(client: Client, server: str, arrivals: Sequence[Arrival]) -> None:
    """Write the layout of jobs to a server in this state, in one step."""
    with client.pipeline(transaction=False) as pipe:
        for one in arrivals:
            one.sync.ask_first(pipe, one.job)
        found = [plain(answer) for answer in pipe.execute(raise_on_error=False)]
    with client.pipeline() as pipe:
        said: list[Callable[[str], None]] = []
        for number, one in enumerate(arrivals):
            one.sync.write_first(pipe, server, one, found[number * _ASKED : (number + 1) * _ASKED])
            said += [one.sync.say] * (len(pipe.command_stack) - len(said))
        carry_out_for(pipe, said)


class JobSync:
    """Writes what is new a few times a second, in one step each, so that a reader sees all of a step or nothing."""

    def __init__(
        self,
        log: ReadLog,
        port: JobPort,
        options: PlaneOptions,
        pipeline_id: str,
        target: str,
        *,
        notices: bool = False,
    ) -> None:
        """With `notices`, its end comes to `finish_notifications`."""
        self._log, self._port, self._options, self.pipeline_id = log, port, options, pipeline_id
        self._target, self._notices = target, notices
        self.settings = SteeredSettings(port, self.say)
        self.queued = self.beat = 0
        """Pages in scope, and heartbeats, as the crawl last gave them."""
        self._reader: EntryReader | None = None
        self._sent = LogState(), 0
        self._score = self._trimmed = self._heard = 0
        self._due, self._server = True, ""
        self._read_at, self._read_all_at = -_ALL_AGAIN_S, 0.0
        self._said = set[str]()
        self._left_out, self._foreign = 0, set[str]()
        self._reported_at, self._reported = 0.0, dict[str, str]()

    @property
    def roles(self) -> frozenset[str]:
        """What this process does."""
        return self._options.roles

    @property
    def ident(self) -> str:
        """The name of the job in Redis; empty until it has one."""
        return self.settings.ident

    def on_connect(self, client: Client, server: str) -> None:
        """Write the layout; what the server has of it is read, unless it may be another or have old data."""
        job = self.named(client, self._port.job())
        arrive(client, server, [self.arrival(job)])
        self.arrived(job, server)

    def named(self, client: Client, job: LiveJob) -> LiveJob:
        """The job with its name in Redis."""
        return job if job.ident else self._with_ident(client, job)

    def arrival(self, job: LiveJob, tail: tuple[int, list[bytes]] | None = None, *, ended: bool = False) -> Arrival:
        """What is to be written of it, with the end of its log."""
        before, lines = tail or self._log.tail(self._log.state, self._options.keep)
        return Arrival(self, job, before, lines, ended)

    def arrived(self, job: LiveJob, server: str) -> None:
        """Have the tracker keep that a server has all of it."""
        if job.counted:
            self._port.keep_counted("")
        if job.epoch != server:
            self._port.keep_epoch(server)

    def _with_ident(self, client: Client, job: LiveJob) -> LiveJob:
        for ident, url in candidates(layout.target_of(self._target, job.settings.seed)):
            # of two jobs that begin at once only one has it
            if typed(partial(client.hsetnx, ident, "url", url)):
                client.expire(ident, KEPT_S)
                self._port.keep_ident(ident, url)
                break
        return self._port.job()

    def ask_first(self, pipe: Any, job: LiveJob) -> None:
        """As a part of a batch: ask what a server has of it."""
        pipe.hmget(job.ident, ReadFirst._fields)
        pipe.hgetall(layout.own_key(job.ident))
        pipe.smembers(layout.own_ignores_key(job.ident))
        for key in (layout.QUEUED, layout.ANNOUNCED):
            pipe.zscore(key, _announcement(job))

    def write_first(self, pipe: Any, server: str, arrival: Arrival, found: Sequence[Any]) -> None:
        """Write all of it, as a part of a step, by what the server has."""
        job, (fields, copy, patterns, *announced) = arrival.job, found
        self._server = server
        there = ReadFirst(*(fields or [None] * len(ReadFirst._fields)))
        if not arrival.ended:
            self._say_first(job, there)
        self.settings.ident = job.ident
        self.pipeline_id = self.pipeline_id or text_of(there.pipeline_id)
        known = there.url is not None and job.epoch == server and not arrival.ended
        if known:
            self.settings.remember(copy or {}, patterns or (), job)
        # a record that has expired does not say what the counts have; a server that began anew has the same data
        same = job.epoch.partition("/")[0] == server.partition("/")[0]
        counted = job.counted if there.url is None and same else ""
        self._write_all(pipe, arrival, there, anew=not known, counted=counted)
        if not arrival.ended and self._options.announce != "off" and all(score is None for score in announced):
            self._announce(pipe, job)
        # what others changed meanwhile is in what is known
        self._due = known

    def _say_first(self, job: LiveJob, there: ReadFirst) -> None:
        """Say that it arrives, and which programs the record asks for that Muniment does not run."""
        if self.ident:
            return
        self._log.say(f"Received item {job.ident}.")
        for name, program in zip(_OTHER_PROGRAMS, texts([there.grabber, there.youtube_dl]), strict=True):
            if program:
                self.say(f"{name}={program[:_MOST_NAME]} has no effect: Muniment does not run it.")

    def _write_all(self, pipe: Any, arrival: Arrival, there: ReadFirst, *, anew: bool, counted: str) -> None:
        ident, log, state, job, lines = (
            self.ident,
            layout.log_key(self.ident),
            self._log.state,
            arrival.job,
            arrival.lines,
        )
        self.beat = max(self.beat, whole_number(text_of(there.heartbeat)) or 0)
        self._reader = self._log.reader_after(state)
        missing = state.position.score - (whole_number(text_of(there.log_score)) or 0)
        if not anew and 0 <= missing <= len(lines):
            lines = lines[len(lines) - missing :]
            self._trimmed = whole_number(text_of(there.last_trimmed_log_entry)) or 0
        else:
            pipe.delete(log)
            self._trimmed = arrival.before
        self._add(pipe, lines, state.position.score)
        if not arrival.ended:
            self._begin_run(pipe, text_of(there.counted) or counted, anew=anew)
        sums = self._sums(state, state.position.score)
        pipe.hset(ident, mapping=layout.begun_fields(job, ident, self.pipeline_id) | sums)
        if anew:
            self.settings.put(
                pipe, job, max(job.age, whole_number(text_of(there.settings_age)) or 0, self.settings.age)
            )
        if arrival.ended:
            end_record(pipe, ident, *rest_of(job))
        pipe.publish(layout.UPDATES, ident)
        self._report(pipe, state, written=True)
        self._sent, self._score = (state, self.queued), state.position.score

    def _begin_run(self, pipe: Any, counted: str, *, anew: bool) -> None:
        ident = self.ident
        # what ended an earlier run does not end this one
        pipe.hdel(ident, *_ENDED, *(("abort_requested", "failed") if anew or counted else ()))
        if counted in set(JobOutcome):
            pipe.decr(COUNTERS[JobOutcome(counted)])
        for key in layout.job_keys(ident):
            pipe.persist(key)
        pipe.lrem(layout.WORKING, 0, ident)
        pipe.rpush(layout.WORKING, ident)

    def rebuild(self) -> None:
        """Have the layout written anew, whatever the server has; raises LookupError, as for a record that is gone."""
        self._port.keep_epoch("")
        raise LookupError("it is to be written anew")

    def _announce(self, pipe: Any, job: LiveJob) -> None:
        key, now = layout.QUEUED if self._options.announce == "queue" else layout.ANNOUNCED, now_ms() / 1000
        pipe.zadd(key, {_announcement(job): now})
        pipe.zremrangebyrank(key, 0, -_MOST_ANNOUNCED - 1)
        pipe.zremrangebyscore(layout.ANNOUNCED, "-inf", now - _ANNOUNCED_S)

    # -- what the crawl does

    @property
    def waits(self) -> bool:
        """Whether entries are still to be written, or settings to be read."""
        return self._due or self._score < self._log.state.position.score

    def send(self, client: Client, *, beat: bool) -> None:
        """Write what was committed since: entries, sums, cursors; with `beat`, also when nothing was."""
        state = self._log.state
        assert self._reader is not None  # it has arrived
        stale = monotonic() - self._reported_at >= _REPORT_S and self._status(state) != self._reported
        if not (self.waits or beat or stale or (state, self.queued) != self._sent):
            return
        if self._cuts and state.position.score - self._score > self._options.keep + _BATCH:
            # after an outage: what would be taken out again at once is not written
            self.on_connect(client, self._server)
            return
        lines = self._reader.read(state.position, _BATCH)
        score = self._score + len(lines)
        with client.pipeline() as pipe:
            if lines:
                self._add(pipe, lines, score)
                pipe.publish(layout.UPDATES, self.ident)
            self._trim(pipe, score)
            pipe.hset(self.ident, mapping=self._sums(state, score))
            if stale:
                self._report(pipe, state)
            carry_out(pipe, self.say)
        self._sent, self._score = (state, self.queued), score

    def _report(self, pipe: Any, state: LogState, *, written: bool = False) -> None:
        """Say beside the record how far the log goes, for `muniment live status`."""
        self._reported_at, self._reported = monotonic(), self._status(state)
        fields = self._reported | ({"written_at": str(now_ms())} if written else {})
        pipe.hset(layout.own_key(self.ident), mapping=fields)

    def _status(self, state: LogState) -> dict[str, str]:
        return {
            "committed": str(state.position.score),
            "left_out": str(self._left_out),
            "foreign": ",".join(sorted(self._foreign)),
        }

    def _add(self, pipe: Any, lines: list[bytes], score: int) -> None:
        if lines:
            scores = range(score - len(lines) + 1, score + 1)
            pipe.zadd(layout.log_key(self.ident), dict(zip(lines, scores, strict=True)))

    @property
    def _cuts(self) -> bool:
        return cuts(self._options.roles)

    def _trim(self, pipe: Any, score: int) -> None:
        to = trimmed_to(score, self._trimmed, self._heard, self._options.keep, self._options.roles)
        if to > self._trimmed:
            pipe.zremrangebyscore(layout.log_key(self.ident), "-inf", to)
            if not self._cuts and to > self._heard:
                self._left_out += to - max(self._trimmed, self._heard)
                self.say(f"Entries leave Redis before all have read them: it has {MOST_ENTRIES} at most.")
            self._trimmed = to

    def _sums(self, state: LogState, score: int) -> dict[str, str]:
        roles, queued = self._options.roles, self.queued + state.position.robots
        fields = layout.counter_fields(state, queued, now_ms(), analyzer="analyzer" in roles)
        fields |= {"log_score": str(score), "heartbeat": str(self.beat)}
        if "trimmer" in roles or self._trimmed:
            fields["last_trimmed_log_entry"] = str(self._trimmed)
        for role, cursor in zip(("broadcaster", "analyzer"), _CURSORS, strict=True):
            if role in roles:
                fields[cursor] = str(score)
        return fields

    # -- what others do

    def look(self) -> None:
        """Somebody published something: read the settings."""
        self._due = True

    def ask(self, pipe: Any) -> None:
        """As a part of a batch: ask for what others may have changed without a word."""
        pipe.hmget(self.ident, *READ, *_CURSORS)
        # the number of patterns says most, and is short; all of them are read from time to time
        whole = monotonic() >= self._read_all_at
        (pipe.smembers if whole else pipe.scard)(layout.ignores_key(self.ident))

    def hear(self, found: object, patterns: object) -> None:
        """Judge the answers; raises LookupError for a record that is gone."""
        if not isinstance(found, list):
            return  # a key of another type
        fields = dict(zip(READ, found, strict=False))
        if fields["url"] is None:
            raise LookupError("the record is gone")
        read = [_entry(one) for one in texts(found[len(READ) :])]
        self._heard = min(read)
        own = zip(("broadcaster", "analyzer"), read, strict=True)
        self._foreign |= {role for role, one in own if role in self.roles and one != self._score}
        if isinstance(patterns, set):
            self._read_all_at = _in_a_while()
        self._due |= not self.settings.as_written(fields, patterns)

    def check(self, client: Client) -> None:
        """Take over what others want, when something says that they want it."""
        now, settings = monotonic(), self.settings
        self._due |= self._port.age() != settings.job_age
        if not self._due or now - self._read_at < _READING_S:
            return
        self._read_at, self._read_all_at = now, _in_a_while()
        job = self._port.job()
        self._due = typed(lambda: settings.sync(client, job)) is False

    # -- the end

    def end(self, client: Client, job: LiveJob) -> None:
        """The run has ended: the rest of the log, the outcome, its count, and how long the record stays."""
        before = -1
        while before < self._score:
            before = self._score
            self.send(client, beat=True)
        over = job.state in {JobState.FINISHED, JobState.ABORTED} and job.outcome
        outcome = JobOutcome(job.outcome) if over else None
        failed_outside = self.settings.failed_outside
        counted, taken_for = typed(lambda: client.hmget(self.ident, ["counted", "pipeline_id"])) or (None, None)
        # who said that it has failed said how long it stays
        kept_s = ABORTED_S if outcome is JobOutcome.ABORTED or (failed_outside and not counted) else KEPT_S
        fields = {"finished_at": f"{now_ms() / 1000:.3f}"}
        with client.pipeline() as pipe:
            if outcome is JobOutcome.ABORTED:
                fields["aborted"] = "true"
            if outcome is not None:
                fields["counted"] = outcome.value
                if not counted and not failed_outside:
                    pipe.incr(COUNTERS[outcome])
                if not counted and self._notices:
                    add_notice(pipe, layout.notice(job, outcome, self.pipeline_id or text_of(taken_for)))
            end_record(pipe, self.ident, fields, kept_s)
            carry_out(pipe, self.say)
        if outcome is not None:
            self._port.keep_counted(outcome.value)

    def say(self, text: str) -> None:
        """Say once in the log of the job what is wrong in Redis."""
        if text not in self._said:
            if len(self._said) >= _MOST_SAID:
                self._said.clear()
            self._said.add(text)
            self._log.say(text)


def _in_a_while() -> float:
    """When everything is read again: not of many jobs at once."""
    return monotonic() + random.uniform(_ALL_AGAIN_S / 2, _ALL_AGAIN_S)


def _announcement(job: LiveJob) -> str:
    return f"Archiving {job.url.partition('#')[0]}"


def _entry(text: str) -> int:
    """The entry that a cursor of others is at; ArchiveBot's end is +inf."""
    try:
        return int(float(text or 0))
    except (ValueError, OverflowError):
        return 0
