"""The lines of a summary that count: the same words over a run's end, `inspect` and the panel."""

from __future__ import annotations

from collections.abc import Mapping

from muniment.model.network.counts import JobSummary, OtherCounts, PageCounts, SiteCounts

__all__ = ["answer_lines", "count_lines", "times"]

_MOST_NAMED = 3


def count_lines(site: SiteCounts, other: OtherCounts) -> list[str]:
    """What became of the pages of the site, of other hosts, and of requisites; the last two only if there are any."""
    lines = [f"Site{_named(site.hosts)}: {_pages(site.pages, site.skipped)}"]
    if _any(other.pages):
        lines.append(f"Other hosts ({other.hosts:,}): {_pages(other.pages, other.skipped)}")
    if _any(requisites := site.requisites + other.requisites):
        lines.append(f"Requisites: {_words(requisites, {}, '')}")
    return lines


def answer_lines(summary: JobSummary) -> list[str]:
    """The answers of a run by status, and its errors by code."""
    said = (("Answers", summary.answers), ("Errors", summary.errors))
    return [f"{what}: {times(counts)}" for what, counts in said if counts]


def times(counts: Mapping[str, int]) -> str:
    """How often each of some things was there: `530 × 200, 152 × 404`."""
    return ", ".join(f"{count:,} × {name}" for name, count in counts.items())


def _named(hosts: tuple[str, ...]) -> str:
    if len(hosts) <= _MOST_NAMED:
        return f" {', '.join(hosts)}" if hosts else ""
    return f" {hosts[0]} and {len(hosts) - 1:,} more"


def _pages(counts: PageCounts, causes: Mapping[str, int]) -> str:
    return _words(counts, causes, f" page{'' if counts.captured == 1 else 's'}")


def _words(counts: PageCounts, causes: Mapping[str, int], what: str) -> str:
    why = f" ({', '.join(f'{count:,} {cause}' for cause, count in causes.items())})" if causes else ""
    return (
        f"{counts.captured:,}{what} captured, {counts.missing:,} missing, {counts.failed:,} failed, "
        f"{counts.skipped:,} skipped{why}, {counts.queued:,} queued"
    )


def _any(counts: PageCounts) -> bool:
    return bool(counts.done or counts.skipped or counts.queued)
