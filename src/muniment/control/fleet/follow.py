"""Following the log of a fleet's jobs: attempts and changes as they are committed, each once, by number."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque

from muniment.clock import monotonic, now_ms, now_us
from muniment.control.runs.log import LogFilter, LogNews
from muniment.model.network.dashboard import LogLine
from muniment.tracker.db.database import Database
from muniment.tracker.views.log_lines import LinePlace, lines_from

__all__ = ["JobFollower", "followed"]

_KEPT_LINES = 5_000
_AT_ONCE = 5_000
_LATE_MS = 30_000
"""Pipelines send what has ended some time later, and not in one order."""
_LEAST_S = 0.25
_SHARE = 20
"""A look waits so many times as long as the last one took."""
_KEPT_PAST = frozenset({"fail", "change"})
_MOST_JOBS = 50


class JobFollower:
    """The last lines of a job. A number that another process gave is a gap."""

    def __init__(self) -> None:
        self._begin = now_us()
        self._lines: deque[LogLine] = deque(maxlen=_KEPT_LINES)
        self._end = self._begin
        self._known: OrderedDict[LinePlace, None] = OrderedDict()
        self._since = now_ms() - _LATE_MS
        self._next = -1.0
        self._first = True
        self._turn = threading.Lock()

    def end(self, db: Database, job_id: int) -> int:
        """The number after the newest line."""
        self._look(db, job_id)
        return self._end

    def news(self, db: Database, job_id: int, at: int, wanted: LogFilter, most: int) -> LogNews:
        """The lines from a number on."""
        self._look(db, job_id)
        first = self._end - len(self._lines)
        if not first <= at <= self._end:
            return LogNews([], 0, self._end, whole=False)
        fresh = list(self._lines)[at - first :]
        kept = [number for number, line in enumerate(fresh) if line.kind in _KEPT_PAST]
        if len(kept) > most:  # the rest comes the next time
            fresh, kept = fresh[: kept[most]], kept[:most]
        shown = [(number, line) for number, line in enumerate(fresh) if wanted(line)]
        others = [number for number, line in shown if line.kind not in _KEPT_PAST]
        left_out = set(others[: max(0, len(others) - (most - len(kept)))])
        lines = [line for number, line in shown if number not in left_out]
        return LogNews(lines, len(left_out), at + len(fresh))

    def _look(self, db: Database, job_id: int) -> None:
        with self._turn:
            begun = monotonic()
            if begun < self._next:
                return
            found = lines_from(db, job_id, self._since, _AT_ONCE)
            fresh = [(place, line) for place, line in found if place not in self._known]
            for place, line in fresh:
                self._known[place] = None
                if not self._first:
                    self._lines.append(line)
                    self._end += 1
            self._first = False
            newest = max((place[0] for place in self._known), default=self._since)
            self._since = max(self._since, min(newest, now_ms()) - _LATE_MS)
            while self._known and next(iter(self._known))[0] < self._since:
                self._known.popitem(last=False)
            took = monotonic() - begun
            self._next = monotonic() + max(_LEAST_S, took * _SHARE)


def followed(followers: OrderedDict[int, JobFollower], job_id: int) -> JobFollower:
    """The follower of a job; the one that was not asked for longest goes when there are too many."""
    found = followers.setdefault(job_id, JobFollower())
    followers.move_to_end(job_id)
    while len(followers) > _MOST_JOBS:
        followers.popitem(last=False)
    return found
