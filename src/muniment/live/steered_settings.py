"""The settings of one job in Redis: what the tracker has is written there, what others change there is taken over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import structs
from redis.exceptions import WatchError

from muniment.live import layout
from muniment.live.link import Client, carry_out, left_alone, text_of, texts, typed
from muniment.live.ports import JobPort
from muniment.live.steering import AGE, MOST_PATTERNS, READ, Reading, asked, own_changes, whole_number
from muniment.model.job import JobState
from muniment.model.network.live import LiveJob, Outside

__all__ = ["SteeredSettings"]


class SteeredSettings:
    """Knows what was written last, so that what is otherwise comes from others."""

    def __init__(self, port: JobPort, say: Callable[[str], None]) -> None:
        self._port, self._say = port, say
        self.ident = ""
        self.age = self.job_age = 0
        """Of the settings in Redis, and of those in the tracker, when both were the same."""
        self.failed_outside = False
        """Others said that the job has failed, and counted that."""
        self._written: dict[str, str] = {}
        self._patterns: frozenset[str] = frozenset()

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that have them; the last two are a copy of what was written last, for the next run."""
        return layout.ignores_key(self.ident), layout.own_key(self.ident), layout.own_ignores_key(self.ident)

    def remember(self, copy: Mapping[bytes, bytes], patterns: Iterable[bytes], job: LiveJob) -> None:
        """Know what an earlier run wrote, by its copy, so that changes made meanwhile are known as such."""
        if self._written:
            return
        kept = {text_of(name): text_of(value) for name, value in copy.items()}
        if all(name in kept for name in (*layout.IN_FORCE, AGE)):
            self._written = {name: kept[name] for name in layout.IN_FORCE}
            self._patterns = frozenset(texts(patterns))
            self.age = whole_number(kept[AGE]) or 0
        else:
            self._written, self._patterns, self.age = layout.setting_fields(job), job.patterns, job.age

    def as_written(self, fields: Mapping[str, bytes | None], patterns: object) -> bool:
        """Whether all is there as it was written last, with these patterns, or this number of them."""
        reading = Reading(fields, frozenset())
        ended = fields["abort_requested"] is not None or fields["failed"] is not None
        same = fields[AGE] == str(self.age).encode() and not reading.changed(self._written)
        return same and not ended and self._has(patterns)

    def _has(self, patterns: object) -> bool:
        if isinstance(patterns, set):
            return patterns == {one.encode("utf-8", "replace") for one in self._patterns}
        # a key of another type has no number
        return not isinstance(patterns, int) or patterns == len(self._patterns)

    def put(self, pipe: Any, job: LiveJob, age: int) -> None:
        """Write them all, as a part of a step."""
        fields, ignores = layout.setting_fields(job), self.keys[0]
        pipe.hset(self.ident, mapping={name: value for name, value in fields.items() if value} | {AGE: str(age)})
        if absent := [name for name, value in fields.items() if not value]:
            pipe.hdel(self.ident, *absent)
        pipe.sdiffstore(ignores, [ignores, ignores])  # empties a set; a key of another type is left alone
        if job.patterns:
            pipe.sadd(ignores, *sorted(job.patterns))
        self._keep(pipe, fields, job, age)

    def _keep(self, pipe: Any, fields: dict[str, str], job: LiveJob, age: int) -> None:
        self._written, self._patterns, self.age, self.job_age = fields, job.patterns, age, job.age
        ignores, copy, patterns = self.keys
        pipe.hset(copy, mapping={**fields, AGE: str(age)})
        pipe.sunionstore(patterns, ignores)

    def sync(self, client: Client, job: LiveJob) -> bool:
        """Take over what others changed, then write what is otherwise in the tracker.

        False when somebody changed them meanwhile: they are to be read again. LookupError for a record that is gone.
        """
        with client.pipeline() as pipe:
            try:
                pipe.watch(self.ident, self.keys[0])
                reading, whole = self._read(pipe)
                if reading.fields["url"] is None:
                    raise LookupError("the record is gone")
                refused, job = self._take_over(job, reading)
                for line in refused:
                    self._say(f"Refused: {line}.")
                self._write(pipe, job, reading, as_read=whole and not refused)
            except WatchError:
                return False
        return True

    def _read(self, pipe: Any) -> tuple[Reading, bool]:
        """What is there, and whether that is what others left there."""
        fields = dict(zip(READ, pipe.hmget(self.ident, *READ), strict=True))
        count = typed(lambda: pipe.scard(self.keys[0]))
        if count is None:
            self._say(left_alone(self.keys[0]))
            return Reading(fields, frozenset(one.encode() for one in self._patterns)), True
        # others who take out the last pattern give the settings another age
        lost = not count and len(self._patterns) > 1 and fields[AGE] == str(self.age).encode()
        if count > MOST_PATTERNS:
            self._say(f"Refused: {count} ignore patterns; the maximum is {MOST_PATTERNS}.")
        elif not lost:
            return Reading(fields, frozenset(pipe.smembers(self.keys[0]))), True
        return Reading(fields, frozenset(one.encode() for one in self._patterns)), False

    def _take_over(self, job: LiveJob, reading: Reading) -> tuple[list[str], LiveJob]:
        """Change the job as others want it; of two changes of one thing the later age has its way."""
        own = own_changes(layout.setting_fields(job), self._written)
        own_patterns = job.patterns ^ self._patterns
        first = reading.age > (max(job.age, self.age + 1) if own or own_patterns else self.age)
        changed = reading.changed(self._written) - (set() if first else own)
        outside, refused = asked(reading, changed, self._written, self._patterns)
        if own_patterns and not first:
            outside = structs.replace(
                outside,
                added=tuple(one for one in outside.added if one not in own_patterns),
                removed=tuple(one for one in outside.removed if one not in own_patterns),
            )
        if outside == Outside() or job.state == JobState.ABORTED:
            return refused, job
        self.failed_outside |= outside.failed
        refused += self._port.steer(outside)
        return refused, self._port.job()

    def _write(self, pipe: Any, job: LiveJob, reading: Reading, *, as_read: bool) -> None:
        wanted = layout.setting_fields(job)
        there = {one.decode("utf-8", "replace") for one in reading.patterns}
        same = all(reading.text(name) == wanted[name] for name in layout.IN_FORCE) and there == job.patterns
        if not (same and as_read and reading.age >= job.age):
            pipe.multi()
            self.put(pipe, job, max(job.age, reading.age + 1, self.age + 1))
            pipe.publish(layout.job_channel(self.ident), self.age)
            carry_out(pipe, self._say)
        elif (self._written, self._patterns, self.age) != (wanted, job.patterns, reading.age):
            pipe.multi()
            self._keep(pipe, wanted, job, reading.age)
            carry_out(pipe, self._say)
        else:
            self.job_age = job.age
