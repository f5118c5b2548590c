"""Plots as SVG: areas over time for people who see them, tables of the same numbers for all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from msgspec import Struct

from muniment.clock import iso_ms
from muniment.model.network.captures import TimeBucket

__all__ = ["Plot", "PlotSeries", "plots_of"]

WIDTH, HEIGHT, LEFT, BOTTOM = 480, 160, 44, 20
_CLASSES = {0: "no response", 1: "1xx", 2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx", 6: "other"}
_COLOURS = {0: 6, 1: 6, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6}


class PlotSeries(Struct, frozen=True):
    """One area of a plot."""

    name: str
    colour: int
    values: tuple[float, ...]
    points: str
    """Of its polygon, above the areas before it."""


class Plot(Struct, frozen=True):
    """A plot, and the numbers of its table."""

    name: str
    title: str
    unit: str
    series: tuple[PlotSeries, ...]
    times: tuple[str, ...]
    """Where each span begins, ISO 8601."""
    highest: float
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    bottom: int = BOTTOM


def plots_of(span_ms: int, found: Sequence[TimeBucket]) -> tuple[Plot, ...]:
    """The plots of a job: its rate, its statuses and its hosts over time."""
    if not found:
        return ()
    first, last = found[0].at, found[-1].at
    times = range(first, last + 1, span_ms)
    per_s = 1000 / span_ms
    rate = {"all": 1}
    classes = {_CLASSES[one]: _COLOURS[one] for one in sorted({bucket.status_class for bucket in found})}
    hosts = sorted({bucket.host for bucket in found}, key=lambda host: (not host, host))
    return (
        _plot("rate", "Responses per second", times, [("all", one.at, one.count * per_s) for one in found], rate),
        _plot(
            "status", "By status", times,
            [(_CLASSES[one.status_class], one.at, one.count * per_s) for one in found], classes,
        ),
        _plot(
            "hosts", "By host", times, [(one.host or "others", one.at, one.count * per_s) for one in found],
            {host or "others": number for number, host in enumerate(hosts, 1)},
        ),
    )  # fmt: skip


def _plot(
    name: str, title: str, times: range, found: Sequence[tuple[str, int, float]], colours: dict[str, int]
) -> Plot:
    sums: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    totals: dict[int, float] = defaultdict(float)
    for series, at, value in found:
        sums[series][at] += value
        totals[at] += value
    highest = max(totals.values(), default=0) or 1
    below = [0.0] * len(times)
    made = []
    for series, colour in colours.items():
        values = tuple(round(sums[series][at], 2) for at in times)
        above = [low + value for low, value in zip(below, values, strict=True)]
        made.append(PlotSeries(series, colour, values, _polygon(below, above, highest)))
        below = above
    return Plot(name, title, "a second", tuple(made), tuple(iso_ms(at) for at in times), highest)


def _polygon(below: Sequence[float], above: Sequence[float], highest: float) -> str:
    step = (WIDTH - LEFT) / max(1, len(above) - 1)

    def place(number: int, value: float) -> str:
        return f"{LEFT + number * step:.1f},{(HEIGHT - BOTTOM) * (1 - value / highest):.1f}"

    over = [place(number, value) for number, value in enumerate(above)]
    under = [place(number, value) for number, value in enumerate(below)]
    if len(above) == 1:  # one span is a block
        over.append(f"{WIDTH},{over[0].partition(',')[2]}")
        under.append(f"{WIDTH},{under[0].partition(',')[2]}")
    return " ".join([*over, *reversed(under)])
