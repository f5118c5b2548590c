"""Metrics: what a server counts, and how that and the figures of its tracker are written for Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from muniment.clock import monotonic
from muniment.model.network.metrics import METRICS
from muniment.tracker.views.figures import FleetFigures

__all__ = ["Histogram", "NewsTimes", "ServerMetrics", "exposition"]

_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Upper bounds of histograms in seconds; 2 is what changes of a fleet may take."""
_MOST_CHANGES = 1000
_Sample = tuple[Sequence[object], float]


class Histogram:
    """How often something took how long."""

    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(_BOUNDS, seconds)] += 1
        self.total += seconds


class NewsTimes:
    """How long changes take until every pipeline that asks this server for news has them."""

    def __init__(self) -> None:
        self.seconds = Histogram()
        self._has_all_of: dict[int, tuple[float, float]] = {}
        """By epoch: the moment of which it has all changes, and when it asked last."""
        self._open: deque[float] = deque(maxlen=_MOST_CHANGES)
        """When changes were made that not all have."""

    def changed(self) -> None:
        """Something was changed."""
        if self._has_all_of:
            self._open.append(monotonic())

    def asked(self, epoch: int, looked_at: float, *, has_all: bool) -> None:
        """A pipeline asked for news, which were looked up at a moment; perhaps it had all of them already."""
        before, _ = self._has_all_of.get(epoch, (looked_at, looked_at))
        self._has_all_of[epoch] = looked_at if has_all else before, monotonic()
        if self._open and has_all:
            self._settle()

    def forget(self, epoch: int) -> None:
        """A session has ended."""
        self._has_all_of.pop(epoch, None)

    def forget_silent(self, seconds: float) -> None:
        """Wait no longer for sessions that have not asked for a while: they ask another server, or have gone."""
        since = monotonic() - seconds
        self._has_all_of = {epoch: times for epoch, times in self._has_all_of.items() if times[1] >= since}
        self._settle()

    def _settle(self) -> None:
        everybody = min((all_of for all_of, _ in self._has_all_of.values()), default=0.0)
        while self._open and self._open[0] <= everybody:
            self.seconds.add(monotonic() - self._open.popleft())


class ServerMetrics:
    """What one server has counted since it began."""

    def __init__(self) -> None:
        self.finishes: Counter[str] = Counter(accepted=0, repeated=0, stale=0)
        """Written by the thread of the pages alone."""
        self.requests: Counter[tuple[str, int]] = Counter()
        self.seconds: dict[str, Histogram] = {}
        self.news = NewsTimes()

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests[route, status] += 1
        self.seconds.setdefault(route, Histogram()).add(seconds)


def exposition(counted: ServerMetrics, figures: FleetFigures | None) -> str:
    """All metrics as text, version 0.0.4 of the format; without figures the database is away."""
    parts: list[str] = []
    for name, samples in _samples(counted, figures).items():
        parts += _head(name)
        parts += [_line(name, METRICS[name].labels, values, value) for values, value in samples]
    histograms: list[tuple[str, Sequence[str], Histogram]] = [
        ("muniment_request_seconds", (route,), one) for route, one in sorted(counted.seconds.items())
    ]
    for name, rows in (
        ("muniment_request_seconds", histograms),
        (
            "muniment_news_seconds",
            [("muniment_news_seconds", (), counted.news.seconds)],
        ),
    ):
        parts += _head(name)
        parts += [line for _, values, one in rows for line in _histogram(name, values, one)]
    return "\n".join([*parts, ""])


def _samples(counted: ServerMetrics, figures: FleetFigures | None) -> dict[str, Iterable[_Sample]]:
    own: dict[str, Iterable[_Sample]] = {
        "muniment_database_up": [((), 0 if figures is None else 1)],
        "muniment_finishes_total": _by_one(counted.finishes),
        "muniment_requests_total": [(key, count) for key, count in sorted(counted.requests.items())],
    }
    if figures is None:
        return own
    return own | {
        "muniment_jobs": _by_one(figures.jobs),
        "muniment_pages": [(key, count) for key, count in sorted(figures.pages.items())],
        "muniment_pages_captured_total": _by_one(figures.captured),
        "muniment_payload_bytes_total": _by_one(figures.payload_bytes),
        "muniment_pipelines": _by_one(figures.pipelines),
        "muniment_pipeline_claimed": _by_one(figures.claimed),
        "muniment_sessions_ended_total": _by_one(figures.sessions_ended),
    }


def _by_one(counts: Mapping[int, int] | Mapping[str, int]) -> list[_Sample]:
    return [((key,), count) for key, count in counts.items()]


def _histogram(name: str, values: Sequence[str], one: Histogram) -> Iterator[str]:
    labels = METRICS[name].labels
    below = 0
    for bound, count in zip((*_BOUNDS, "+Inf"), one.counts, strict=True):
        below += count
        yield _line(f"{name}_bucket", (*labels, "le"), (*values, bound), below)
    yield _line(f"{name}_sum", labels, values, one.total)
    yield _line(f"{name}_count", labels, values, below)


def _head(name: str) -> list[str]:
    metric = METRICS[name]
    return [f"# HELP {name} {metric.about}", f"# TYPE {name} {metric.kind}"]


def _line(name: str, labels: Sequence[str], values: Sequence[object], value: float) -> str:
    pairs = ",".join(f'{label}="{_escaped(str(one))}"' for label, one in zip(labels, values, strict=True))
    return f"{name}{f'{{{pairs}}}' if pairs else ''} {value:.17g}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
